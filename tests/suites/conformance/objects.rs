//! Rows of the conformance suite.

use popcell_suites::wire::Row;
use serde_json::{Value, json};

/// The eight operations.
pub(crate) const OPERATIONS: [&str; 8] = [
    "InterpretReplica",
    "InterpretComponent",
    "ReviseReplica",
    "Retain",
    "AggregateStatus",
    "InterpretStatus",
    "InterpretHealth",
    "InterpretDependency",
];

/// An object of the fixture module's kind that makes it behave; the empty behaviour is an honest answer.
pub(crate) fn misbehaving(behaviour: &str) -> Value {
    json!({
        "apiVersion": "tests.popcell.dev/v1", "kind": "Misbehaving",
        "metadata": {
            "name": "a", "namespace": "ns",
            "annotations": { "tests.popcell.dev/behaviour": behaviour },
        },
    })
}

/// A call of the fixture module with everything that any operation needs.
pub(crate) fn row(operation: &str, object: Value) -> Row {
    Row {
        operation: operation.to_owned(),
        observed: (operation == "Retain").then(|| object.clone()),
        replicas: if operation == "ReviseReplica" { 7 } else { 0 },
        object,
        ..Row::default()
    }
}

/// An object of Karmada's example kind.
pub(crate) fn workload(replicas: i64, ready: i64) -> Value {
    json!({
        "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload",
        "metadata": { "name": "nginx", "namespace": "ns", "labels": { "app": "nginx" } },
        "spec": {
            "replicas": replicas, "paused": false,
            "template": {
                "metadata": { "labels": { "app": "nginx" } },
                "spec": { "containers": [{
                    "name": "nginx", "image": "nginx",
                    "envFrom": [{ "configMapRef": { "name": "settings" } }],
                }] },
            },
        },
        "status": { "readyReplicas": ready },
    })
}

/// An item of `aggregatedStatus`.
pub(crate) fn item(cluster: &str, status: &Value) -> Value {
    json!({ "clusterName": cluster, "status": status, "applied": true, "health": "Healthy" })
}
