//! Providers that flap or fight, and what hands take off: stamps, and copies on the hub.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{annotations, labels};
use popcell_suites::environment::DFW;
use popcell_suites::read::{self, says};
use popcell_test_support::kind::INSTANCE;
use popcell_test_support::stand_ins::{FAIL, Failure};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
const NAME: &str = "web-us-dfw-0";
/// How long reconciles are counted.
const COUNTED: Duration = Duration::from_secs(10);
/// Passes of all reconcilers in that time that are no storm: some for each of the providers' writes.
const BOUNDED: f64 = 500.0;
/// Burst and pace of the reconciles of two Instances in that time, and as much again for all others.
const OF_INSTANCES: f64 = 3.0 * (30.0 + 10.0);

fn failing(failure: Failure) -> impl FnOnce(&mut Value) {
    move |workload| workload["spec"]["template"]["metadata"] = json!({ "annotations": { FAIL: failure.name() } })
}

/// Passes of all reconcilers, and of the one of Instances.
async fn reconciles(environment: &Environment) -> Result<[f64; 2]> {
    let controller = environment.cells[0].lock().await;
    let of_instances = ["reconciler=\"instance\""];
    Ok([
        controller.metric("controller_runtime_reconcile_total", &[]).await?,
        controller.metric("popcell_reconciles_total", &of_instances).await?,
    ])
}

/// A provider that comes and goes, and one that writes Ready itself, against the contract, whenever we have.
pub(crate) async fn misbehaving(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", CITY, 1, failing(Failure::Flapping)).await?;
    tenant.deploy("fought", CITY, 1, failing(Failure::WritesReady)).await?;
    let programmed = |one: &DynamicObject| says(one, "Programmed", "True", "Programmed");
    tenant.instance(&cell, "fought-us-dfw-0", programmed).await?;
    let created = tenant.instance(&cell, NAME, |_| Ok(())).await?;
    for ready in ["True", "False", "True"] {
        tenant
            .instance(&cell, NAME, |one| {
                let found = &read::condition(one, "Ready")?["status"];
                ensure!(found == ready, "Ready is {found}");
                Ok(())
            })
            .await?;
    }
    let before = reconciles(environment).await?;
    tokio::time::sleep(COUNTED).await;
    let after = reconciles(environment).await?;
    let [all, of_instances] = [after[0] - before[0], after[1] - before[1]];
    eprintln!("odd: {all} reconciles in {COUNTED:?}, {of_instances} of them of Instances");
    ensure!(
        all < BOUNDED && of_instances <= OF_INSTANCES,
        "a storm of {all} reconciles in {COUNTED:?}"
    );
    environment.cells[0].lock().await.expect_alive()?;
    let now = tenant.instance(&cell, NAME, |_| Ok(())).await?;
    ensure!(read::uid(&now) == read::uid(&created), "it was replaced");
    for name in ["web", "fought"] {
        tenant.clean(name).await?;
    }
    tenant.claims_are(&[]).await
}

pub(crate) async fn stamps_taken_off(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.runs("web", CITY, 1).await?;
    let copy = tenant.in_hub(INSTANCE, NAME, read::is_ready).await?;
    let claim = tenant
        .in_project(RESOURCE_CLAIM, "instance-web-us-dfw-0", |_| Ok(()))
        .await?;
    let off = json!({ "metadata": {
        "labels": { labels::MANAGED_BY: null, labels::CLAIMED_BY: null, labels::WORKLOAD_NAME: null },
        "annotations": { annotations::SOURCE_UID: null },
    } });
    tenant.hub.merge(INSTANCE, Some(&tenant.below), NAME, &off).await?;
    // As they were before.
    tenant
        .in_hub(INSTANCE, NAME, |now| {
            ensure!(read::uid(now) == read::uid(&copy), "it was recreated");
            ensure!(now.metadata.labels == copy.metadata.labels, "{:?}", now.metadata.labels);
            ensure!(
                now.metadata.annotations == copy.metadata.annotations,
                "{:?}",
                now.metadata.annotations
            );
            Ok(())
        })
        .await?;
    // All at once leave its name, its consumer and its amounts, and that it is granted.
    for off in [
        json!({ "labels": { labels::INSTANCE_NAMESPACE: null } }),
        json!({ "annotations": { annotations::SOURCE_UID: null } }),
        // The label that the cell watches its claims by, and that its rights go by.
        json!({ "labels": { labels::SOURCE_CLUSTER: null } }),
        json!({ "labels": { labels::SOURCE_CLUSTER: null, labels::INSTANCE_NAMESPACE: null },
            "annotations": { annotations::SOURCE_UID: null } }),
    ] {
        let off = json!({ "metadata": off });
        tenant
            .project
            .merge(RESOURCE_CLAIM, Some(&tenant.namespace), "instance-web-us-dfw-0", &off)
            .await?;
        tenant
            .in_project(RESOURCE_CLAIM, "instance-web-us-dfw-0", |now| {
                ensure!(read::uid(now) == read::uid(&claim), "it was recreated");
                ensure!(
                    now.metadata.labels == claim.metadata.labels,
                    "{:?}",
                    now.metadata.labels
                );
                ensure!(
                    now.metadata.annotations == claim.metadata.annotations,
                    "{:?}",
                    now.metadata.annotations
                );
                Ok(())
            })
            .await?;
    }
    tenant.ready("web", 1).await?;
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await
}

pub(crate) async fn copy_deleted(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.runs("web", CITY, 1).await?;
    let copy = tenant.in_hub(INSTANCE, NAME, read::is_ready).await?;
    tenant.hub.delete(INSTANCE, Some(&tenant.below), NAME).await?;
    tenant
        .in_hub(INSTANCE, NAME, |other| {
            ensure!(read::uid(other) != read::uid(&copy), "it is the same");
            read::is_ready(other)
        })
        .await?;
    tenant.clean("web").await
}
