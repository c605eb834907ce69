//! What a ResourceClaim asks for, and the answer that it got.

use kube::api::DynamicObject;
use popcell_api::quota::{self, ResourceClaimSpec};
use popcell_api::resource_manager;
use serde_json::Value;

use super::budget::Amounts;

/// What a claim asks for, or what is wrong with it.
pub(super) fn asked(claim: &DynamicObject) -> Result<Amounts, String> {
    let spec = claim.data.get("spec").cloned().unwrap_or_default();
    let spec: ResourceClaimSpec =
        serde_json::from_value(spec).map_err(|error| format!("the claim is no claim: {error}"))?;
    let consumer = spec.consumer_ref.unwrap_or_default();
    if (consumer.api_group.as_str(), consumer.kind.as_str())
        != (resource_manager::GROUP, resource_manager::PROJECT_KIND)
        || consumer.name.is_empty()
    {
        return Err("consumerRef names no Project".to_owned());
    }
    // Absent and empty are no reference: milo has had the field both as a pointer and as a value.
    let resource = spec.resource_ref.unwrap_or_default();
    if !resource.kind.is_empty() && resource.kind != resource_manager::PROJECT_KIND {
        return Err(format!("{} may not claim these resources", resource.kind));
    }
    if spec.requests.is_empty() {
        return Err("requests is empty".to_owned());
    }
    let mut asked = Amounts::default();
    for request in spec.requests {
        let resource_type = &request.resource_type;
        let Some(amount) = asked.of(resource_type) else {
            return Err(format!("resource type {resource_type} is not registered"));
        };
        if request.amount < 0 {
            return Err(format!("the amount of {resource_type} is negative"));
        }
        *amount = amount.saturating_add(request.amount);
    }
    Ok(asked)
}

/// What the claim was granted, by its status: the amounts noted there, else those that it asks for.
pub(super) fn granted(claim: &DynamicObject) -> Option<Amounts> {
    let all = |pointer: &str| claim.data.pointer(pointer).and_then(Value::as_array);
    let is_granted = |condition: &Value| condition["type"] == quota::GRANTED && condition["status"] == "True";
    if !all("/status/conditions")?.iter().any(is_granted) {
        return None;
    }
    let Some(allocations) = all("/status/allocations") else {
        return Some(asked(claim).unwrap_or_default());
    };
    let mut granted = Amounts::default();
    for allocation in allocations {
        let amount = allocation["allocatedAmount"].as_i64().unwrap_or(0);
        if let Some(sum) = granted.of(allocation["resourceType"].as_str().unwrap_or_default()) {
            *sum = sum.saturating_add(amount);
        }
    }
    Some(granted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(spec: &Value, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({ "metadata": { "name": "it" }, "spec": spec, "status": status })).unwrap()
    }

    fn project() -> Value {
        json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p1" })
    }

    fn requests() -> Value {
        json!([
            { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
            { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
        ])
    }

    #[test]
    fn a_claim_asks_for_its_requests() {
        for resource in [project(), json!({}), Value::Null] {
            let spec = json!({ "consumerRef": project(), "resourceRef": resource, "requests": requests() });
            let expected = Amounts {
                instances: 1,
                vcpus: 1000,
                memory: 0,
            };
            assert_eq!(asked(&claim(&spec, &Value::Null)), Ok(expected));
        }
    }

    #[test]
    fn what_is_wrong_with_a_claim_is_named() {
        let instance = json!({ "apiGroup": "compute.datumapis.com", "kind": "Instance", "name": "web-0" });
        let request = |resource_type: &str, amount: i64| json!([{ "resourceType": resource_type, "amount": amount }]);
        for (consumer, resource, requests, word) in [
            (Value::Null, Value::Null, requests(), "consumerRef"),
            (instance.clone(), Value::Null, requests(), "consumerRef"),
            (project(), instance, requests(), "Instance may not"),
            (project(), project(), json!([]), "empty"),
            (project(), project(), request("example.com/gpus", 1), "example.com/gpus"),
            (
                project(),
                project(),
                request("compute.datumapis.com/memory", -1),
                "negative",
            ),
            (project(), project(), json!("many"), "no claim"),
        ] {
            let spec = json!({ "consumerRef": consumer, "resourceRef": resource, "requests": requests });
            let wrong = asked(&claim(&spec, &Value::Null)).unwrap_err();
            assert!(wrong.contains(word), "{wrong}");
        }
    }

    #[test]
    fn what_was_granted_is_what_was_noted_then() {
        let spec = json!({ "consumerRef": project(), "requests": requests() });
        let condition =
            |status: &str| json!([{ "type": "Other", "status": "True" }, { "type": "Granted", "status": status }]);
        let with = |status: &Value| granted(&claim(&spec, status));
        assert_eq!(with(&Value::Null), None);
        assert_eq!(with(&json!({ "conditions": condition("False") })), None);
        let asked = Amounts {
            instances: 1,
            vcpus: 1000,
            memory: 0,
        };
        assert_eq!(with(&json!({ "conditions": condition("True") })), Some(asked));
        let noted = json!([{ "resourceType": "compute.datumapis.com/vcpus", "allocatedAmount": 500 }]);
        let noted = json!({ "conditions": condition("True"), "allocations": noted });
        assert_eq!(
            with(&noted),
            Some(Amounts {
                vcpus: 500,
                ..Amounts::default()
            })
        );
    }
}
