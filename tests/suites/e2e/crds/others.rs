//! Kinds of other owners, as we read and write them.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::{self, Kind};
use popcell_api::networking::{IP_FAMILY_IPV4, SUBNET_CLASS_PRIVATE};
use popcell_api::{conditions, labels, quota};
use popcell_suites::environment::{DFW, Environment, SOON};
use popcell_test_support::{Plane, eventually, objects, stand_ins};
use serde_json::{Value, json};

use super::plane_with_namespace;
use crate::planes::{BINDING, deployed};

/// The stand-ins take what we write, and make new objects as we expect them.
pub(crate) async fn stand_in(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in stand_ins::ALL {
        plane.apply(&stand_ins::crd(&kind)?).await?;
    }
    for kind in stand_ins::ALL {
        // A new kind is served a moment after its CRD is stored.
        let group = kind.api_version();
        eventually(&format!("{} is served", kind.kind), SOON, async || {
            let served = plane.client().list_api_group_resources(&group).await?.resources;
            ensure!(served.iter().any(|resource| resource.name == kind.plural), "{served:?}");
            Ok(())
        })
        .await?;
    }
    networks(&plane, namespace).await?;
    claims(&plane, namespace).await
}

async fn networks(plane: &Plane, namespace: &str) -> Result<()> {
    let (location, topology) = (json!({ "name": "dfw-a" }), json!({ labels::CITY_CODE: "DFW" }));
    let site = json!({ "locationClassName": "datum-managed", "topology": topology });
    make(plane, kind::LOCATION, None, "dfw-a", &site).await?;
    let binding = json!({ "locationRef": location, "topology": topology });
    make(plane, kind::LOCATION_BINDING, None, "dfw", &binding).await?;
    let listed = plane.list(kind::LOCATION_BINDING, None, "").await?;
    let named = |each: &DynamicObject| each.metadata.name.as_deref() == Some("dfw");
    ensure!(listed.iter().any(named), "{listed:?}");

    let here = Some(namespace);
    make(plane, kind::NETWORK, here, "default", &json!({})).await?;
    let spec = json!({ "network": { "name": "default" }, "location": location });
    let made = make(plane, kind::NETWORK_BINDING, here, "web-us-dfw-net-0", &spec).await?;
    born(&made, conditions::READY, "Unknown", "Pending")?;
    let spec = json!({
        "subnetClass": SUBNET_CLASS_PRIVATE,
        "networkContext": { "name": "default-dfw-a" },
        "location": location,
        "ipFamily": IP_FAMILY_IPV4,
    });
    let made = make(plane, kind::SUBNET_CLAIM, here, "default-dfw-a-0", &spec).await?;
    born(&made, conditions::READY, "Unknown", "Pending")
}

/// A claim is born refused, for a reason that is no refusal.
async fn claims(plane: &Plane, namespace: &str) -> Result<()> {
    make(plane, kind::PROJECT, None, "p1", &json!({})).await?;
    let project = json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p1" });
    let requests = json!([{ "resourceType": quota::INSTANCES, "amount": 1 }]);
    let spec = json!({ "consumerRef": project, "requests": requests, "resourceRef": project });
    let made = make(plane, kind::RESOURCE_CLAIM, Some(namespace), "instance-web-0", &spec).await?;
    let pending = conditions::reasons::PENDING_EVALUATION;
    born(&made, quota::GRANTED, "False", pending)
}

/// A policy that we write is the one that Karmada knows; its cluster and its binding can be read.
pub(crate) async fn karmada(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, _) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    let cluster = hub.expect(kind::CLUSTER, None, DFW).await?;
    let spec = &cluster.data["spec"];
    let is_known = spec["id"].as_str().is_some_and(|id| !id.is_empty());
    ensure!(is_known && spec["syncMode"] == "Push", "{cluster:?}");
    let ready = condition(&cluster, "Ready")?;
    ensure!(ready["status"] == "True", "{ready}");

    let binding = eventually("the binding is placed", SOON, async || {
        let binding = hub.expect(kind::RESOURCE_BINDING, Some(namespace), BINDING).await?;
        let seen = binding.data["status"]["schedulerObservedGeneration"].as_i64();
        ensure!(seen.is_some() && seen == binding.metadata.generation, "{binding:?}");
        Ok(binding)
    })
    .await?;
    let spec = &binding.data["spec"];
    let clusters = spec["clusters"].as_array().context("no clusters")?;
    ensure!(clusters.len() == 1 && clusters[0]["name"] == DFW, "{binding:?}");
    ensure!(
        spec["resource"]["kind"] == kind::WORKLOAD_DEPLOYMENT.kind,
        "{binding:?}"
    );

    let policy = objects::city_policy(namespace, "ORD");
    let made = hub.create(&policy, false).await?;
    let mut spec = policy["spec"].clone();
    // What Karmada's webhook adds, and nothing else.
    spec["priority"] = json!(0);
    spec["preemption"] = json!("Never");
    spec["schedulerName"] = json!("default-scheduler");
    spec["resourceSelectors"][0]["namespace"] = json!(namespace);
    ensure!(made.data["spec"] == spec, "{:?} is not {spec}", made.data);
    Ok(())
}

/// What the server makes of the object. It keeps each field of the spec as it was sent.
async fn make(plane: &Plane, kind: Kind, namespace: Option<&str>, name: &str, spec: &Value) -> Result<DynamicObject> {
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let made = plane.create(&object, false).await;
    let made = made.with_context(|| format!("failed to make a {}", kind.kind))?;
    for (field, sent) in spec.as_object().into_iter().flatten() {
        let kept = &made.data["spec"][field];
        ensure!(kept == sent, "{field} of {} {name} is {kept}", kind.kind);
    }
    Ok(made)
}

fn born(made: &DynamicObject, type_: &str, status: &str, reason: &str) -> Result<()> {
    let condition = condition(made, type_)?;
    ensure!(
        condition["status"] == status && condition["reason"] == reason,
        "{condition}"
    );
    Ok(())
}

fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Result<&'a Value> {
    let found = object.data["status"]["conditions"].as_array();
    let mut of_type = found.into_iter().flatten().filter(|each| each["type"] == type_);
    of_type
        .next()
        .with_context(|| format!("no condition {type_} in {object:?}"))
}
