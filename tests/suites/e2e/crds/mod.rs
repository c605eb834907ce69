//! The CRDs that are shipped, on a real API server.

mod refused;
mod stored;

use std::fs;

use anyhow::{Context, Result};
use popcell_suites::environment::{Environment, SPARE};
use popcell_test_support::{Plane, objects, workspace};
use serde_json::{Value, json};

pub(crate) use refused::{changed, invalid, wrong_status};
pub(crate) use stored::{columns, examples, nulls, unknown_fields, unobserved, whole};

/// The object that has every field of its kind.
fn whole_object(kind: &str) -> Result<Value> {
    let file = workspace::root()
        .join("controller/api/tests/objects")
        .join(format!("{}.yaml", kind.to_lowercase()));
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("failed to understand {}", file.display()))
}

/// The same in a namespace, without the status, which is written apart.
fn new_object(kind: &str, namespace: &str) -> Result<(Value, Value)> {
    let mut object = whole_object(kind)?;
    object["metadata"]["namespace"] = json!(namespace);
    let status = object["status"].take();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Ok((object, status))
}

/// A plane that has our CRDs and nothing else of ours, with a namespace of the test's own.
async fn plane_with_namespace(environment: &Environment, namespace: &str) -> Result<Plane> {
    let plane = environment.lab.plane(SPARE).await?;
    plane.apply(&objects::namespace(namespace)).await?;
    Ok(plane)
}
