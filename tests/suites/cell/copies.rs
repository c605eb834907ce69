//! Copies of Instances on the hub.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::labels;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read::{self, says};
use popcell_suites::steps::awaited;
use popcell_test_support::kind::INSTANCE;
use popcell_test_support::stand_ins::FAIL;
use popcell_test_support::{eventually, objects};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

/// As upstream's e2e tests have it: an Instance of no WorkloadDeployment, in a namespace whose hub Namespace says whose it
/// is.
pub(crate) async fn bare(environment: &Environment, namespace: &str) -> Result<()> {
    let cell = environment.lab.plane(DFW).await?;
    let hub = environment.lab.hub().await?;
    let below = format!("{namespace}-e5");
    cell.apply(&objects::namespace(&below)).await?;
    let mut labelled = objects::namespace(&below);
    labelled["metadata"]["labels"] = json!({
        labels::UPSTREAM_CLUSTER_NAME: "cluster-elsewhere",
        labels::UPSTREAM_NAMESPACE: "default",
    });
    hub.apply(&labelled).await?;
    let mut instance = objects::instance_copy(&below, "web", 0, "");
    instance["metadata"] = json!({ "namespace": below, "name": "test-writeback-instance" });
    instance["spec"]["controller"] = json!({ "templateHash": "h", "schedulingGates": [{ "name": "Quota" }] });
    cell.create(&instance, false).await?;
    let copy = awaited(&hub, INSTANCE, &below, "test-writeback-instance", |copy| {
        says(copy, "Ready", "False", "SchedulingGatesPresent")
    })
    .await?;
    let labels = copy.metadata.labels.unwrap_or_default();
    ensure!(
        labels.get(labels::UPSTREAM_CLUSTER_NAME).map(String::as_str) == Some("cluster-elsewhere")
            && labels.get(labels::UPSTREAM_NAMESPACE).map(String::as_str) == Some("default")
            && labels.get(labels::SOURCE_CLUSTER).map(String::as_str) == Some(DFW),
        "{labels:?}"
    );
    ensure!(
        copy.metadata.owner_references.is_none(),
        "{:?}",
        copy.metadata.owner_references
    );
    cell.delete(INSTANCE, Some(&below), "test-writeback-instance").await?;
    popcell_suites::steps::gone(&hub, INSTANCE, &below, "test-writeback-instance").await
}

pub(crate) async fn deleted(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.deploy("web", &["DFW"], 1, |_| {}).await?;
    tenant.ready("web", 1).await?;
    let name = "web-us-dfw-0";
    let copy = awaited(&tenant.hub, INSTANCE, &tenant.below, name, |one| {
        says(one, "Ready", "True", "Available")
    })
    .await?;
    tenant.hub.delete(INSTANCE, Some(&tenant.below), name).await?;
    eventually("another copy says the same", SOON, async || {
        let other = tenant.hub.expect(INSTANCE, Some(&tenant.below), name).await?;
        ensure!(read::uid(&other) != read::uid(&copy), "it is the same");
        says(&other, "Ready", "True", "Available")
    })
    .await
}

/// A slot that lost its Instance waits for the one before it: what is shown of it says that there is none.
pub(crate) async fn of_an_empty_slot(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", &["DFW"], 2, |_| {}).await?;
    tenant.ready("web", 2).await?;
    let fails = async |failure: Value| {
        let broken = json!({ "metadata": { "annotations": { FAIL: failure } } });
        cell.merge(INSTANCE, Some(&tenant.below), "web-us-dfw-0", &broken).await
    };
    fails(json!("crash-loop")).await?;
    tenant
        .instance(&cell, "web-us-dfw-0", |one| {
            says(one, "Ready", "Unknown", "InstanceCrashing")
        })
        .await?;
    cell.delete(INSTANCE, Some(&tenant.below), "web-us-dfw-1").await?;
    let is_made_anew = |one: &DynamicObject| says(one, "Ready", "False", "Pending");
    awaited(&tenant.hub, INSTANCE, &tenant.below, "web-us-dfw-1", is_made_anew).await?;
    tenant.in_project(INSTANCE, "web-us-dfw-1", is_made_anew).await?;
    let left = tenant.instances(&cell).await?;
    ensure!(left.len() == 1, "{left:?}");
    fails(Value::Null).await?;
    tenant.ready("web", 2).await?;
    let runs = |one: &DynamicObject| says(one, "Ready", "True", "Available");
    tenant.in_project(INSTANCE, "web-us-dfw-1", runs).await.map(|_| ())
}
