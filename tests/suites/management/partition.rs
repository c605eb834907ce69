//! A cell that is cut off from the hub: its agent does not run.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::steps::{awaited, gone};
use popcell_suites::world::{ORD, SOON};
use popcell_test_support::kind::{CLUSTER, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually};
use serde_json::{Value, json};

use crate::tenant::Tenant;
use crate::world::{P1, WATCHED, World};

const NAME: &str = "web-us-ord";
const FINALIZER: &str = "popcell.test/cell";

pub(crate) async fn deleted_meanwhile(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P1, namespace).await?;
    tenant.workload("web", &[("us", &["ORD"], 1)]).await?;
    let ord = world.lab.plane(ORD).await?;
    tenant.in_cell(&ord, NAME, |_| Ok(())).await?;
    // As the cell's own controller holds it until its Instances are gone.
    finalize(&ord, &tenant.hub_namespace, &json!([FINALIZER])).await?;

    let agent = format!("karmada-agent-{ORD}");
    world.lab.stop(&agent).await?;
    let meanwhile = while_it_is_cut_off(world, &tenant, &ord).await;
    world.lab.start_process(&agent).await?;
    meanwhile?;
    awaited(&ord, WORKLOAD_DEPLOYMENT, &tenant.hub_namespace, NAME, |one| {
        ensure!(one.metadata.deletion_timestamp.is_some(), "it stays");
        Ok(())
    })
    .await?;
    finalize(&ord, &tenant.hub_namespace, &json!([])).await?;
    gone(&ord, WORKLOAD_DEPLOYMENT, &tenant.hub_namespace, NAME).await?;
    eventually("the cell is not silent any more", SOON, async || {
        ensure!(silent(world).await?.is_none(), "{:?}", silent(world).await?);
        Ok(())
    })
    .await
}

/// The project's deployment goes without waiting for the cell, where the object stays as it is.
async fn while_it_is_cut_off(world: &World, tenant: &Tenant, ord: &Plane) -> Result<()> {
    tenant.delete(WORKLOAD, "web").await?;
    tenant.gone_from_project(WORKLOAD, "web").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, NAME).await?;
    always("the cell has it", WATCHED, async || {
        let there = ord
            .expect(WORKLOAD_DEPLOYMENT, Some(&tenant.hub_namespace), NAME)
            .await?;
        ensure!(there.metadata.deletion_timestamp.is_none(), "it is going");
        Ok(())
    })
    .await?;
    // Karmada finds out by itself, after a while.
    let cluster = tenant.hub.expect(CLUSTER, None, ORD).await?;
    tenant.hub.set_status(CLUSTER, None, ORD, &not_ready(&cluster)).await?;
    eventually("the cell's silence has an age", SOON, async || {
        ensure!(
            silent(world).await?.is_some_and(|age| age > 1.0),
            "{:?}",
            silent(world).await?
        );
        Ok(())
    })
    .await
}

/// The age of what the cell last said, while it is silent.
async fn silent(world: &World) -> Result<Option<f64>> {
    let page = world.controller.lock().await.metrics().await?;
    let series = format!("popcell_status_age_seconds{{source_cluster=\"{ORD}\"}} ");
    let age = page.lines().find_map(|line| line.strip_prefix(&series));
    Ok(age.map(str::parse).transpose()?)
}

fn not_ready(cluster: &DynamicObject) -> Value {
    let now = cluster.data["status"]["conditions"][0]["lastTransitionTime"].clone();
    let mut status = cluster.data["status"].clone();
    status["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "Test", "message": "", "lastTransitionTime": now,
    }]);
    status
}

async fn finalize(cell: &Plane, namespace: &str, finalizers: &Value) -> Result<()> {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    cell.merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &patch)
        .await
        .map(|_| ())
}
