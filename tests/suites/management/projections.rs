//! Copies of Instances in the hub are shown in the project. The copies are written by hand, as cells will.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::{conditions, labels};
use popcell_suites::environment::{DFW, ORD};
use popcell_suites::read;
use popcell_test_support::kind::{EVENT, INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::{Tenant, expect_label, is_owned_by, same_spec};

const DEPLOYMENT: &str = "web-us-dfw";
const FIRST: &str = "web-us-dfw-0";

async fn deployed(environment: &Environment, namespace: &str) -> Result<Tenant> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 2)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, DEPLOYMENT, |_| Ok(())).await?;
    Ok(tenant)
}

async fn copy(tenant: &Tenant, ordinal: u32, source: &str) -> Result<DynamicObject> {
    let copy = objects::instance_copy(&tenant.below, DEPLOYMENT, ordinal, source);
    tenant.hub.create(&copy, false).await
}

/// Says what the cell's Instance is like, of the copy's present generation.
async fn say(tenant: &Tenant, name: &str, ready: &str, reason: &str) -> Result<()> {
    let copy = tenant.hub.expect(INSTANCE, Some(&tenant.below), name).await?;
    let generation = copy.metadata.generation.context("no generation")?;
    let status = json!({
        "conditions": [objects::condition(conditions::READY, ready, reason, reason, generation)],
        "networkInterfaces": [{ "assignments": { "networkIP": "10.0.0.2" } }],
    });
    tenant
        .hub
        .set_status(INSTANCE, Some(&tenant.below), name, &status)
        .await
        .map(|_| ())
}

pub(crate) async fn shown(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = deployed(environment, namespace).await?;
    let copies = [copy(&tenant, 0, DFW).await?, copy(&tenant, 1, DFW).await?];
    say(&tenant, FIRST, "False", "Pending").await?;
    let owner = tenant
        .project
        .expect(WORKLOAD_DEPLOYMENT, Some(namespace), DEPLOYMENT)
        .await?;
    for (ordinal, copy) in copies.iter().enumerate() {
        let projection = tenant
            .in_project(INSTANCE, &format!("{DEPLOYMENT}-{ordinal}"), |one| same_spec(one, copy))
            .await?;
        ensure!(is_owned_by(&projection, &owner), "{:?}", projection.metadata);
        expect_label(&projection, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)?;
        expect_label(&projection, labels::INSTANCE_INDEX, &ordinal.to_string())?;
        let karmadas = projection
            .metadata
            .labels
            .as_ref()
            .is_some_and(|all| all.contains_key(labels::CLAIMED_BY));
        ensure!(!karmadas, "{:?}", projection.metadata.labels);
    }
    say(&tenant, FIRST, "True", "Available").await?;
    tenant
        .in_project(INSTANCE, FIRST, |one| {
            let ready = read::condition(one, conditions::READY)?;
            ensure!(
                ready["status"] == "True" && ready["observedGeneration"] == json!(one.metadata.generation),
                "{ready}"
            );
            read::expect_at(
                one,
                "/status/networkInterfaces/0/assignments/networkIP",
                &json!("10.0.0.2"),
            )
        })
        .await?;
    tenant.hub.delete(INSTANCE, Some(&tenant.below), "web-us-dfw-1").await?;
    tenant.gone_from_project(INSTANCE, "web-us-dfw-1").await?;
    let left = tenant.names_in_project(INSTANCE).await?;
    ensure!(left == [FIRST], "{left:?}");
    Ok(())
}

pub(crate) async fn of_its_city_only(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = deployed(environment, namespace).await?;
    copy(&tenant, 7, ORD).await?;
    copy(&tenant, 8, "nobody").await?;
    // Nobody asks for that slot.
    copy(&tenant, 9, DFW).await?;
    let mut ownerless = objects::instance_copy(&tenant.below, "absent", 0, DFW);
    tenant.hub.create(&ownerless, false).await?;
    // One that names no source is upstream's, or was written by hand.
    ownerless = objects::instance_copy(&tenant.below, DEPLOYMENT, 3, DFW);
    if let Some(labels) = ownerless["metadata"]["labels"].as_object_mut() {
        labels.remove(popcell_api::labels::SOURCE_CLUSTER);
    }
    tenant.hub.create(&ownerless, false).await?;
    tenant.in_project(INSTANCE, "web-us-dfw-3", |_| Ok(())).await?;
    always("others are not shown", WATCHED, async || {
        let shown = tenant.names_in_project(INSTANCE).await?;
        ensure!(shown == ["web-us-dfw-3"], "{shown:?}");
        Ok(())
    })
    .await
}

pub(crate) async fn undone(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = deployed(environment, namespace).await?;
    let copy = copy(&tenant, 0, DFW).await?;
    let first = tenant.in_project(INSTANCE, FIRST, |one| same_spec(one, &copy)).await?;

    let edit = json!({
        "metadata": { "labels": { labels::INSTANCE_INDEX: "9" } },
        "spec": { "runtime": { "sandbox": { "containers": [{ "name": "web", "image": "registry.example.com/other:2" }] } } },
    });
    tenant.project.merge(INSTANCE, Some(namespace), FIRST, &edit).await?;
    tenant
        .in_project(INSTANCE, FIRST, |one| {
            expect_label(one, labels::INSTANCE_INDEX, "0")?;
            same_spec(one, &copy)
        })
        .await?;

    tenant.delete(INSTANCE, FIRST).await?;
    tenant
        .in_project(INSTANCE, FIRST, |one| {
            ensure!(read::uid(one) != read::uid(&first), "it is the old one");
            same_spec(one, &copy)
        })
        .await?;
    let what = "an event says how to restart";
    eventually(what, popcell_suites::environment::SOON, async || {
        let events = tenant.project.list(EVENT, Some(namespace), "").await?;
        let about = |event: &&DynamicObject| {
            let is = |pointer: &str, text: &str| read::at(event, pointer) == text;
            is("/reason", "ProjectionRestored") && is("/involvedObject/name", DEPLOYMENT)
        };
        let event = events.iter().find(about).context("no such event")?;
        let note = read::at(event, "/message").as_str().unwrap_or_default();
        ensure!(note.contains("restartedAt"), "{note}");
        Ok(())
    })
    .await
}
