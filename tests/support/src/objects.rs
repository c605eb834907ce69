//! Builders of the objects that tests apply. Each answers a fresh JSON value that the test may change further.

use popcell_api::{API_VERSION, conditions, kind, labels, quota};
use serde_json::{Value, json};

use crate::kind::RESOURCE_GRANT;
use crate::stand_ins::Budget;

/// A Namespace.
#[must_use]
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// The CRD of a namespaced kind, version v1, whose objects may hold anything: for kinds of others that only have to be
/// stored.
#[must_use]
pub fn open_crd(group: &str, kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

/// A WorkloadDeployment on the hub: one small container, `replicas` of it, labelled with its city.
#[must_use]
pub fn workload_deployment(namespace: &str, name: &str, city: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "WorkloadDeployment",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": { labels::CITY_CODE: city, labels::MANAGED_BY: labels::MANAGED_BY_POPCELL },
        },
        "spec": {
            "workloadRef": { "name": "web", "uid": "6d2c9c0b-7f0f-4c4e-9a54-3a2f5c1d0e11" },
            "placementName": "edge",
            "cityCode": city,
            "scaleSettings": { "minReplicas": replicas, "instanceManagementPolicy": "OrderedReady" },
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "web", "image": "registry.example.com/web:1" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
        },
    })
}

/// A Workload: one small container on network `default`. Placements are names, cities and replicas in each.
#[must_use]
pub fn workload(namespace: &str, name: &str, placements: &[(&str, &[&str], i32)]) -> Value {
    let placements: Vec<Value> = placements
        .iter()
        .map(|(name, cities, replicas)| {
            json!({
                "name": name,
                "cityCodes": cities,
                "scaleSettings": { "minReplicas": replicas, "instanceManagementPolicy": "OrderedReady" },
            })
        })
        .collect();
    json!({
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "template": workload_deployment("", "", "", 0)["spec"]["template"],
            "placements": placements,
        },
    })
}

/// A Network.
#[must_use]
pub fn network(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": kind::NETWORK.api_version(),
        "kind": "Network",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "ipam": { "mode": "Auto" } },
    })
}

/// An InstanceType, whose object has the type's name with `-` for `/`.
#[must_use]
pub fn instance_type(name: &str, cpu: &str, memory: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "InstanceType",
        "metadata": { "name": name.replace('/', "-") },
        "spec": { "name": name, "cpu": cpu, "memory": memory },
    })
}

/// A LocationBinding, named by its city, which is cluster-scoped as in newer releases.
#[must_use]
pub fn location_binding(city: &str) -> Value {
    json!({
        "apiVersion": kind::LOCATION_BINDING.api_version(),
        "kind": "LocationBinding",
        "metadata": { "name": city.to_lowercase() },
        "spec": {
            "locationRef": { "name": city.to_lowercase() },
            "locationClassName": "datum-managed",
            "topology": { labels::CITY_CODE: city },
        },
    })
}

/// A Location, named by its city: the site that a cell is.
#[must_use]
pub fn location(city: &str) -> Value {
    json!({
        "apiVersion": kind::LOCATION.api_version(),
        "kind": "Location",
        "metadata": { "name": city.to_lowercase() },
        "spec": { "locationClassName": "datum-managed", "topology": { labels::CITY_CODE: city } },
    })
}

/// What a project may use at once: the only ResourceGrant that the stand-in of quota looks at, if nobody makes another.
#[must_use]
pub fn resource_grant(namespace: &str, project: &str, budget: &Budget) -> Value {
    let limits = [
        (quota::INSTANCES, budget.instances),
        (quota::VCPUS, budget.vcpus),
        (quota::MEMORY, budget.memory),
    ];
    let allowances = limits.into_iter().filter_map(|(resource_type, limit)| {
        let limit = limit?;
        Some(json!({ "resourceType": resource_type, "buckets": [{ "amount": limit }] }))
    });
    json!({
        "apiVersion": RESOURCE_GRANT.api_version(),
        "kind": "ResourceGrant",
        "metadata": { "namespace": namespace, "name": format!("{project}-compute-quota") },
        "spec": {
            "consumerRef": { "apiGroup": kind::PROJECT.group, "kind": "Project", "name": project },
            "allowances": allowances.collect::<Vec<_>>(),
        },
    })
}

/// A Project of milo, without status.
#[must_use]
pub fn project(id: &str) -> Value {
    json!({ "apiVersion": kind::PROJECT.api_version(), "kind": "Project", "metadata": { "name": id } })
}

/// An Instance of a WorkloadDeployment as a cell copies it to the hub; `source` is the cell's Cluster.
#[must_use]
pub fn instance_copy(hub_namespace: &str, workload_deployment: &str, ordinal: u32, source: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Instance",
        "metadata": {
            "namespace": hub_namespace,
            "name": format!("{workload_deployment}-{ordinal}"),
            "labels": {
                labels::WORKLOAD_DEPLOYMENT_NAME: workload_deployment,
                labels::INSTANCE_INDEX: ordinal.to_string(),
                labels::SOURCE_CLUSTER: source,
                labels::MANAGED_BY: labels::MANAGED_BY_POPCELL,
                labels::CLAIMED_BY: labels::CLAIMED_BY_POPCELL,
            },
        },
        "spec": {
            "runtime": {
                "resources": { "instanceType": "datumcloud/d1-standard-2" },
                "sandbox": { "containers": [{ "name": "web", "image": "registry.example.com/web:1" }] },
            },
            "networkInterfaces": [{ "network": { "name": "default" } }],
        },
    })
}

