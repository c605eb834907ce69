//! Stand-ins of others' kinds refuse what their owners refuse, so that no test passes because they take anything.

use anyhow::{Context, Result};
use popcell_api::{kind, quota};
use popcell_suites::environment::Environment;
use popcell_suites::steps::refused;
use popcell_test_support::kind::RESOURCE_GRANT;
use popcell_test_support::stand_ins::IN_CELLS;
use popcell_test_support::{Plane, objects};
use serde_json::{Value, json};

use crate::catalog::{serving, taken};

/// A JSON pointer, what is put there, and a word of the refusal.
type Wrong<'a> = (&'a str, Value, &'static str);

fn project() -> Value {
    json!({ "apiGroup": kind::PROJECT.group, "kind": kind::PROJECT.kind, "name": "shop" })
}

fn object(kind: kind::Kind, namespace: &str, spec: &Value) -> Value {
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "namespace": namespace, "name": "it" },
        "spec": spec })
}

/// With a value at a pointer; null takes away what is there.
fn with(object: &Value, pointer: &str, value: &Value) -> Result<Value> {
    let mut object = object.clone();
    let (parent, field) = pointer.rsplit_once('/').context("no pointer")?;
    let parent = object.pointer_mut(parent).context("nothing there")?;
    match (parent, value) {
        (Value::Object(parent), Value::Null) => drop(parent.remove(field)),
        (parent, value) => parent[field] = value.clone(),
    }
    Ok(object)
}

