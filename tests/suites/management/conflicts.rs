//! What is written after a conflict is what is true then, not what was true at the first try.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{Asked, Fault, eventually};
use serde_json::json;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-dfw";

pub(crate) async fn stale(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 3)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.report(&dfw, NAME, 3, 0).await?;
    let before = tenant.shown(NAME, 0).await?;

    let within = namespace.to_owned();
    let is_status = move |asked: &Asked| {
        asked.is_within(&within) && asked.name.as_deref() == Some(NAME) && asked.subresource.is_some()
    };
    let conflict = environment.to_milo.inject(Fault::refused(409, "Conflict"), is_status);
    tenant.report(&dfw, NAME, 3, 1).await?;
    eventually("a write met a conflict twice", SOON, async || {
        ensure!(conflict.hits() > 1);
        Ok(())
    })
    .await?;
    for ready in [3, 2] {
        tenant.report(&dfw, NAME, 3, ready).await?;
        let says = |one: &DynamicObject| read::expect_at(one, "/status/readyReplicas", &json!(ready));
        tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, says).await?;
    }
    conflict.lift();
    tenant.shown(NAME, 2).await?;
    let said = history(&tenant, &before).await?;
    ensure!(
        said.strip_prefix(&[0]).unwrap_or(&said) == [2],
        "the project was told {said:?}"
    );
    Ok(())
}

/// What the project was told since then, each value once in a row.
async fn history(tenant: &Tenant, since: &DynamicObject) -> Result<Vec<i64>> {
    let version = since
        .metadata
        .resource_version
        .as_deref()
        .context("no resourceVersion")?;
    let only = WatchParams::default().fields(&format!("metadata.name={NAME}"));
    let api = tenant.project.api(WORKLOAD_DEPLOYMENT, Some(&tenant.namespace));
    let mut events = Box::pin(api.watch(&only, version).await?);
    let mut said = Vec::new();
    // What has happened comes at once.
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(2), events.next()).await {
        if let WatchEvent::Modified(one) = event? {
            said.extend(read::at(&one, "/status/readyReplicas").as_i64());
        }
    }
    said.dedup();
    Ok(said)
}
