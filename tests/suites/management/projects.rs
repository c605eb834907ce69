//! Projects that come and go.

use anyhow::{Context, Result, ensure};
use popcell_api::annotations;
use popcell_suites::definitions::{ready_project, set_ready};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone};
use popcell_test_support::kind::{NAMESPACE, PROJECT, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, eventually};
use serde_json::json;

use crate::environment::{Environment, INFRA, P2, P3, WATCHED, watches};
use popcell_suites::tenant::{Tenant, annotation};

const NAME: &str = "web-us-dfw";

/// Waits until the server has so many watches of WorkloadDeployments.
async fn watched(tenant: &Tenant, expected: f64) -> Result<()> {
    eventually(&format!("{expected} watches"), SOON, async || {
        let found = watches(&tenant.project, "workloaddeployments").await?;
        ensure!((found - expected).abs() < 0.5, "{found}");
        Ok(())
    })
    .await
}

pub(crate) async fn not_ready(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let infra = environment.lab.plane(INFRA).await?;
    for name in ["web", "old"] {
        tenant.workload(name, &[("us", &["DFW"], 1)]).await?;
    }
    let carried = tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "old-us-dfw", |_| Ok(())).await?;
    let before = watches(&tenant.project, "workloaddeployments").await?;

    set_ready(&infra, P2, "False").await?;
    let left = while_it_is_not_ready(&tenant, before, &read::uid(&carried)).await;
    set_ready(&infra, P2, "True").await?;
    left?;
    watched(&tenant, before).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "new-us-dfw", |_| Ok(())).await?;
    tenant.gone_from_project(WORKLOAD, "old").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "old-us-dfw").await?;
    let now = tenant.now_in_hub(NAME).await?;
    ensure!(read::uid(&now) == read::uid(&carried), "it was recreated");
    Ok(())
}

async fn while_it_is_not_ready(tenant: &Tenant, before: f64, uid: &str) -> Result<()> {
    watched(tenant, before - 1.0).await?;
    tenant.workload("new", &[("us", &["DFW"], 1)]).await?;
    tenant.delete(WORKLOAD, "old").await?;
    always("nothing is done for it", WATCHED, async || {
        let new = tenant.project.expect(WORKLOAD, Some(&tenant.namespace), "new").await?;
        ensure!(new.metadata.finalizers.is_none(), "{:?}", new.metadata.finalizers);
        let now = tenant.now_in_hub(NAME).await?;
        ensure!(read::uid(&now) == uid && now.metadata.deletion_timestamp.is_none());
        tenant.now_in_hub("old-us-dfw").await.map(|_| ())
    })
    .await
}

pub(crate) async fn deleted(environment: &Environment, namespace: &str) -> Result<()> {
    let infra = environment.lab.plane(INFRA).await?;
    ready_project(&infra, P3).await?;
    let tenant = Tenant::new(&environment.lab, P3, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 1)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.in_cell(&dfw, NAME, |_| Ok(())).await?;
    let project = infra.expect(PROJECT, None, P3).await?;
    let hub_namespace = tenant.hub_namespace_object().await?;
    ensure!(annotation(&hub_namespace, annotations::UPSTREAM_PROJECT_UID) == read::uid(&project));

    infra.delete(PROJECT, None, P3).await?;
    let noted = awaited(&tenant.hub, NAMESPACE, "", &tenant.below, |one| {
        let since = annotation(one, annotations::PROJECT_GONE_SINCE);
        ensure!(!since.is_empty(), "not noted");
        Ok(())
    })
    .await?;
    ensure!(noted.metadata.deletion_timestamp.is_none(), "there was no grace");
    tenant.now_in_hub(NAME).await.context("there was no grace")?;
    gone(&tenant.hub, NAMESPACE, "", &tenant.below).await?;
    gone(&dfw, WORKLOAD_DEPLOYMENT, &tenant.below, NAME).await?;
    let mine = tenant
        .project
        .expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME)
        .await?;
    ensure!(
        mine.metadata.deletion_timestamp.is_none(),
        "its own objects are its own"
    );

    // Another Project of the name, which has them again.
    ready_project(&infra, P3).await?;
    let back = awaited(&tenant.hub, NAMESPACE, "", &tenant.below, |_| Ok(())).await?;
    let project = infra.expect(PROJECT, None, P3).await?;
    ensure!(annotation(&back, annotations::UPSTREAM_PROJECT_UID) == read::uid(&project));
    tenant
        .in_cell(&dfw, NAME, |one| {
            ensure!(one.metadata.deletion_timestamp.is_none(), "it is going");
            read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(1))
        })
        .await?;

    // Once more, of one that was not Ready: no event of its Project leads to what it has in the hub.
    set_ready(&infra, P3, "False").await?;
    infra.delete(PROJECT, None, P3).await?;
    gone(&tenant.hub, NAMESPACE, "", &tenant.below).await
}
