//! Generated WorkloadDeployments: well-formed ones, as API servers admit them, and arbitrary JSON in every place that an
//! operation reads.

use popcell_sdk::prelude::*;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const COUNTS: [&str; 5] = [
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
];
const TYPES: [&str; 6] = [
    "Available",
    "ReplicasReady",
    "Paused",
    "example.io/Ready",
    "Drained",
    "Zoned",
];
const REASONS: [&str; 5] = [
    "StableInstanceFound",
    "QuotaExceeded",
    "ImageUnavailable",
    "NetworkFailedToCreate",
    "Odd",
];

/// The object that a JSON value is.
pub(crate) fn object(value: &Value) -> Object {
    Object::parse(value.to_string()).expect("generated values are objects")
}

/// Any JSON of a few levels.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..12).prop_map(Value::from),
        (-8_i32..8).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        "[a-zA-Zäöß\"\\\\ ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("conditions".to_owned()),
        Just("type".to_owned()),
        Just("status".to_owned()),
        Just("observedGeneration".to_owned()),
        Just("generation".to_owned()),
        Just("replicas".to_owned()),
        "[a-z/~]{0,5}",
    ]
}

/// A condition that an API server admits; its message is sometimes longer than what goes upward.
fn condition() -> impl Strategy<Value = Value> {
    let status = prop::sample::select(vec!["True", "False", "Unknown"]);
    let message =
        prop_oneof![3 => "[a-zA-Z0-9ä ]{0,20}", 1 => (1015_usize..1030).prop_map(|length| "€x".repeat(length / 4))];
    (
        prop::sample::select(REASONS.to_vec()),
        status,
        message,
        of(0_i64..4),
        0_u32..60,
    )
        .prop_map(|(reason, status, message, observed, second)| {
            let mut condition = json!({
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": format!("2026-11-28T10:00:{second:02}Z"),
            });
            if let Some(observed) = observed {
                condition["observedGeneration"] = observed.into();
            }
            condition
        })
}

/// The status of a member as its API server admits it.
pub(crate) fn status() -> impl Strategy<Value = Value> {
    let conditions = prop::collection::vec((prop::sample::select(TYPES.to_vec()), condition()), 0..6);
    let counts = prop::collection::vec(of(0_i32..=i32::MAX), COUNTS.len());
    let unknown = prop::collection::btree_map("[x-z]{1,2}", any_json(), 0..3);
    (counts, of(conditions), of(-1_i64..4), unknown).prop_map(|(counts, conditions, observed, unknown)| {
        let mut status: Map<String, Value> = unknown.into_iter().collect();
        for (name, count) in COUNTS.iter().zip(counts) {
            if let Some(count) = count {
                status.insert((*name).to_owned(), count.into());
            }
        }
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions.into_iter().map(with_type).collect());
        }
        if let Some(observed) = observed {
            status.insert("observedGeneration".to_owned(), observed.into());
        }
        Value::from(status)
    })
}

fn with_type((kind, mut condition): (&str, Value)) -> Value {
    condition["type"] = kind.into();
    condition
}

/// A WorkloadDeployment as API servers admit it, in the hub or in a cell.
pub(crate) fn deployment() -> impl Strategy<Value = Value> {
    let scale = (0_i32..2000, of(0_i32..5000));
    let limits = of((1_u32..4000, 1_u32..4096));
    let named = (
        prop::collection::vec("[a-c]{1,2}", 1..4),
        prop::collection::vec("[a-c]{1,2}", 0..4),
    );
    (
        scale,
        of(0_i32..10),
        (limits, named),
        of(status()),
        of(1_i64..4),
        of(0_i64..4),
    )
        .prop_map(
            |((minimum, maximum), replicas, (limits, (networks, secrets)), status, generation, template_generation)| {
                let mut object = json!({
                    "apiVersion": "compute.datumapis.com/v1alpha",
                    "kind": "WorkloadDeployment",
                    "metadata": {"name": "web-us-dfw", "namespace": "ns-1", "annotations": {}},
                    "spec": {
                        "cityCode": "DFW",
                        "scaleSettings": {"minReplicas": minimum},
                        "template": {"spec": {"runtime": {
                            "resources": {"instanceType": "datumcloud/d1-standard-2"},
                            "sandbox": {"containers": [{"name": "httpd", "image": "httpd"}]},
                        }}},
                    },
                });
                let interfaces = networks.iter().map(|name| json!({"network": {"name": name}}));
                object["spec"]["template"]["spec"]["networkInterfaces"] = interfaces.collect();
                let env = secrets.iter().map(|name| {
                json!({"name": name.to_uppercase(), "valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}})
            });
                object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["env"] = env.collect();
                if let Some(maximum) = maximum {
                    object["spec"]["scaleSettings"]["maxReplicas"] = maximum.into();
                }
                if let Some(replicas) = replicas {
                    object["spec"]["replicas"] = replicas.into();
                }
                if let Some((cpu, memory)) = limits {
                    object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["resources"] =
                        json!({"limits": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}});
                }
                if let Some(status) = status {
                    object["status"] = status;
                }
                if let Some(generation) = generation {
                    object["metadata"]["generation"] = generation.into();
                }
                if let Some(generation) = template_generation {
                    object["metadata"]["annotations"]["resourcetemplate.karmada.io/generation"] =
                        generation.to_string().into();
                }
                object
            },
        )
}

/// A WorkloadDeployment with anything in one of the places that an operation reads.
pub(crate) fn broken_deployment() -> impl Strategy<Value = Value> {
    let places = vec![
        "/metadata",
        "/metadata/annotations",
        "/spec",
        "/spec/scaleSettings",
        "/spec/scaleSettings/minReplicas",
        "/spec/template/spec/runtime",
        "/spec/template/spec/runtime/sandbox/containers",
        "/spec/template/spec/runtime/sandbox/containers/0",
        "/spec/template/spec/runtime/sandbox/containers/0/env",
        "/spec/template/spec/networkInterfaces",
        "/spec/template/spec/networkInterfaces/0/network/name",
        "/status",
    ];
    (deployment(), prop::sample::select(places), any_json(), of(any_json())).prop_map(
        |(mut object, place, value, conditions)| {
            if let (Some(conditions), Some(status)) = (conditions, object.get_mut("status")) {
                status["conditions"] = conditions;
            }
            if let Some(target) = object.pointer_mut(place) {
                *target = value;
            }
            object
        },
    )
}

/// What Karmada collected from a cluster, well-formed: what InterpretStatus answered there, or nothing.
pub(crate) fn item(cluster: String) -> impl Strategy<Value = StatusItem> {
    let answered = (of(status()), of(1_i64..4), of(1_i64..4)).prop_map(|(status, own, template)| {
        let mut status = status?;
        if let Some(own) = own {
            status["generation"] = own.into();
        }
        if let Some(template) = template {
            status["resourceTemplateGeneration"] = template.into();
        }
        Some(Json::parse(status.to_string()).expect("generated JSON"))
    });
    (answered, any::<bool>()).prop_map(move |(status, applied)| StatusItem {
        cluster_name: cluster.clone(),
        status,
        applied,
        applied_message: String::new(),
        health: None,
    })
}

/// Items of up to four clusters.
pub(crate) fn items() -> impl Strategy<Value = Vec<StatusItem>> {
    (0_usize..=4).prop_flat_map(|clusters| {
        (0..clusters)
            .map(|cluster| item(format!("dfw-{cluster}")))
            .collect::<Vec<_>>()
    })
}
