//! From an answer on the wire to the SDK's words.

use base64::Engine as _;
use popcell_protocol::{Operation, client::Answer};
use popcell_sdk::{
    Component, Dependency, Json, NodeClaim, Replicas, Requirements,
    module::{Change, Output},
    types::PatchOp,
};
use serde_json::value::RawValue;

/// The output of an answer that was checked for its operation.
pub(super) fn output(operation: Operation, answer: &Answer) -> Result<Output, String> {
    Ok(match operation {
        Operation::InterpretReplica => Output::Replicas(Replicas {
            replicas: answer.replicas.unwrap_or_default().into(),
            requirements: answer
                .replica_requirements
                .as_deref()
                .map(|raw| requirements(&json(raw)?))
                .transpose()?,
        }),
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

fn json(raw: &RawValue) -> Result<Json, String> {
    Json::parse(raw.get()).map_err(said)
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn said(error: popcell_sdk::Error) -> String {
    format!("failed to read the answer: {error}")
}

fn list<T>(raw: Option<&RawValue>, item: fn(&Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    json(raw)?
        .items("")
        .map_err(said)?
        .unwrap_or_default()
        .iter()
        .map(item)
        .collect()
}

fn text(json: &Json, pointer: &str) -> Result<Option<String>, String> {
    Ok(json
        .text(pointer)
        .map_err(said)?
        .filter(|text| !text.is_empty())
        .map(str::to_owned))
}

fn change(patch: Option<&str>) -> Result<Change, String> {
    let Some(patch) = patch.filter(|patch| !patch.is_empty()) else {
        return Ok(Change::Unchanged);
    };
    let text = base64::engine::general_purpose::STANDARD
        .decode(patch)
        .map_err(|error| format!("failed to read the patch: {error}"))?;
    let steps = Json::parse(text).map_err(said)?;
    let steps = steps
        .items("")
        .map_err(said)?
        .unwrap_or_default()
        .iter()
        .map(step)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(if steps.is_empty() {
        Change::Unchanged
    } else {
        Change::Patch(steps)
    })
}

fn step(step: &Json) -> Result<PatchOp, String> {
    let path = text(step, "/path")?.unwrap_or_default();
    let value = || {
        step.get("/value")
            .cloned()
            .ok_or_else(|| format!("failed to read the patch: {path} has no value"))
    };
    match step.text("/op").map_err(said)? {
        Some("add") => Ok(PatchOp::Add { value: value()?, path }),
        Some("replace") => Ok(PatchOp::Replace { value: value()?, path }),
        Some("remove") => Ok(PatchOp::Remove { path }),
        other => Err(format!("failed to read the patch: unexpected op {other:?} at {path}")),
    }
}

fn requirements(found: &Json) -> Result<Requirements, String> {
    let mut requirements = Requirements {
        namespace: text(found, "/namespace")?,
        priority_class_name: text(found, "/priorityClassName")?,
        node_claim: found
            .get("/nodeClaim")
            .filter(|claim| !claim.is_null())
            .map(node_claim)
            .transpose()?,
        ..Requirements::default()
    };
    for (name, amount) in found.fields("/resourceRequest").map_err(said)?.into_iter().flatten() {
        if let Some(amount) = amount.quantity("").map_err(said)? {
            requirements.resource_request.insert(name.to_owned(), amount);
        }
    }
    Ok(requirements)
}

fn node_claim(found: &Json) -> Result<NodeClaim, String> {
    let mut claim = NodeClaim {
        hard_node_affinity: found
            .get("/hardNodeAffinity")
            .filter(|affinity| !affinity.is_null())
            .cloned(),
        tolerations: found.items("/tolerations").map_err(said)?.unwrap_or_default().to_vec(),
        ..NodeClaim::default()
    };
    for (label, value) in found.fields("/nodeSelector").map_err(said)?.into_iter().flatten() {
        claim
            .node_selector
            .insert(label.to_owned(), value.as_text().unwrap_or_default().to_owned());
    }
    Ok(claim)
}

fn component(found: &Json) -> Result<Component, String> {
    Ok(Component {
        name: text(found, "/name")?.unwrap_or_default(),
        replicas: found.int("/replicas").map_err(said)?.unwrap_or_default(),
        requirements: found
            .get("/replicaRequirements")
            .filter(|found| !found.is_null())
            .map(requirements)
            .transpose()?,
    })
}

fn dependency(found: &Json) -> Result<Dependency, String> {
    Ok(Dependency {
        api_version: text(found, "/apiVersion")?.unwrap_or_default(),
        kind: text(found, "/kind")?.unwrap_or_default(),
        namespace: text(found, "/namespace")?,
        name: text(found, "/name")?,
        label_selector: found
            .get("/labelSelector")
            .filter(|selector| !selector.is_null())
            .cloned(),
    })
}
