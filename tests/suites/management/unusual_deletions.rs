//! Deleting in odd ways: with `orphan`, twice in the foreground, held by another.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use popcell_suites::environment::SOON;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-lhr";
const HELD: &str = "popcell.test/held";

async fn delete(tenant: &Tenant, how: &DeleteParams) -> Result<()> {
    let api = tenant.project.api(WORKLOAD, Some(&tenant.namespace));
    api.delete("web", how).await?;
    Ok(())
}

async fn carried(tenant: &Tenant) -> Result<()> {
    tenant.workload("web", &[("us", &["LHR"], 1)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await.map(|_| ())
}

/// Everything ends, whatever the cascade.
async fn ended(tenant: &Tenant) -> Result<()> {
    tenant.gone_from_project(WORKLOAD_DEPLOYMENT, NAME).await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, NAME).await?;
    tenant.gone_from_project(WORKLOAD, "web").await
}

/// With orphan our finalizer takes the WorkloadDeployments along all the same.
pub(crate) async fn in_any_way(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    carried(&tenant).await?;
    delete(&tenant, &DeleteParams::orphan()).await?;
    ended(&tenant).await?;
    carried(&tenant).await?;
    delete(&tenant, &DeleteParams::foreground()).await?;
    // It may be gone by now.
    let _ = delete(&tenant, &DeleteParams::foreground()).await;
    ended(&tenant).await
}

/// The age of the oldest deletion is told while a finalizer holds it, and no longer.
pub(crate) async fn age(environment: &Environment, namespace: &str) -> Result<()> {
    const OLD: f64 = 4.0;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let mut workload = objects::workload(namespace, "web", &[("us", &["LHR"], 1)]);
    workload["metadata"]["finalizers"] = json!([HELD]);
    tenant.project.create(&workload, false).await?;
    delete(&tenant, &DeleteParams::background()).await?;
    let reported = async || -> Result<f64> {
        let controller = environment.controller.lock().await;
        let labels = ["plane_kind=\"project\"", "kind=\"Workload\""];
        controller.metric("popcell_oldest_deletion_seconds", &labels).await
    };
    eventually("the deletion has an age", SOON, async || {
        let age = reported().await?;
        ensure!(age > OLD, "{age}");
        Ok(())
    })
    .await?;
    let release = json!({ "metadata": { "finalizers": [] } });
    tenant.project.merge(WORKLOAD, Some(namespace), "web", &release).await?;
    eventually("the deletion has ended", SOON, async || {
        let age = reported().await?;
        ensure!(age < OLD, "{age}");
        Ok(())
    })
    .await
}
