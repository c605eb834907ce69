//! Deleting in odd ways: with `orphan`, twice in the foreground, edited meanwhile.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, DynamicObject};
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::{Tenant, is_owned_by};

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

fn only_held(workload: &DynamicObject) -> Result<()> {
    let finalizers = &workload.metadata.finalizers;
    ensure!(*finalizers == Some(vec![HELD.to_owned()]), "{finalizers:?}");
    Ok(())
}

/// A finalizer of another client's holds the Workload after all is done for it; what it then asks for is not done.
pub(crate) async fn edited_while_it_goes(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let mut workload = objects::workload(namespace, "web", &[("us", &["LHR"], 1)]);
    workload["metadata"]["finalizers"] = json!([HELD]);
    let mine = tenant.project.create(&workload, false).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await?;
    delete(&tenant, &DeleteParams::background()).await?;
    tenant.gone_from_project(WORKLOAD_DEPLOYMENT, NAME).await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, NAME).await?;
    // Its WorkloadDeployments are gone before our finalizer is.
    tenant.in_project(WORKLOAD, "web", only_held).await?;

    tenant.place("web", &[("us", &["DFW"], 2)]).await?;
    let unexpected = tenant.direct("stray", "LHR", 1);
    tenant.project.create(&unexpected, false).await?;
    always("nothing is made or adopted", WATCHED, async || {
        let now = tenant.project.expect(WORKLOAD, Some(namespace), "web").await?;
        only_held(&now)?;
        let found = tenant.project.list(WORKLOAD_DEPLOYMENT, Some(namespace), "").await?;
        let owned = |one: &&DynamicObject| is_owned_by(one, &mine);
        ensure!(found.len() == 1 && found.iter().find(owned).is_none(), "{found:?}");
        Ok(())
    })
    .await?;
    let release = json!({ "metadata": { "finalizers": [] } });
    tenant.project.merge(WORKLOAD, Some(namespace), "web", &release).await?;
    tenant.gone_from_project(WORKLOAD, "web").await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "stray", |_| Ok(())).await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, "stray").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "stray").await
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

/// One in the hub without an owner is counted while it is there, and left alone.
pub(crate) async fn orphans(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    carried(&tenant).await?;
    let counted = async || -> Result<f64> {
        let controller = environment.controller.lock().await;
        controller
            .metric("popcell_orphans", &["kind=\"WorkloadDeployment\""])
            .await
    };
    let before = counted().await?;
    let mine = tenant.now_in_hub(NAME).await?;
    let mut orphan = serde_json::to_value(&mine)?;
    orphan["metadata"] = json!({
        "namespace": tenant.below, "name": "orphan",
        "labels": mine.metadata.labels, "annotations": mine.metadata.annotations,
    });
    if let Some(orphan) = orphan.as_object_mut() {
        orphan.remove("status");
    }
    tenant.hub.create(&orphan, false).await?;
    let becomes = async |expected: f64| {
        eventually(&format!("{expected} orphans"), SOON, async || {
            let found = counted().await?;
            ensure!((found - expected).abs() < 0.5, "{found}");
            Ok(())
        })
        .await
    };
    becomes(before + 1.0).await?;
    let there = tenant.now_in_hub("orphan").await?;
    ensure!(there.metadata.deletion_timestamp.is_none() && !read::uid(&there).is_empty());
    tenant
        .hub
        .delete(WORKLOAD_DEPLOYMENT, Some(&tenant.below), "orphan")
        .await?;
    becomes(before).await
}
