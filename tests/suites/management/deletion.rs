//! What is deleted in a project goes from the hub and from cells.

use anyhow::{Result, ensure};
use popcell_api::finalizers;
use popcell_suites::steps::gone;
use popcell_suites::world::{DFW, ORD};
use popcell_test_support::always;
use popcell_test_support::kind::{PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};

use crate::tenant::Tenant;
use crate::world::{P1, WATCHED, World};

pub(crate) async fn cascade(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW", "ORD"], 1)]).await?;
    let cells = [
        (world.lab.plane(DFW).await?, "web-us-dfw"),
        (world.lab.plane(ORD).await?, "web-us-ord"),
    ];
    for (cell, name) in &cells {
        tenant.in_cell(cell, name, |_| Ok(())).await?;
    }
    for (kind, name, finalizer) in [
        (WORKLOAD, "web", finalizers::WORKLOAD_CONTROLLER),
        (WORKLOAD_DEPLOYMENT, "web-us-dfw", finalizers::FEDERATOR),
    ] {
        tenant
            .in_project(kind, name, |one| {
                let found = one.metadata.finalizers.clone().unwrap_or_default();
                ensure!(found.iter().any(|each| each == finalizer), "{found:?}");
                Ok(())
            })
            .await?;
    }
    tenant.delete(WORKLOAD, "web").await?;
    tenant.gone_from_project(WORKLOAD, "web").await?;
    for (cell, name) in &cells {
        tenant.gone_from_project(WORKLOAD_DEPLOYMENT, name).await?;
        tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, name).await?;
        gone(cell, WORKLOAD_DEPLOYMENT, &tenant.hub_namespace, name).await?;
    }
    for policy in ["city-dfw", "city-ord"] {
        tenant.gone_from_hub(PROPAGATION_POLICY, policy).await?;
    }
    // The namespace is current while the project's lives.
    tenant.hub_namespace_object().await.map(|_| ())
}

pub(crate) async fn last_of_a_city(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P1, namespace).await?;
    for name in ["alpha", "beta"] {
        tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
    }
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "alpha-us-lhr", |_| Ok(())).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "beta-us-lhr", |_| Ok(())).await?;
    let policy = tenant.policy("LHR").await?;
    tenant.delete(WORKLOAD, "alpha").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "alpha-us-lhr").await?;
    always("the policy stays", WATCHED, async || {
        let now = tenant
            .hub
            .expect(PROPAGATION_POLICY, Some(&tenant.hub_namespace), "city-lhr")
            .await?;
        ensure!(now.metadata.uid == policy.metadata.uid && now.metadata.deletion_timestamp.is_none());
        Ok(())
    })
    .await?;
    tenant.delete(WORKLOAD, "beta").await?;
    tenant.gone_from_hub(PROPAGATION_POLICY, "city-lhr").await
}
