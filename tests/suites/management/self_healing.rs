//! What a user does by hand to our policies in the hub is undone.

use anyhow::{Context, Result, ensure};
use popcell_api::labels;
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_test_support::kind::PROPAGATION_POLICY;
use serde_json::json;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

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
        "propagateDeps": false,
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
    let two = read::replicas(2);
    tenant.in_cell(&dfw, NAME, two).await.map(|_| ())
}
