//! Projects with equal names in them, and one that is deleted and comes again.

use anyhow::{Context, Result, ensure};
use popcell_api::annotations;
use popcell_suites::definitions::{ready_project, set_ready};
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone};
use popcell_test_support::kind::{NAMESPACE, PROJECT, WORKLOAD, WORKLOAD_DEPLOYMENT};

use crate::environment::{Environment, INFRA, P1, P2, P3};
use popcell_suites::tenant::{Tenant, annotation};

const NAME: &str = "web-us-dfw";

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
            read::replicas(1)(one)
        })
        .await?;

    // Once more, of one that was not Ready: no event of its Project leads to what it has in the hub.
    set_ready(&infra, P3, "False").await?;
    infra.delete(PROJECT, None, P3).await?;
    gone(&tenant.hub, NAMESPACE, "", &tenant.below).await
}

pub(crate) async fn apart(environment: &Environment, namespace: &str) -> Result<()> {
    let tenants = [
        Tenant::new(&environment.lab, P1, namespace).await?,
        Tenant::new(&environment.lab, P2, namespace).await?,
    ];
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        tenant.workload("web", &[("us", &["DFW"], replicas)]).await?;
    }
    ensure!(tenants[0].below != tenants[1].below);
    let dfw = environment.lab.plane(DFW).await?;
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        let mine = read::replicas(replicas);
        tenant.in_cell(&dfw, NAME, mine).await?;
        tenant.report(&dfw, NAME, replicas, replicas).await?;
    }
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        tenant.shown(NAME, replicas).await?;
    }
    tenants[0].delete(WORKLOAD, "web").await?;
    tenants[0].gone_from_hub(WORKLOAD_DEPLOYMENT, NAME).await?;
    tenants[1].now_in_hub(NAME).await.map(|_| ())
}
