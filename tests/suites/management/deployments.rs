//! Workloads that become WorkloadDeployments in the hub and in cells.

use anyhow::{Result, ensure};
use popcell_api::{annotations, labels};
use popcell_suites::environment::{DFW, ORD};
use popcell_suites::read;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::objects;
use serde_json::json;

use crate::environment::{Environment, P1, P2};
use popcell_suites::tenant::{Tenant, annotation, expect_label, is_owned_by, same_spec};

const ALL: [(&str, &str); 3] = [("web-us-dfw", "DFW"), ("web-us-ord", "ORD"), ("web-eu-lhr", "LHR")];

pub(crate) async fn everywhere(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let workload = tenant
        .workload("web", &[("us", &["DFW", "ORD"], 2), ("eu", &["LHR"], 1)])
        .await?;
    for (name, city) in ALL {
        let mine = tenant.in_project(WORKLOAD_DEPLOYMENT, name, |_| Ok(())).await?;
        ensure!(is_owned_by(&mine, &workload), "{:?}", mine.metadata.owner_references);
        let carried = tenant
            .in_hub(WORKLOAD_DEPLOYMENT, name, |one| same_spec(one, &mine))
            .await?;
        expect_label(&carried, labels::CITY_CODE, city)?;
        expect_label(&carried, labels::UPSTREAM_NAMESPACE, namespace)?;
        expect_label(&carried, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)?;
        ensure!(annotation(&carried, annotations::UPSTREAM_UID) == read::uid(&mine));
        is_the_policy(&tenant, city).await?;
    }
    let hub_namespace = tenant.hub_namespace_object().await?;
    expect_label(&hub_namespace, labels::UPSTREAM_CLUSTER_NAME, "cluster-p1")?;
    expect_label(&hub_namespace, labels::UPSTREAM_NAMESPACE, namespace)?;

    for (cell, expected) in [(DFW, "web-us-dfw"), (ORD, "web-us-ord")] {
        let cell = environment.lab.plane(cell).await?;
        tenant.in_cell(&cell, expected, |_| Ok(())).await?;
        let found = cell.list(WORKLOAD_DEPLOYMENT, Some(&tenant.below), "").await?;
        ensure!(found.len() == 1, "{} has {} of them", cell.name(), found.len());
    }
    tenant
        .in_project(WORKLOAD, "web", |workload| {
            read::expect_at(workload, "/status/deployments", &json!(3))?;
            read::expect_at(
                workload,
                "/status/observedGeneration",
                &json!(workload.metadata.generation),
            )
        })
        .await?;

    tenant
        .place("web", &[("us", &["DFW", "ORD"], 3), ("eu", &["LHR"], 1)])
        .await?;
    let dfw = environment.lab.plane(DFW).await?;
    let three = read::replicas(3);
    tenant.in_cell(&dfw, "web-us-dfw", three).await?;
    let mine = tenant.in_project(WORKLOAD_DEPLOYMENT, "web-us-dfw", three).await?;
    let carried = tenant.now_in_hub("web-us-dfw").await?;
    let generation = annotation(&carried, annotations::UPSTREAM_GENERATION);
    ensure!(generation == mine.metadata.generation.unwrap_or_default().to_string());
    Ok(())
}

async fn is_the_policy(tenant: &Tenant, city: &str) -> Result<()> {
    let policy = tenant.policy(city).await?;
    let wanted = objects::city_policy(&tenant.below, city);
    read::expect_at(
        &policy,
        "/spec/placement/clusterAffinity",
        &wanted["spec"]["placement"]["clusterAffinity"],
    )?;
    let selectors = read::at(&policy, "/spec/resourceSelectors");
    ensure!(
        selectors.as_array().is_some_and(|all| all.len() == 1)
            && selectors[0]["labelSelector"]["matchLabels"] == json!({ labels::CITY_CODE: city }),
        "{selectors}"
    );
    Ok(())
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
        tenant.in_cell(&dfw, "web-us-dfw", mine).await?;
        tenant.report(&dfw, "web-us-dfw", replicas, replicas).await?;
    }
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        tenant.shown("web-us-dfw", replicas).await?;
    }
    tenants[0].delete(WORKLOAD, "web").await?;
    tenants[0].gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw").await?;
    tenants[1].now_in_hub("web-us-dfw").await.map(|_| ())
}
