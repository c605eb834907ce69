//! Rolls, repairs and scaling of Instances in a cell.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read::{self, says};
use popcell_suites::steps::gone;
use popcell_test_support::eventually;
use popcell_test_support::kind::{EVENT, INSTANCE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::FAIL;
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];

pub(crate) async fn restarted(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 3, |_| {}).await?;
    tenant.ready("web", 3).await?;
    let before = tenant.instances(&cell).await?;
    tenant.restart("web").await?;
    // What was replaced, as it is seen: never a lower one before a higher one.
    let mut order: Vec<usize> = Vec::new();
    eventually("every instance is another", SOON, async || {
        let now = tenant.instances(&cell).await?;
        for (slot, (name, uid)) in before.iter().enumerate() {
            let same = now.iter().any(|(other, other_uid)| other == name && other_uid == uid);
            if !same && !order.contains(&slot) {
                order.push(slot);
            }
        }
        let old: BTreeSet<_> = before.iter().map(|(_, uid)| uid).collect();
        ensure!(
            now.len() == 3 && now.iter().all(|(_, uid)| !old.contains(uid)),
            "{now:?}"
        );
        Ok(())
    })
    .await?;
    ensure!(order == [2, 1, 0], "replaced in the order {order:?}");
    tenant.ready("web", 3).await?;
    tenant
        .claims_are(&["web-us-dfw-0", "web-us-dfw-1", "web-us-dfw-2"])
        .await
}

pub(crate) async fn repaired(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    let bad = json!({ "annotations": { FAIL: "image-unavailable" } });
    tenant
        .deploy("web", CITY, 2, |one| one["spec"]["template"]["metadata"] = bad)
        .await?;
    tenant
        .instance(&cell, "web-us-dfw-0", |one| {
            says(one, "Ready", "Unknown", "ImageUnavailable")
        })
        .await?;
    tenant
        .in_project(WORKLOAD_DEPLOYMENT, "web-us-dfw", |one| {
            says(one, "Available", "False", "ImageUnavailable")
        })
        .await?;
    ensure!(
        tenant.instances(&cell).await?.len() == 1,
        "the second waits for the first"
    );
    tenant
        .edit(
            "web",
            &json!({ "template": { "metadata": { "annotations": { FAIL: null } } } }),
        )
        .await?;
    tenant.ready("web", 2).await.map(|_| ())
}

/// A roll that gets stuck shows how far it came, and who has to be looked at.
pub(crate) async fn stopped(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 2, |_| {}).await?;
    tenant.ready("web", 2).await?;
    let fail = |value: Value| json!({ "template": { "metadata": { "annotations": { FAIL: value } } } });
    tenant.edit("web", &fail(json!("image-unavailable"))).await?;
    let dips = |one: &DynamicObject| {
        for (count, expected) in [("replicas", 2), ("readyReplicas", 1), ("updatedReplicas", 0)] {
            read::expect_at(one, &format!("/status/{count}"), &json!(expected))?;
        }
        says(one, "ReplicasReady", "False", "ImageUnavailable")
    };
    tenant.in_project(WORKLOAD_DEPLOYMENT, "web-us-dfw", dips).await?;
    tenant
        .in_project(WORKLOAD, "web", |one| {
            read::expect_at(one, "/status/updatedReplicas", &json!(0))
        })
        .await?;
    let stuck = cell.expect(INSTANCE, Some(&tenant.below), "web-us-dfw-1").await?;
    eventually("a Warning names the Instance and its reason", SOON, async || {
        let events = cell.list(EVENT, Some(&tenant.below), "").await?;
        let warns = events.iter().any(|one| {
            one.data["involvedObject"]["uid"] == read::uid(&stuck)
                && one.data["type"] == "Warning"
                && one.data["reason"] == "ImageUnavailable"
        });
        ensure!(warns, "{events:?}");
        Ok(())
    })
    .await?;
    tenant.edit("web", &fail(Value::Null)).await?;
    tenant.ready("web", 2).await.map(|_| ())
}

pub(crate) async fn scaled_down(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 3, |_| {}).await?;
    tenant.ready("web", 3).await?;
    let broken = json!({ "metadata": { "annotations": { FAIL: "crash-loop" } } });
    cell.merge(INSTANCE, Some(&tenant.below), "web-us-dfw-0", &broken)
        .await?;
    tenant
        .instance(&cell, "web-us-dfw-0", |one| {
            says(one, "Ready", "Unknown", "InstanceCrashing")
        })
        .await?;
    tenant.scale("web", CITY, 1).await?;
    eventually("only the broken one is left", SOON, async || {
        let left = tenant.instances(&cell).await?;
        ensure!(left.len() == 1 && left[0].0 == "web-us-dfw-0", "{left:?}");
        Ok(())
    })
    .await?;
    tenant.claims_are(&["web-us-dfw-0"]).await
}

pub(crate) async fn stuck(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 2, |_| {}).await?;
    tenant.ready("web", 2).await?;
    let fail = |value: Value| json!({ "metadata": { "annotations": { FAIL: value } } });
    cell.merge(
        INSTANCE,
        Some(&tenant.below),
        "web-us-dfw-1",
        &fail(json!("stuck-teardown")),
    )
    .await?;
    tenant.scale("web", CITY, 1).await?;
    tenant
        .in_cell(&cell, "web-us-dfw", |one| {
            says(one, "ReplicasReady", "False", "InstanceTerminating")
        })
        .await?;
    cell.merge(INSTANCE, Some(&tenant.below), "web-us-dfw-1", &fail(json!(null)))
        .await?;
    tenant.ready("web", 1).await.map(|_| ())
}

/// Karmada brings what changes and leaves the annotation where it is.
pub(crate) async fn paused(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 1, |_| {}).await?;
    tenant.ready("web", 1).await?;
    let pause = async |value: Value| {
        let patch = json!({ "metadata": { "annotations": { annotations::PAUSED: value } } });
        cell.merge(WORKLOAD_DEPLOYMENT, Some(&tenant.below), "web-us-dfw", &patch)
            .await
    };
    pause(json!("true")).await?;
    let is_paused = |one: &DynamicObject| {
        let reported = &read::condition(one, "Paused")?["status"];
        ensure!(reported == "True", "Paused is {reported}");
        Ok(())
    };
    tenant.in_cell(&cell, "web-us-dfw", is_paused).await?;
    tenant.scale("web", CITY, 2).await?;
    tenant
        .in_cell(&cell, "web-us-dfw", |one| {
            read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(2))?;
            is_paused(one)
        })
        .await?;
    // Bring it to a pass that would have made one.
    cell.delete(INSTANCE, Some(&tenant.below), "web-us-dfw-0").await?;
    gone(&cell, INSTANCE, &tenant.below, "web-us-dfw-0").await?;
    let left = tenant.instances(&cell).await?;
    ensure!(left.is_empty(), "{left:?}");
    pause(Value::Null).await?;
    tenant.ready("web", 2).await.map(|_| ())
}
