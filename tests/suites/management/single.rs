//! The e2e scenarios of upstream that concern the management plane, in mode `single` as there.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::labels;
use popcell_suites::read;
use popcell_test_support::kind::{INSTANCE, PROPAGATION_POLICY, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};
use serde_json::json;

use crate::environment::{Environment, SOLO, WATCHED};
use popcell_suites::tenant::{Tenant, expect_label, is_owned_by, same_spec};

const ALPHA: &str = "wd-alpha";
const BETA: &str = "wd-beta";

/// WorkloadDeployments as upstream's fixtures make them: without a Workload, in a city of lower case, which the project may
/// use.
async fn create(tenant: &Tenant, name: &str) -> Result<DynamicObject> {
    let mut binding = objects::location_binding("dfw");
    binding["metadata"]["name"] = json!("dfw-in-lower-case");
    tenant.project.apply(&binding).await?;
    let mut fixture = tenant.direct(name, "dfw", 1);
    fixture["spec"]["placementName"] = json!("default");
    if let Some(settings) = fixture["spec"]["scaleSettings"].as_object_mut() {
        settings.remove("instanceManagementPolicy");
    }
    tenant.project.create(&fixture, false).await
}

pub(crate) async fn whole(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, SOLO, namespace).await?;
    let mine = create(&tenant, ALPHA).await?;
    create(&tenant, BETA).await?;
    let carried = tenant
        .in_hub(WORKLOAD_DEPLOYMENT, ALPHA, |one| same_spec(one, &mine))
        .await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, BETA, |_| Ok(())).await?;
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
    expect_label(&hub_namespace, labels::UPSTREAM_CLUSTER_NAME, "cluster-single")?;
    projected(&tenant, &mine).await?;

    tenant.delete(WORKLOAD_DEPLOYMENT, ALPHA).await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, ALPHA).await?;
    tenant.gone_from_project(WORKLOAD_DEPLOYMENT, ALPHA).await?;
    always("the policy stays", WATCHED, async || {
        let here = Some(tenant.below.as_str());
        let now = tenant.hub.expect(PROPAGATION_POLICY, here, "city-dfw").await?;
        ensure!(now.metadata.uid == policy.metadata.uid && now.metadata.deletion_timestamp.is_none());
        Ok(())
    })
    .await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, BETA).await?;
    tenant.gone_from_hub(PROPAGATION_POLICY, "city-dfw").await
}

async fn projected(tenant: &Tenant, mine: &DynamicObject) -> Result<()> {
    let mut copy = objects::instance_copy(&tenant.below, ALPHA, 0, "");
    copy["metadata"]["name"] = json!("test-projected-instance");
    copy["metadata"]["labels"] = json!({
        labels::UPSTREAM_CLUSTER_NAME: "cluster-single",
        labels::UPSTREAM_NAMESPACE: tenant.namespace,
        labels::WORKLOAD_DEPLOYMENT_NAME: ALPHA,
        labels::WORKLOAD_DEPLOYMENT_UID: read::uid(mine),
    });
    tenant.hub.create(&copy, false).await?;
    let projection = tenant
        .in_project(INSTANCE, "test-projected-instance", |_| Ok(()))
        .await?;
    ensure!(is_owned_by(&projection, mine), "{:?}", projection.metadata);
    expect_label(&projection, labels::UPSTREAM_CLUSTER_NAME, "cluster-single")
}
