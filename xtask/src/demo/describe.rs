//! Objects in one line each.

use kube::api::DynamicObject;
use serde_json::Value;

/// A Workload: what runs of it, over all cities.
pub(super) fn workload(object: &DynamicObject) -> String {
    let name = name(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let head = format!("Workload {name}: generation {generation}");
    if object.data.pointer("/status/deployments").is_none() {
        return format!("{head}; no status yet");
    }
    format!(
        "{head}; {} WorkloadDeployments, {} ready, {}",
        number(object, "/status/deployments"),
        ready(object),
        available(object),
    )
}

/// A PropagationPolicy of a city.
pub(super) fn policy(object: &DynamicObject) -> String {
    let name = name(object);
    let city = object
        .data
        .pointer("/spec/placement/clusterAffinity/labelSelector/matchLabels")
        .and_then(Value::as_object)
        .and_then(|labels| labels.values().next()?.as_str())
        .unwrap_or("?");
    format!("PropagationPolicy {name}: to one cluster of city {city}")
}

/// A WorkloadDeployment: what is wanted, what runs, and what the status speaks of.
pub(super) fn workload_deployment(object: &DynamicObject) -> String {
    let name = name(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let wanted = number(object, "/spec/scaleSettings/minReplicas");
    let head = format!("WorkloadDeployment {name}: generation {generation} wants {wanted}");
    if object.data.pointer("/status/readyReplicas").is_none() {
        return format!("{head}; no status yet");
    }
    format!(
        "{head}; status: {} ready, {}, of generation {}",
        ready(object),
        available(object),
        number(object, "/status/observedGeneration"),
    )
}

/// A ResourceBinding: where its object goes, what the webhook said about replicas and health.
pub(super) fn resource_binding(object: &DynamicObject) -> String {
    let kind = text(object, "/spec/resource/kind");
    let name = text(object, "/spec/resource/name");
    let clusters = names(object, "/spec/clusters", "name");
    let replicas = number(object, "/spec/replicas");
    let health = names(object, "/status/aggregatedStatus", "health");
    let place = if clusters.is_empty() {
        "no cluster yet".to_owned()
    } else {
        format!("goes to {clusters}")
    };
    let health = if health.is_empty() {
        String::new()
    } else {
        format!(", health {health}")
    };
    format!("ResourceBinding of {kind} {name}: {place}, replicas {replicas}{health}")
}

/// An Instance: whether it is ready, and what holds it.
pub(super) fn instance(object: &DynamicObject) -> String {
    let name = name(object);
    let ready = condition(object, "Ready");
    let gates = names(object, "/spec/controller/schedulingGates", "name");
    match (object.metadata.deletion_timestamp.is_some(), gates.as_str()) {
        (true, _) => format!("Instance {name}: is torn down"),
        (false, "") => format!("Instance {name}: {ready}"),
        (false, gates) => format!("Instance {name}: {ready}, waits for {gates}"),
    }
}

/// A Pod: where it is, and what it does.
pub(super) fn pod(object: &DynamicObject) -> String {
    let (name, phase) = (name(object), text(object, "/status/phase"));
    match (
        object.metadata.deletion_timestamp.is_some(),
        text(object, "/spec/nodeName").as_str(),
    ) {
        (true, _) => format!("Pod {name}: is deleted"),
        (false, "?" | "") => format!("Pod {name}: {phase}, waits for a node"),
        (false, node) => format!("Pod {name}: {phase} on {node}"),
    }
}

/// A ResourceClaim: whether it is granted.
pub(super) fn claim(object: &DynamicObject) -> String {
    let name = name(object);
    format!("ResourceClaim {name}: {}", condition(object, "Granted"))
}

/// The object's name.
pub(super) fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

/// How many replicas are ready, and how many are desired.
pub(super) fn ready(object: &DynamicObject) -> String {
    format!(
        "{}/{}",
        number(object, "/status/readyReplicas"),
        number(object, "/status/desiredReplicas")
    )
}

/// Status and reason of the condition Available.
pub(super) fn available(object: &DynamicObject) -> String {
    condition(object, "Available")
}

/// Status and reason of a condition.
pub(super) fn condition(object: &DynamicObject, type_: &str) -> String {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == type_);
    found.map_or_else(
        || format!("{type_} not said"),
        |condition| {
            let field = |name: &str| condition[name].as_str().unwrap_or("?").to_owned();
            format!("{type_}={} ({})", field("status"), field("reason"))
        },
    )
}

/// The number at a JSON pointer, or `?`.
pub(super) fn number(object: &DynamicObject, pointer: &str) -> String {
    object
        .data
        .pointer(pointer)
        .and_then(Value::as_i64)
        .map_or_else(|| "?".to_owned(), |number| number.to_string())
}

/// The text at a JSON pointer, or `?`.
pub(super) fn text(object: &DynamicObject, pointer: &str) -> String {
    object
        .data
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("?")
        .to_owned()
}

/// One field of each item of a list.
pub(super) fn names(object: &DynamicObject, pointer: &str, field: &str) -> String {
    let items = object.data.pointer(pointer).and_then(Value::as_array);
    let names: Vec<&str> = items
        .into_iter()
        .flatten()
        .filter_map(|item| item[field].as_str())
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_deployment_before_and_after_its_first_status() {
        let mut value = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
            "metadata": { "name": "web", "generation": 1 },
            "spec": { "scaleSettings": { "minReplicas": 2 } },
        });
        assert_eq!(
            workload_deployment(&object(value.clone())),
            "WorkloadDeployment web: generation 1 wants 2; no status yet"
        );
        value["status"] = popcell_test_support::objects::cell_status(1, 2, 1);
        assert_eq!(
            workload_deployment(&object(value)),
            "WorkloadDeployment web: generation 1 wants 2; status: 1/2 ready, Available=True (StableInstanceFound), \
             of generation 1"
        );
    }

    #[test]
    fn a_workload_before_and_after_its_first_status() {
        let mut value = popcell_test_support::objects::workload("n", "web", &[("us", &["DFW"], 2)]);
        value["metadata"]["generation"] = json!(3);
        assert_eq!(
            workload(&object(value.clone())),
            "Workload web: generation 3; no status yet"
        );
        value["status"] = json!({ "deployments": 1, "readyReplicas": 1, "desiredReplicas": 2 });
        assert_eq!(
            workload(&object(value)),
            "Workload web: generation 3; 1 WorkloadDeployments, 1/2 ready, Available not said"
        );
    }

    #[test]
    fn an_instance_says_what_holds_it() {
        let mut value = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "metadata": { "name": "web-0" },
            "spec": { "controller": { "schedulingGates": [{ "name": "Network" }, { "name": "Quota" }] } },
        });
        assert_eq!(
            instance(&object(value.clone())),
            "Instance web-0: Ready not said, waits for Network, Quota"
        );
        value["spec"]["controller"]["schedulingGates"] = json!([]);
        value["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True", "reason": "Available" }] });
        assert_eq!(
            instance(&object(value.clone())),
            "Instance web-0: Ready=True (Available)"
        );
        value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(instance(&object(value)), "Instance web-0: is torn down");
    }

    #[test]
    fn a_policy_names_its_city() {
        let value = popcell_test_support::objects::city_policy("n", "DFW");
        assert_eq!(
            policy(&object(value)),
            "PropagationPolicy city-dfw: to one cluster of city DFW"
        );
    }

    #[test]
    fn a_binding_with_and_without_a_cluster() {
        let mut value = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": { "name": "b" },
            "spec": { "resource": { "kind": "WorkloadDeployment", "name": "web" }, "replicas": 2 },
        });
        assert!(resource_binding(&object(value.clone())).ends_with("web: no cluster yet, replicas 2"));
        value["spec"]["clusters"] = json!([{ "name": "dfw", "replicas": 2 }]);
        value["status"] = json!({ "aggregatedStatus": [{ "clusterName": "dfw", "health": "Healthy" }] });
        assert!(resource_binding(&object(value)).ends_with("web: goes to dfw, replicas 2, health Healthy"));
    }
}
