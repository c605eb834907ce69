//! Repairs of Instances in a cell, and a WorkloadDeployment that is paused there.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_suites::environment::DFW;
use popcell_suites::read::{self, says};
use popcell_suites::steps::{gone, warned};
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::{FAIL, Failure};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];

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
    let fail = async |failure: Value| {
        let template = json!({ "metadata": { "annotations": { FAIL: failure } } });
        tenant.edit("web", &json!({ "template": template })).await
    };
    let first = "web-us-dfw-0";
    let told = async |reason| {
        warned(&cell, &tenant.below, first, reason).await?;
        warned(&tenant.project, &tenant.namespace, first, reason).await
    };
    told("ImageUnavailable").await?;
    for (failure, reason) in [
        (Failure::CrashLoop, "InstanceCrashing"),
        (Failure::ConfigurationError, "ConfigurationError"),
        (Failure::NetworkFailure, "NetworkFailedToCreate"),
    ] {
        fail(json!(failure.name())).await?;
        told(reason).await?;
    }
    fail(Value::Null).await?;
    tenant.ready("web", 2).await.map(|_| ())
}

/// Karmada brings what changes and leaves the annotation where it is.
pub(crate) async fn paused(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", CITY, 1).await?;
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
            read::replicas(2)(one)?;
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