/// An Instance of no WorkloadDeployment in a cell, which waits at these gates.
#[must_use]
pub fn instance(namespace: &str, name: &str, gates: &[&str]) -> Value {
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    let mut instance = instance_copy(namespace, "none", 0, "");
    instance["metadata"] = json!({ "namespace": namespace, "name": name });
    instance["spec"]["controller"] = json!({ "templateHash": "6f8c9d7b4", "schedulingGates": gates });
    instance
}

/// A claim of a project for one Instance.
#[must_use]
pub fn resource_claim(namespace: &str, name: &str, project: &str) -> Value {
    let project = json!({ "apiGroup": kind::PROJECT.group, "kind": kind::PROJECT.kind, "name": project });
    json!({
        "apiVersion": kind::RESOURCE_CLAIM.api_version(),
        "kind": kind::RESOURCE_CLAIM.kind,
        "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "consumerRef": project, "resourceRef": project,
            "requests": [{ "resourceType": quota::INSTANCES, "amount": 1 }],
        },
    })
}

/// The policy that sends the namespace's WorkloadDeployments of one city to that city's cell.
///
/// One cluster at most, so that a second cluster with the label does not double the work; NoExecute is tolerated,
/// because an eviction would remove the only copy.
#[must_use]
pub fn city_policy(namespace: &str, city: &str) -> Value {
    let of_the_city = json!({ "matchLabels": { labels::CITY_CODE: city } });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {
            "namespace": namespace,
            "name": city_policy_name(city),
            "labels": { labels::MANAGED_BY: labels::MANAGED_BY_POPCELL },
        },
        "spec": {
            "conflictResolution": "Abort",
            "propagateDeps": true,
            "resourceSelectors": [{
                "apiVersion": API_VERSION,
                "kind": "WorkloadDeployment",
                "labelSelector": of_the_city,
            }],
            "placement": {
                "clusterAffinity": { "labelSelector": of_the_city },
                "clusterTolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
                "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
            },
        },
    })
}

/// Name of the hub namespace, and of the cell's, of a project's Namespace with this uid.
#[must_use]
pub fn hub_namespace_name(uid: &str) -> String {
    format!("ns-{uid}")
}

/// Name of a city's policy.
#[must_use]
pub fn city_policy_name(city: &str) -> String {
    format!("city-{}", city.to_lowercase().replace(' ', "-"))
}

/// Status as the controller of a cell writes it: `ready` of `desired` instances run.
///
/// `generation` is that of the object in the cell. The condition's time is fixed, so that equal states are equal.
#[must_use]
pub fn cell_status(generation: i64, desired: i32, ready: i32) -> Value {
    let (available, reason, message) = if ready > 0 {
        (
            "True",
            conditions::reasons::STABLE_INSTANCE_FOUND,
            format!("{ready}/{desired} instances are ready"),
        )
    } else {
        (
            "False",
            conditions::reasons::PROVISIONING_INSTANCES,
            "Instances are being provisioned".to_owned(),
        )
    };
    let mut status = json!({
        "replicas": desired,
        "currentReplicas": ready,
        "updatedReplicas": desired,
        "desiredReplicas": desired,
        "readyReplicas": ready,
        "observedGeneration": generation,
        "conditions": [condition(conditions::AVAILABLE, available, reason, &message, generation)],
    });
    if ready == desired
        && let Some(list) = status.pointer_mut("/conditions").and_then(Value::as_array_mut)
    {
        let message = format!("{ready}/{desired} replicas available");
        list.push(condition(
            conditions::REPLICAS_READY,
            "True",
            conditions::reasons::REPLICAS_AVAILABLE,
            &message,
            generation,
        ));
    }
    status
}

/// One condition.
#[must_use]
pub fn condition(type_: &str, status: &str, reason: &str, message: &str, generation: i64) -> Value {
    json!({
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Sets an annotation of an object that is still to be applied.
pub fn annotate(object: &mut Value, key: &str, value: &str) {
    object["metadata"]["annotations"][key] = json!(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_policies() {
        assert_eq!(city_policy_name("LAX"), "city-lax");
        assert_eq!(city_policy_name("New York"), "city-new-york");
    }

    #[test]
    fn a_workload_deployment_fits_its_type() {
        let object = workload_deployment("ns", "web-edge-dfw", "DFW", 2);
        let typed: popcell_api::WorkloadDeployment = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(typed.spec.city_code, "DFW");
        assert_eq!(serde_json::to_value(&typed).unwrap()["spec"], object["spec"]);
    }

    #[test]
    fn a_workload_and_a_copy_fit_their_types() {
        let object = workload("ns", "web", &[("us", &["DFW", "ORD"], 2)]);
        let typed: popcell_api::Workload = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap()["spec"], object["spec"]);
        let object = instance_copy("ns-1", "web-us-dfw", 0, "dfw");
        let typed: popcell_api::Instance = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap()["spec"], object["spec"]);
    }

    #[test]
    fn a_cells_status_fits_its_type() {
        for (desired, ready) in [(2, 0), (2, 1), (2, 2), (0, 0)] {
            let status = cell_status(3, desired, ready);
            let typed: popcell_api::WorkloadDeploymentStatus = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(typed.ready_replicas, ready);
            assert_eq!(serde_json::to_value(&typed).unwrap(), status);
        }
    }
}
