//! The pause annotation: a paused object is shown as paused, and nothing else is written for it. Its own deletion waits
//! too.
//!
//! Why: `docs/decisions/18-pause.md`.

use jiff::Timestamp;
use popcell_api::annotations;
use popcell_api::kind::Kind;
use serde_json::{Map, Value, json};

use crate::conditions::{self, Condition};
use crate::edit::Edit;
use crate::object::{Fields, Object};
use crate::plan::{Note, Plan, Plane};

/// Type and reason of the condition that shows it.
pub const PAUSED: &str = "Paused";
const MESSAGE: &str = "Annotation compute.datumapis.com/paused is \"true\": nothing is written for it";

/// Whether the object is paused.
pub fn is_paused(object: &Object) -> bool {
    object.annotation(annotations::PAUSED) == Some(annotations::PAUSED_TRUE)
}

/// Shows it once; nothing else. An object without a status has counts to give first, so there it is only noted.
pub(crate) fn plan(plane: &Plane, kind: Kind, object: &Object, now: Timestamp) -> Plan {
    let old = object
        .at("/status")
        .filter(|status| status.as_object().is_some_and(|map| !map.is_empty()));
    Plan {
        status: old.and_then(|old| {
            let condition = Condition::new(PAUSED, true, PAUSED, MESSAGE).render(Some(old), None, now);
            let mut list = conditions::all(old).to_vec();
            conditions::put(&mut list, condition);
            let mut status = old.clone();
            set(&mut status, "conditions", json!(list));
            Edit::status(plane, kind, object, status)
        }),
        notes: vec![Note::Paused],
        ..Plan::default()
    }
}

/// The object's own status with another condition in it, of this generation, and not paused any more; its other fields and
/// conditions stay.
pub(crate) fn reported_instead(
    object: &Object,
    condition: &Condition,
    observed: Option<i64>,
    now: Timestamp,
) -> Map<String, Value> {
    let old = object.at("/status");
    let mut status = old.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut list = old.map(conditions::all).unwrap_or_default().to_vec();
    lift(&mut list);
    conditions::put(&mut list, condition.render(old, observed, now));
    status.insert("conditions".to_owned(), json!(list));
    status
}

/// Takes the condition away again.
pub(crate) fn lift(conditions: &mut Vec<Value>) {
    conditions.retain(|condition| conditions::text(condition, "type") != PAUSED);
}

fn set(status: &mut Value, key: &str, value: Value) {
    if let Some(fields) = status.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}
