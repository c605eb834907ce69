//! What was in the hub and in projects before: objects of upstream's operator, which carry no marker, and of others.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::conditions::reasons::NAME_CONFLICT;
use popcell_api::{annotations, labels};
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_test_support::kind::{INSTANCE, NAMESPACE, PROPAGATION_POLICY, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};
use serde_json::{Value, json};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::{Tenant, annotation, available, expect_label, is_owned_by};

const NAME: &str = "left";
const PROJECTION: &str = "left-0";

/// The hub namespace as upstream's operator makes it.
async fn hub_namespace(tenant: &Tenant, project: &str) -> Result<DynamicObject> {
    let mut namespace = objects::namespace(&tenant.below);
    namespace["metadata"]["labels"] = json!({
        labels::UPSTREAM_CLUSTER_NAME: format!("cluster-{project}"),
        labels::UPSTREAM_NAMESPACE: tenant.namespace,
    });
    tenant.hub.create(&namespace, false).await
}

fn upstreams_policy(hub_namespace: &str, city: &str) -> Value {
    let mut policy = objects::city_policy(hub_namespace, city);
    policy["metadata"]["labels"] = json!({});
    let of_the_city = json!({ "matchLabels": { labels::CITY_CODE: city } });
    policy["spec"] = json!({
        "resourceSelectors": policy["spec"]["resourceSelectors"],
        "placement": { "clusterAffinity": { "labelSelector": of_the_city } },
    });
    policy
}

fn is_stamped(object: &DynamicObject, before: &DynamicObject) -> Result<()> {
    ensure!(read::uid(object) == read::uid(before), "it was recreated");
    expect_label(object, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)
}

pub(crate) async fn stamped(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let hub = &tenant.hub;
    let hub_namespace = hub_namespace(&tenant, P1).await?;
    let policy = hub.create(&upstreams_policy(&tenant.below, "DFW"), false).await?;
    let mut carried = objects::workload_deployment(&tenant.below, NAME, "DFW", 1);
    carried["metadata"]["labels"] = json!({ labels::CITY_CODE: "DFW", labels::UPSTREAM_NAMESPACE: namespace });
    let carried = hub.create(&carried, false).await?;
    let dfw = environment.lab.plane(DFW).await?;
    let in_cell = tenant.in_cell(&dfw, NAME, |_| Ok(())).await?;

    let mine = tenant.project.create(&tenant.direct(NAME, "DFW", 1), false).await?;
    let mut projection = objects::instance_copy(namespace, NAME, 0, DFW);
    projection["metadata"]["labels"] = json!({});
    projection["metadata"]["ownerReferences"] = json!([{
        "apiVersion": popcell_api::API_VERSION, "kind": "WorkloadDeployment", "name": NAME, "uid": read::uid(&mine),
    }]);
    let projection = tenant.project.create(&projection, false).await?;
    let copy = objects::instance_copy(&tenant.below, NAME, 0, DFW);
    hub.create(&copy, false).await?;

    let now = tenant
        .in_hub(WORKLOAD_DEPLOYMENT, NAME, |one| is_stamped(one, &carried))
        .await?;
    ensure!(annotation(&now, annotations::UPSTREAM_UID) == read::uid(&mine));
    tenant
        .in_hub(PROPAGATION_POLICY, "city-dfw", |one| is_stamped(one, &policy))
        .await?;
    tenant
        .in_hub(NAMESPACE, &tenant.below, |one| is_stamped(one, &hub_namespace))
        .await?;
    tenant
        .in_project(INSTANCE, PROJECTION, |one| is_stamped(one, &projection))
        .await?;
    let after = tenant.in_cell(&dfw, NAME, |_| Ok(())).await?;
    ensure!(
        read::uid(&after) == read::uid(&in_cell),
        "the cell's object was recreated"
    );
    Ok(())
}

pub(crate) async fn foreign(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let hub = &tenant.hub;
    hub_namespace(&tenant, P1).await?;
    let mut policy = objects::city_policy(&tenant.below, "LHR");
    policy["metadata"]["labels"] = json!({});
    policy["spec"]["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "theirs" }]);
    let policy = hub.create(&policy, false).await?;
    let mut theirs = objects::workload_deployment(&tenant.below, NAME, "DFW", 4);
    theirs["metadata"]["labels"] = json!({});
    theirs["spec"]["workloadRef"]["uid"] = json!("another");
    let theirs = hub.create(&theirs, false).await?;
    let mut projection = objects::instance_copy(namespace, "mine", 0, DFW);
    projection["metadata"]["labels"] = json!({});
    let projection = tenant.project.create(&projection, false).await?;

    tenant.project.create(&tenant.direct(NAME, "DFW", 1), false).await?;
    let mine = tenant.project.create(&tenant.direct("mine", "LHR", 1), false).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "mine", |_| Ok(())).await?;
    let mut copy = objects::instance_copy(&tenant.below, "mine", 0, DFW);
    copy["metadata"]["labels"]
        .as_object_mut()
        .context("no labels")?
        .remove(labels::SOURCE_CLUSTER);
    hub.create(&copy, false).await?;
    tenant
        .in_project(WORKLOAD_DEPLOYMENT, NAME, |one| available(one, "False", NAME_CONFLICT))
        .await?;
    always("what is of others is left alone", WATCHED, async || {
        for (kind, before) in [(WORKLOAD_DEPLOYMENT, &theirs), (PROPAGATION_POLICY, &policy)] {
            let name = before.metadata.name.as_deref().context("no name")?;
            let now = hub.expect(kind, Some(&tenant.below), name).await?;
            is_as_before(&now, before)?;
        }
        let now = tenant.project.expect(INSTANCE, Some(namespace), "mine-0").await?;
        ensure!(!is_owned_by(&now, &mine));
        is_as_before(&now, &projection)
    })
    .await
}

/// But for what Karmada adds.
fn is_as_before(now: &DynamicObject, before: &DynamicObject) -> Result<()> {
    ensure!(read::uid(now) == read::uid(before), "it was recreated");
    ensure!(now.metadata.deletion_timestamp.is_none(), "it is going");
    read::expect_at(now, "/spec", read::at(before, "/spec"))?;
    let labels = now.metadata.labels.clone().unwrap_or_default();
    ensure!(!labels.contains_key(labels::MANAGED_BY), "{labels:?}");
    Ok(())
}
