//! The CRDs that stand in for those of other owners.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::networking::{Location, LocationBinding, NetworkBinding, SubnetClaim};
use popcell_api::quota::{self, ResourceClaim};
use popcell_api::{ObservedCondition, conditions, kind};
use popcell_suites::world::{SOON, World};
use popcell_test_support::{Plane, eventually, stand_ins};
use serde_json::{Value, json};

use super::plane_with_namespace;

/// They are accepted, objects of them are born as the real ones are, and our types read them.
pub(crate) async fn served(world: &World, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(world, namespace).await?;
    for kind in [
        kind::LOCATION,
        kind::LOCATION_BINDING,
        kind::NETWORK,
        kind::NETWORK_BINDING,
        kind::NETWORK_CONTEXT,
        kind::SUBNET_CLAIM,
        kind::SUBNET,
        kind::RESOURCE_CLAIM,
        kind::PROJECT,
    ] {
        plane.apply(&stand_ins::crd(&kind)?).await?;
    }
    let location = json!({ "name": "dfw-a" });
    let topology = json!({ "topology.datum.net/city-code": "DFW" });
    let spec = json!({ "locationClassName": "datum-managed", "topology": topology, "provider": { "gcp": {} } });
    let made: Location = make(&plane, namespace, kind::LOCATION, spec).await?.try_parse()?;
    ensure!(made.spec.topology["topology.datum.net/city-code"] == "DFW");
    let spec = json!({ "locationRef": location, "topology": topology });
    let made: LocationBinding = make(&plane, namespace, kind::LOCATION_BINDING, spec)
        .await?
        .try_parse()?;
    ensure!(made.spec.topology["topology.datum.net/city-code"] == "DFW");
    make(&plane, namespace, kind::NETWORK, json!({ "ipam": { "mode": "Auto" } })).await?;
    make(&plane, namespace, kind::PROJECT, json!({})).await?;

    let spec = json!({ "network": { "name": "default" }, "location": location });
    let made: NetworkBinding = make(&plane, namespace, kind::NETWORK_BINDING, spec)
        .await?
        .try_parse()?;
    born(
        &made.status.context("no status")?.conditions,
        conditions::READY,
        "Unknown",
        "Pending",
    )?;
    let spec = json!({ "subnetClass": "private", "networkContext": { "name": "c" }, "location": location,
        "ipFamily": "IPv4" });
    let made: SubnetClaim = make(&plane, namespace, kind::SUBNET_CLAIM, spec).await?.try_parse()?;
    born(
        &made.status.context("no status")?.conditions,
        conditions::READY,
        "Unknown",
        "Pending",
    )?;

    // A claim is born refused, for a reason that is no refusal.
    let spec = json!({ "requests": [{ "resourceType": quota::INSTANCES, "amount": 1 }], "resourceRef": {} });
    let made: ResourceClaim = make(&plane, namespace, kind::RESOURCE_CLAIM, spec).await?.try_parse()?;
    born(
        &made.status.context("no status")?.conditions,
        quota::GRANTED,
        "False",
        conditions::reasons::PENDING_EVALUATION,
    )
}

async fn make(plane: &Plane, namespace: &str, kind: kind::Kind, spec: Value) -> Result<DynamicObject> {
    let object = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": { "namespace": namespace, "name": "made" },
        "spec": spec,
    });
    // A new kind is served a moment after its CRD is stored.
    let what = format!("{} can be made", kind.kind);
    eventually(&what, SOON, async || plane.apply(&object).await).await
}

fn born(found: &[ObservedCondition], type_: &str, status: &str, reason: &str) -> Result<()> {
    let condition = found.iter().find(|condition| condition.type_ == type_);
    let condition = condition.with_context(|| format!("no condition {type_} in {found:?}"))?;
    ensure!(
        condition.status == status && condition.reason == reason,
        "{condition:?}"
    );
    Ok(())
}
