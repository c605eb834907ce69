//! Whose a claim is that carries none of our stamps.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use popcell_api::quota as api;
use popcell_api::{annotations, labels};

use super::{BackingObject, Observation, fits, name};
use crate::conditions;
use crate::object::{Fields, Object};

/// The label by which tools say what they manage.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Whether a claim is a grant to the Instance, or the slot, of the reconcile: by its name and namespace, by who consumes,
/// and by all amounts. Claims that are watched carry our label; so one without it was read live in this reconcile.
pub(super) fn is_granted_for(seen: &Observation<'_>, claim: &Object) -> bool {
    let spec = match BackingObject::of(seen.name, seen.instance, seen.deployments) {
        BackingObject::Instance(instance) => instance.at("/spec"),
        BackingObject::Slot(deployment) => deployment.at("/spec/template/spec"),
        BackingObject::Nothing => None,
    };
    let at_home = seen.home_namespace() == Some(claim.namespace()) && claim.name() == name(seen.name);
    let granted = conditions::says(claim, api::GRANTED, "True");
    at_home && granted && spec.is_some_and(|spec| fits(seen, claim, spec))
}

/// Who made a claim, for people, as far as its metadata says: no object says which user made it. `None` where nothing does.
/// Only what was read with its `managedFields` tells which program wrote it.
pub fn maker(metadata: &ObjectMeta) -> Option<String> {
    let mut known: Vec<String> = Vec::new();
    let label = |key: &str| metadata.labels.as_ref()?.get(key).filter(|value| !value.is_empty());
    let uid = metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(annotations::SOURCE_UID));
    let uid = uid.map(|uid| format!(" of uid {uid}"));
    known.extend(label(labels::SOURCE_CLUSTER).map(|source| format!("cell {source}{}", uid.unwrap_or_default())));
    known.extend(label(MANAGED_BY).map(|manager| format!("managed by {manager}")));
    let owner = metadata.owner_references.iter().flatten().next();
    known.extend(owner.map(|owner| format!("owned by {} {}", owner.kind, owner.name)));
    let writer = metadata.managed_fields.iter().flatten();
    let writer = writer
        .filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty())
        .filter(|entry| entry.manager.is_some())
        .min_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    known.extend(writer.and_then(written));
    (!known.is_empty()).then(|| known.join(", "))
}

fn written(entry: &ManagedFieldsEntry) -> Option<String> {
    let manager = entry.manager.as_deref()?;
    let at = entry
        .time
        .as_ref()
        .map(|time| format!(" at {}", conditions::seconds(time.0)));
    Some(format!("written by {manager}{}", at.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(metadata: Value) -> Option<String> {
        maker(&serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn a_claim_names_who_made_it_as_far_as_its_metadata_says() {
        let entry = |manager: &str, time: &str, subresource: &str| {
            json!({ "manager": manager, "operation": "Update",
            "apiVersion": "v1", "time": time, "subresource": subresource })
        };
        for (metadata, expected) in [
            (json!({}), None),
            (
                json!({ "labels": { "compute.datumapis.com/source-cluster": "ord-01" } }),
                Some("cell ord-01"),
            ),
            (
                json!({ "labels": { "compute.datumapis.com/source-cluster": "dfw-01" },
                    "annotations": { "compute.datumapis.com/source-uid": "old" } }),
                Some("cell dfw-01 of uid old"),
            ),
            (
                json!({ "labels": { "app.kubernetes.io/managed-by": "Helm" }, "managedFields": [
                    entry("quota-system", "2026-01-01T00:00:00Z", "status"),
                    entry("kubectl-edit", "2026-01-03T00:00:00Z", ""),
                    entry("kubectl-create", "2026-01-02T00:00:00Z", "")] }),
                Some("managed by Helm, written by kubectl-create at 2026-01-02T00:00:00Z"),
            ),
            (
                json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }] }),
                Some("owned by Pod p"),
            ),
        ] {
            assert_eq!(made(metadata.clone()).as_deref(), expected, "{metadata}");
        }
    }
}
