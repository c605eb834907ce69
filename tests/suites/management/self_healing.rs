//! What a user does by hand to our objects in the hub is undone.

use anyhow::{Context, Result, ensure};
use popcell_api::labels;
use popcell_api::names::HUB_QUOTA;
use popcell_core::hub_quota::COUNTED;
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_test_support::kind::{PROPAGATION_POLICY, RESOURCE_QUOTA, WORKLOAD_DEPLOYMENT};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::{Tenant, expect_label};

const NAME: &str = "web-us-dfw";

pub(crate) async fn policy(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 1)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.in_cell(&dfw, NAME, |_| Ok(())).await?;
    let first = tenant.policy("DFW").await?;
    let name = first.metadata.name.clone().context("no name")?;

    let elsewhere = json!({ "spec": {
        "placement": { "clusterAffinity": { "labelSelector": { "matchLabels": { labels::CITY_CODE: "ORD" } } } },
        "propagateDeps": true,
    } });
    tenant
        .hub
        .merge(PROPAGATION_POLICY, Some(&tenant.below), &name, &elsewhere)
        .await?;
    let healed = tenant
        .in_hub(PROPAGATION_POLICY, &name, |one| {
            read::expect_at(one, "/spec", read::at(&first, "/spec"))
        })
        .await?;
    ensure!(read::uid(&healed) == read::uid(&first), "it was recreated");
    let permanent = |one: &kube::api::DynamicObject| {
        let labels = one.metadata.labels.clone().unwrap_or_default();
        labels.get(labels::PROPAGATION_POLICY_PERMANENT_ID).cloned()
    };
    ensure!(permanent(&healed).is_some() && permanent(&healed) == permanent(&first));

    tenant
        .hub
        .delete(PROPAGATION_POLICY, Some(&tenant.below), &name)
        .await?;
    let again = tenant
        .in_hub(PROPAGATION_POLICY, &name, |one| {
            ensure!(read::uid(one) != read::uid(&first), "it is the old one");
            read::expect_at(one, "/spec", read::at(&first, "/spec"))
        })
        .await?;
    ensure!(again.metadata.deletion_timestamp.is_none());
    // It serves: what changes still reaches the cell.
    tenant.place("web", &[("us", &["DFW"], 2)]).await?;
    let two = |one: &kube::api::DynamicObject| read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(2));
    tenant.in_cell(&dfw, NAME, two).await.map(|_| ())
}

pub(crate) async fn quota(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["LHR"], 1)]).await?;
    // As API servers write 20000.
    let limited = |one: &kube::api::DynamicObject| read::expect_at(one, "/spec/hard", &json!({ COUNTED: "20k" }));
    let first = tenant.in_hub(RESOURCE_QUOTA, HUB_QUOTA, limited).await?;
    expect_label(&first, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)?;
    let here = Some(tenant.below.as_str());
    let edit = json!({ "spec": { "hard": { COUNTED: "1", "count/configmaps": "5" } } });
    tenant.hub.merge(RESOURCE_QUOTA, here, HUB_QUOTA, &edit).await?;
    let healed = tenant.in_hub(RESOURCE_QUOTA, HUB_QUOTA, limited).await?;
    ensure!(read::uid(&healed) == read::uid(&first), "it was recreated");
    tenant.hub.delete(RESOURCE_QUOTA, here, HUB_QUOTA).await?;
    let is_new = |one: &kube::api::DynamicObject| {
        ensure!(read::uid(one) != read::uid(&first), "it is the old one");
        limited(one)
    };
    tenant.in_hub(RESOURCE_QUOTA, HUB_QUOTA, is_new).await.map(|_| ())
}

pub(crate) async fn deployment(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 2)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.report(&dfw, NAME, 2, 1).await?;
    tenant.shown(NAME, 1).await?;
    let first = tenant.now_in_hub(NAME).await?;

    let edited = json!({
        "metadata": { "labels": { labels::MANAGED_BY: Value::Null, "other": "kept" } },
        "spec": { "scaleSettings": { "minReplicas": 9 } },
    });
    tenant
        .hub
        .merge(WORKLOAD_DEPLOYMENT, Some(&tenant.below), NAME, &edited)
        .await?;
    let healed = tenant
        .in_hub(WORKLOAD_DEPLOYMENT, NAME, |one| {
            expect_label(one, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)?;
            read::expect_at(one, "/spec", read::at(&first, "/spec"))
        })
        .await?;
    expect_label(&healed, "other", "kept")?;
    ensure!(read::uid(&healed) == read::uid(&first), "it was recreated");

    tenant
        .hub
        .delete(WORKLOAD_DEPLOYMENT, Some(&tenant.below), NAME)
        .await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, NAME, |one| {
            ensure!(read::uid(one) != read::uid(&first), "it is the old one");
            read::expect_at(one, "/spec", read::at(&first, "/spec"))
        })
        .await?;
    let cells = tenant
        .in_cell(&dfw, NAME, |one| {
            ensure!(one.metadata.deletion_timestamp.is_none(), "it is going");
            read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(2))
        })
        .await?;
    ensure!(cells.metadata.name.as_deref() == Some(NAME));
    Ok(())
}
