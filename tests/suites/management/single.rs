//! The e2e scenarios of upstream that concern the management plane, in mode `single` as there.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::labels;
use popcell_suites::read;
use popcell_test_support::kind::{INSTANCE, PROPAGATION_POLICY, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};
use serde_json::{Value, json};

use crate::tenant::{Tenant, expect_label, is_owned_by, same_spec};
use crate::world::{SOLO, World};

/// As long as upstream's test waits before it looks whether the policy is still there.
const UPSTREAM_WAIT: Duration = Duration::from_secs(8);

/// WorkloadDeployments as upstream's fixtures make them: without a Workload, in a city of lower case, which the project may
/// use.
async fn create(tenant: &Tenant, name: &str) -> Result<kube::api::DynamicObject> {
    let mut binding = objects::location_binding("dfw");
    binding["metadata"]["name"] = json!("dfw-in-lower-case");
    tenant.project.apply(&binding).await?;
    let mut fixture = tenant.deployment(name, "dfw", 1);
    fixture["spec"]["placementName"] = json!("default");
    if let Some(settings) = fixture["spec"]["scaleSettings"].as_object_mut() {
        settings.remove("instanceManagementPolicy");
    }
    tenant.project.create(&fixture, false).await
}

pub(crate) async fn federation(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, SOLO, namespace).await?;
    let mine = create(&tenant, "test-federation-wd").await?;
    let carried = tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "test-federation-wd", |one| same_spec(one, &mine))
        .await?;
    expect_label(&carried, labels::CITY_CODE, "dfw")?;
    let policy = tenant.policy("dfw").await?;
    let of_the_city = json!({ "matchLabels": { labels::CITY_CODE: "dfw" } });
    let selectors = read::at(&policy, "/spec/resourceSelectors");
    ensure!(
        selectors.as_array().map(Vec::len) == Some(1)
            && selectors[0]["kind"] == "WorkloadDeployment"
            && selectors[0]["labelSelector"] == of_the_city,
        "{selectors}"
    );
    read::expect_at(&policy, "/spec/placement/clusterAffinity/labelSelector", &of_the_city)?;
    let hub_namespace = tenant.hub_namespace_object().await?;
    expect_label(&hub_namespace, labels::UPSTREAM_CLUSTER_NAME, "cluster-single")
}

pub(crate) async fn cascade(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, SOLO, namespace).await?;
    create(&tenant, "test-cascade-wd").await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "test-cascade-wd", |_| Ok(()))
        .await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, "test-cascade-wd").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "test-cascade-wd").await?;
    tenant.gone_from_project(WORKLOAD_DEPLOYMENT, "test-cascade-wd").await
}

pub(crate) async fn policy(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, SOLO, namespace).await?;
    for name in ["wd-alpha", "wd-beta"] {
        create(&tenant, name).await?;
    }
    for name in ["wd-alpha", "wd-beta"] {
        tenant.in_hub(WORKLOAD_DEPLOYMENT, name, |_| Ok(())).await?;
    }
    tenant.policy("dfw").await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, "wd-alpha").await?;
    always("the policy stays", UPSTREAM_WAIT, async || {
        tenant
            .hub
            .expect(PROPAGATION_POLICY, Some(&tenant.hub_namespace), "city-dfw")
            .await
            .map(|_| ())
    })
    .await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, "wd-beta").await?;
    tenant.gone_from_hub(PROPAGATION_POLICY, "city-dfw").await
}

pub(crate) async fn projection(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, SOLO, namespace).await?;
    let mine = create(&tenant, "test-projector-wd").await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "test-projector-wd", |_| Ok(()))
        .await?;
    let mut copy = objects::instance_copy(&tenant.hub_namespace, "test-projector-wd", 0, "");
    copy["metadata"]["name"] = json!("test-projected-instance");
    copy["metadata"]["labels"] = labels_of(namespace, &read::uid(&mine));
    tenant.hub.create(&copy, false).await?;
    let projection = tenant
        .in_project(INSTANCE, "test-projected-instance", |_| Ok(()))
        .await?;
    ensure!(is_owned_by(&projection, &mine), "{:?}", projection.metadata);
    expect_label(&projection, labels::UPSTREAM_CLUSTER_NAME, "cluster-single")
}

fn labels_of(namespace: &str, uid: &str) -> Value {
    json!({
        labels::UPSTREAM_CLUSTER_NAME: "cluster-single",
        labels::UPSTREAM_NAMESPACE: namespace,
        labels::WORKLOAD_DEPLOYMENT_NAME: "test-projector-wd",
        labels::WORKLOAD_DEPLOYMENT_UID: uid,
    })
}
