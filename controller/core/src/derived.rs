//! Whether a WorkloadDeployment of a project was made from a Workload, or by a tenant directly.
//!
//! References can be written by whoever makes the object, so they are only a claim: the Workload itself has to agree.

use popcell_api::kind;
use serde_json::Value;

use crate::names;
use crate::object::{Fields, Object};

/// Name and uid of the Workload that a WorkloadDeployment says it is made from: its controller, and the same one in
/// `spec.workloadRef`.
pub fn claimed(deployment: &Object) -> Option<(&str, &str)> {
    let mut owners = deployment.owners().iter();
    let owner = owners.find(|one| one.controller == Some(true) && one.kind == kind::WORKLOAD.kind)?;
    let agrees = deployment.text("/spec/workloadRef/uid") == Some(owner.uid.as_str())
        && deployment.text("/spec/workloadRef/name") == Some(owner.name.as_str());
    (agrees && !owner.uid.is_empty()).then_some((owner.name.as_str(), owner.uid.as_str()))
}

/// Whether it is made from this Workload: one of its placements names the city, and the name is the derived one.
pub fn is_of(deployment: &Object, workload: &Object) -> bool {
    claimed(deployment) == Some((workload.name(), workload.uid()))
        && deployment.namespace() == workload.namespace()
        && placement(deployment, workload).is_some()
}

/// The placement of the Workload that asks for the WorkloadDeployment.
pub(crate) fn placement<'a>(deployment: &Object, workload: &'a Object) -> Option<&'a Value> {
    let name = deployment.text("/spec/placementName")?;
    let city = deployment.text("/spec/cityCode")?;
    if !names::is_workload_deployment(deployment.name(), workload.name(), name, city) {
        return None;
    }
    workload.items("/spec/placements").iter().find(|placement| {
        let cities = placement.get("cityCodes").and_then(Value::as_array);
        placement.get("name").and_then(Value::as_str) == Some(name)
            && cities.is_some_and(|cities| cities.iter().any(|one| one.as_str() == Some(city)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use serde_json::json;

    fn workload() -> Object {
        object(
            json!({ "metadata": { "name": "web", "namespace": "default", "uid": "w1" }, "spec": { "placements": [
            { "name": "eu", "cityCodes": ["LHR"] }, { "name": "us", "cityCodes": ["ORD", "DFW"] }] } }),
        )
    }

    fn deployment() -> Value {
        json!({ "metadata": { "name": "web-us-dfw", "namespace": "default", "ownerReferences": [
                { "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "name": "web", "uid": "w1",
                    "controller": true }] },
            "spec": { "workloadRef": { "name": "web", "uid": "w1" }, "placementName": "us", "cityCode": "DFW" } })
    }

    #[test]
    fn a_long_name_may_be_shortened_or_from_before() {
        let mut parent = workload();
        parent.metadata.name = Some("w".repeat(60));
        for (name, is_made) in [
            (names::workload_deployment(parent.name(), "us", "DFW"), true),
            (format!("{}-us-dfw", parent.name()), true),
            (names::workload_deployment(parent.name(), "us", "ORD"), false),
        ] {
            let mut made = deployment();
            made["metadata"]["name"] = json!(name);
            made["metadata"]["ownerReferences"][0]["name"] = json!(parent.name());
            made["spec"]["workloadRef"]["name"] = json!(parent.name());
            assert_eq!(is_of(&object(made), &parent), is_made, "{name}");
        }
    }

    #[test]
    fn it_is_made_from_a_workload_when_both_agree() {
        assert!(is_of(&object(deployment()), &workload()));
        for (pointer, value) in [
            ("/metadata/name", json!("mine")),
            ("/metadata/namespace", json!("other")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/ownerReferences/0/controller", json!(false)),
            ("/metadata/ownerReferences/0/uid", json!("w2")),
            ("/metadata/ownerReferences/0/uid", json!("")),
            ("/metadata/ownerReferences/0/name", json!("db")),
            ("/metadata/ownerReferences/0/kind", json!("Deployment")),
            ("/spec/workloadRef/uid", json!("w2")),
            ("/spec/workloadRef/name", json!("db")),
            ("/spec/workloadRef", json!(null)),
            // The Workload does not ask for it there.
            ("/spec/placementName", json!("eu")),
            ("/spec/cityCode", json!("LHR")),
            ("/spec/cityCode", json!("dfw")),
        ] {
            let mut other = deployment();
            *other.pointer_mut(pointer).unwrap() = value.clone();
            assert!(!is_of(&object(other), &workload()), "{pointer} = {value}");
        }
    }
}