async fn refuses(plane: &Plane, right: &Value, wrong: &[Wrong<'_>]) -> Result<()> {
    taken(plane, right).await?;
    for (pointer, value, word) in wrong {
        let wrong = with(right, pointer, value)?;
        let what = format!("{} with {value} at {pointer}", right["kind"]);
        refused(plane.create(&wrong, true).await, &[*word], &what)?;
    }
    Ok(())
}

/// Statuses that a stand-in's controller must not write either.
async fn refuses_statuses(plane: &Plane, kind: kind::Kind, namespace: Option<&str>, type_: &str) -> Result<()> {
    let condition = |reason: &str| objects::condition(type_, "True", reason, "", 1);
    let right = json!({ "conditions": [condition("QuotaAvailable")] });
    plane.set_status(kind, namespace, "it", &right).await?;
    for field in ["status", "reason", "message", "lastTransitionTime"] {
        let wrong = with(&right["conditions"][0], &format!("/{field}"), &Value::Null)?;
        let status = json!({ "conditions": [wrong] });
        let what = format!("a condition of {} without {field}", kind.kind);
        refused(plane.set_status(kind, namespace, "it", &status).await, &[field], &what)?;
    }
    for (field, value) in [
        ("status", "Maybe"),
        ("reason", ""),
        ("reason", "has a space"),
        ("lastTransitionTime", "yesterday"),
    ] {
        let odd = with(&right["conditions"][0], &format!("/{field}"), &json!(value))?;
        let status = json!({ "conditions": [odd] });
        let what = format!("a condition of {} with {field} {value:?}", kind.kind);
        refused(plane.set_status(kind, namespace, "it", &status).await, &[field], &what)?;
    }
    Ok(())
}

/// Required fields, enums and bounds of the networking kinds.
pub(crate) async fn refused_as_by_network_services(environment: &Environment, namespace: &str) -> Result<()> {
    const ENUM: &str = "Unsupported value";
    let plane = serving(environment, &IN_CELLS).await?;
    plane.apply(&objects::namespace(namespace)).await?;
    let at = json!({ "name": "atl" });
    let joined = json!({ "network": { "name": "default" }, "location": at });
    let claimed = json!({ "subnetClass": "private", "networkContext": { "name": "it" }, "location": at,
        "ipFamily": "IPv4", "startAddress": "10.0.0.0", "prefixLength": 24 });
    let missing = |fields: &[&'static str]| -> Vec<(String, Value, &'static str)> {
        let each = fields
            .iter()
            .map(|field| (format!("/spec/{field}"), Value::Null, *field));
        each.collect()
    };
    let odd = |field: &str, value: Value, word: &'static str| (format!("/spec/{field}"), value, word);
    let of_subnets = || {
        let fields = ["subnetClass", "networkContext", "location", "ipFamily"];
        let odd = [
            odd("subnetClass", json!("public"), ENUM),
            odd("ipFamily", json!("IPv5"), ENUM),
            odd("networkContext", json!({}), "networkContext.name"),
        ];
        [missing(&fields), odd.into()].concat()
    };
    let of_joined = [
        missing(&["network", "location"]),
        vec![
            odd("network", json!({}), "network.name"),
            odd("location", json!({}), "location.name"),
        ],
    ]
    .concat();
    for (kind, spec, wrong) in [
        (
            kind::NETWORK,
            json!({ "ipam": { "mode": "Auto" }, "mtu": 1400, "ipFamilies": ["IPv4"] }),
            [
                missing(&["ipam"]),
                vec![
                    odd("ipam", json!({}), "ipam.mode"),
                    odd("ipam/mode", json!("Static"), ENUM),
                    odd("ipFamilies", json!(["IPv4", "IPv5"]), ENUM),
                    odd("mtu", json!(1299), "greater than or equal to 1300"),
                    odd("mtu", json!(8857), "less than or equal to 8856"),
                ],
            ]
            .concat(),
        ),
        (kind::NETWORK_BINDING, joined.clone(), of_joined.clone()),
        (kind::NETWORK_CONTEXT, joined, of_joined),
        (kind::SUBNET_CLAIM, claimed.clone(), of_subnets()),
        (
            kind::SUBNET,
            claimed,
            [of_subnets(), missing(&["startAddress", "prefixLength"])].concat(),
        ),
    ] {
        let right = object(kind, namespace, &spec);
        let wrong: Vec<Wrong<'_>> = wrong
            .iter()
            .map(|(at, value, word)| (&**at, value.clone(), *word))
            .collect();
        refuses(&plane, &right, &wrong).await?;
        plane.create(&right, false).await?;
        refuses_statuses(&plane, kind, Some(namespace), "Ready").await?;
    }
    let nowhere = json!({ "networkContextRef": { "name": "it" } });
    let bound = plane.set_status(kind::NETWORK_BINDING, Some(namespace), "it", &nowhere);
    refused(
        bound.await,
        &["networkContextRef.namespace"],
        "a context without a namespace",
    )?;

    let mut location = objects::location("ATL");
    location["metadata"]["name"] = json!("it");
    refuses(
        &plane,
        &location,
        &[
            ("/spec/locationClassName", Value::Null, "locationClassName"),
            ("/spec/locationClassName", json!("borrowed"), ENUM),
            ("/spec/topology", Value::Null, "topology"),
            ("/spec/topology", json!({ "city": 1 }), "topology"),
        ],
    )
    .await?;
    plane.create(&location, false).await?;
    refuses_statuses(&plane, kind::LOCATION, None, "Ready").await?;
    plane.delete(kind::LOCATION, None, "it").await
}

pub(crate) async fn refused_as_by_milo(environment: &Environment, namespace: &str) -> Result<()> {
    let kinds = [
        kind::RESOURCE_CLAIM,
        RESOURCE_GRANT,
        kind::PROJECT,
        kind::LOCATION_BINDING,
    ];
    let plane = serving(environment, &kinds).await?;
    plane.apply(&objects::namespace(namespace)).await?;

    let request = json!({ "resourceType": quota::INSTANCES, "amount": 1 });
    let spec = json!({ "consumerRef": project(), "resourceRef": project(), "requests": [request] });
    let claim = object(kind::RESOURCE_CLAIM, namespace, &spec);
    refuses(
        &plane,
        &claim,
        &[
            ("/spec", Value::Null, "spec"),
            ("/spec/requests", json!([]), "requests"),
            ("/spec/requests", json!([request, request]), "Duplicate"),
            ("/spec/requests/0/amount", json!(-1), "amount"),
            ("/spec/requests/0/amount", json!("1"), "amount"),
            ("/spec/requests/0/resourceType", Value::Null, "resourceType"),
            ("/spec/consumerRef", json!({ "kind": "Project" }), "name"),
            ("/spec/resourceRef", json!({ "apiGroup": "a" }), "kind"),
            ("/spec/priority", json!(1), "priority"),
        ],
    )
    .await?;
    plane.create(&claim, false).await?;
    let grown = json!({ "spec": { "requests": [{ "resourceType": quota::INSTANCES, "amount": 2 }] } });
    let here = Some(namespace);
    refused(
        plane.merge(kind::RESOURCE_CLAIM, here, "it", &grown).await,
        &["immutable"],
        "a claim that grows",
    )?;
    refuses_statuses(&plane, kind::RESOURCE_CLAIM, here, quota::GRANTED).await?;
    let odd = json!({ "conditions": [objects::condition(quota::GRANTED, "False", "TooMuch", "", 1)] });
    refused(
        plane.set_status(kind::RESOURCE_CLAIM, here, "it", &odd).await,
        &["a reason that Granted does not have"],
        "a reason that is none",
    )?;
    let odd = json!({ "allocations": [{ "resourceType": quota::INSTANCES, "status": "Maybe",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    refused(
        plane.set_status(kind::RESOURCE_CLAIM, here, "it", &odd).await,
        &["allocations"],
        "an allocation that is none",
    )?;

    let allowance = json!({ "resourceType": quota::INSTANCES, "buckets": [{ "amount": 1 }] });
    let spec = json!({ "consumerRef": project(), "allowances": [allowance] });
    let grant = object(RESOURCE_GRANT, namespace, &spec);
    refuses(
        &plane,
        &grant,
        &[
            ("/spec/consumerRef", Value::Null, "consumerRef"),
            ("/spec/allowances", json!([]), "allowances"),
            ("/spec/allowances", json!([allowance, allowance]), "Duplicate"),
            ("/spec/allowances/0/buckets", json!([]), "buckets"),
            ("/spec/allowances/0/buckets/0/amount", json!(-1), "amount"),
        ],
    )
    .await?;
    plane.create(&grant, false).await?;
    refuses_statuses(&plane, RESOURCE_GRANT, here, "Active").await?;

    let mut binding = objects::location_binding("ATL");
    binding["metadata"]["name"] = json!("it");
    refuses(
        &plane,
        &binding,
        &[
            ("/spec/locationRef", Value::Null, "locationRef"),
            ("/spec/locationRef/name", json!(""), "name"),
            ("/spec/topology", json!({ "city": 1 }), "topology"),
            ("/spec/city", json!("ATL"), "city"),
        ],
    )
    .await?;
    plane.create(&binding, false).await?;
    refuses_statuses(&plane, kind::LOCATION_BINDING, None, "Available").await?;
    plane.delete(kind::LOCATION_BINDING, None, "it").await?;

    plane.create(&objects::project("it"), false).await?;
    refuses_statuses(&plane, kind::PROJECT, None, "Ready").await?;
    plane.delete(kind::PROJECT, None, "it").await
}
