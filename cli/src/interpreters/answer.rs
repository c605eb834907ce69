//! From an answer on the wire to the SDK's words.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use itertools::Itertools as _;
use popcell_protocol::{Operation, client::Answer};
use popcell_sdk::{
    Component, Dependency, Error, Json, NodeClaim, Replicas, Requirements,
    module::{Change, Output},
    types::PatchOp,
};
use serde_json::value::RawValue;

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// A field of it.
    #[error("failed to read the answer: {0}")]
    Field(#[from] Error),
    /// Its patch.
    #[error("failed to read the patch: {0}")]
    Patch(String),
}

/// The output of an answer that was checked for its operation.
pub(super) fn output(operation: Operation, answer: &Answer) -> Result<Output, Unread> {
    Ok(match operation {
        Operation::InterpretReplica => {
            let raw = answer.replica_requirements.as_deref();
            Output::Replicas(Replicas {
                replicas: answer.replicas.unwrap_or_default().into(),
                requirements: raw.map(|raw| requirements(&json(raw)?)).transpose()?,
            })
        }
        Operation::InterpretComponent => Output::Components(list(answer.components.as_deref(), component)?),
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus => {
            Output::Change(change(answer.patch.as_deref())?)
        }
        Operation::InterpretStatus => {
            Output::Status(answer.raw_status.as_deref().map_or_else(|| Ok(Json::null()), json)?)
        }
        Operation::InterpretHealth => Output::Health(answer.healthy.unwrap_or_default()),
        Operation::InterpretDependency => Output::Dependencies(list(answer.dependencies.as_deref(), dependency)?),
    })
}

fn json(raw: &RawValue) -> Result<Json, Unread> {
    Ok(Json::parse(raw.get())?)
}

fn list<T>(raw: Option<&RawValue>, item: fn(&Json) -> Result<T, Unread>) -> Result<Vec<T>, Unread> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    json(raw)?.items("")?.unwrap_or_default().iter().map(item).collect()
}

fn text(json: &Json, pointer: &str) -> Result<Option<String>, Unread> {
    let text = json.text(pointer)?.filter(|text| !text.is_empty());
    Ok(text.map(str::to_owned))
}

/// A part that is there and not null.
fn part<'a>(json: &'a Json, pointer: &str) -> Option<&'a Json> {
    json.get(pointer).filter(|part| !part.is_null())
}

fn change(patch: Option<&str>) -> Result<Change, Unread> {
    let Some(patch) = patch.filter(|patch| !patch.is_empty()) else {
        return Ok(Change::Unchanged);
    };
    let text = BASE64_STANDARD.decode(patch);
    let steps = Json::parse(text.map_err(|error| Unread::Patch(error.to_string()))?)?;
    let steps: Vec<PatchOp> = steps.items("")?.unwrap_or_default().iter().map(step).try_collect()?;
    Ok(if steps.is_empty() {
        Change::Unchanged
    } else {
        Change::Patch(steps)
    })
}

fn step(step: &Json) -> Result<PatchOp, Unread> {
    let path = text(step, "/path")?.unwrap_or_default();
    let value = || {
        let value = step.get("/value").cloned();
        value.ok_or_else(|| Unread::Patch(format!("{path} has no value")))
    };
    match step.text("/op")? {
        Some("add") => Ok(PatchOp::Add { value: value()?, path }),
        Some("replace") => Ok(PatchOp::Replace { value: value()?, path }),
        Some("remove") => Ok(PatchOp::Remove { path }),
        other => Err(Unread::Patch(format!("unexpected op {other:?} at {path}"))),
    }
}

fn requirements(found: &Json) -> Result<Requirements, Unread> {
    let mut requirements = Requirements {
        namespace: text(found, "/namespace")?,
        priority_class_name: text(found, "/priorityClassName")?,
        node_claim: part(found, "/nodeClaim").map(node_claim).transpose()?,
        ..Requirements::default()
    };
    for (name, amount) in found.fields("/resourceRequest")?.into_iter().flatten() {
        if let Some(amount) = amount.quantity("")? {
            requirements.resource_request.insert(name.to_owned(), amount);
        }
    }
    Ok(requirements)
}

fn node_claim(found: &Json) -> Result<NodeClaim, Unread> {
    let mut claim = NodeClaim {
        hard_node_affinity: part(found, "/hardNodeAffinity").cloned(),
        tolerations: found.items("/tolerations")?.unwrap_or_default().to_vec(),
        ..NodeClaim::default()
    };
    for (label, value) in found.fields("/nodeSelector")?.into_iter().flatten() {
        let value = value.as_text().unwrap_or_default();
        claim.node_selector.insert(label.to_owned(), value.to_owned());
    }
    Ok(claim)
}

fn component(found: &Json) -> Result<Component, Unread> {
    Ok(Component {
        name: text(found, "/name")?.unwrap_or_default(),
        replicas: found.int("/replicas")?.unwrap_or_default(),
        requirements: part(found, "/replicaRequirements").map(requirements).transpose()?,
    })
}

fn dependency(found: &Json) -> Result<Dependency, Unread> {
    Ok(Dependency {
        api_version: text(found, "/apiVersion")?.unwrap_or_default(),
        kind: text(found, "/kind")?.unwrap_or_default(),
        namespace: text(found, "/namespace")?,
        name: text(found, "/name")?,
        label_selector: part(found, "/labelSelector").cloned(),
    })
}
