//! Pods that come and go, and those of other owners.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations::POD_REPLACEMENTS;
use popcell_suites::read::{self, is_ready, says, uid};
use popcell_suites::steps::gone;
use popcell_suites::tenant::annotation;
use popcell_test_support::kind::{INSTANCE, POD};
use popcell_test_support::{always, users};
use serde_json::{Value, json};

use crate::environment::{Environment, Site, USER};

/// How long to watch for what must not happen.
const WATCHED: Duration = Duration::from_secs(5);
/// Requests of the provider that are no watches are counted under this name.
const FLOW: &str = "provider-of-pods";

/// Fails while the Pod is the one of this uid.
fn is_another(before: &str) -> impl Fn(&DynamicObject) -> Result<()> + use<> {
    let before = before.to_owned();
    move |pod| {
        ensure!(uid(pod) != before, "it is the same Pod");
        Ok(())
    }
}

pub(crate) async fn made_again(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    site.make("web", &[], |_| {}).await?;
    site.instance("web", is_ready).await?;
    let first = site.pod("web", |_| Ok(())).await?;
    // As the kubelet of a node that has no room left says it; long ago, so that it is replaced at once.
    let evicted = json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "conditions": [{ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    });
    site.cell.set_status(POD, Some(namespace), "web", &evicted).await?;
    let second = site.pod("web", is_another(&uid(&first))).await?;
    ensure!(
        annotation(&second, POD_REPLACEMENTS) == "1",
        "{:?}",
        second.metadata.annotations
    );
    site.instance("web", is_ready).await?;

    let crowded: Value = json!({ "phase": "Failed", "conditions": [{ "type": "DisruptionTarget", "status": "True",
        "lastTransitionTime": "2999-01-01T00:00:00Z" }] });
    site.cell.set_status(POD, Some(namespace), "web", &crowded).await?;
    let failed = site
        .instance("web", |one| says(one, "Ready", "False", "Failed"))
        .await?;
    let message = read::condition(&failed, "Ready")?["message"].to_string();
    ensure!(message.contains("it is replaced after"), "{message}");

    site.cell.delete(POD, Some(namespace), "web").await?;
    site.pod("web", is_another(&uid(&second))).await?;
    site.instance("web", is_ready).await.map(|_| ())
}

pub(crate) async fn foreign(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": namespace, "name": "web" },
        "spec": { "containers": [{ "name": "other", "image": "other:1" }] },
    });
    let other = site.cell.create(&pod, false).await?;
    site.make("web", &[], |_| {}).await?;
    let instance = site
        .instance("web", |one| says(one, "Ready", "Unknown", "ConfigurationError"))
        .await?;
    let message = read::condition(&instance, "Ready")?["message"].to_string();
    ensure!(message.contains("Pod web has another owner"), "{message}");
    // It is no obstacle to a deletion, nor does it go with one.
    site.make("gone", &[], |_| {}).await?;
    site.instance("gone", is_ready).await?;
    site.cell.delete(INSTANCE, Some(namespace), "web").await?;
    gone(&site.cell, INSTANCE, namespace, "web").await?;
    let kept = site.pod("web", |_| Ok(())).await?;
    ensure!(
        uid(&kept) == uid(&other) && kept.metadata.deletion_timestamp.is_none(),
        "{kept:?}"
    );
    // An Instance waits for the name, and gets it.
    site.make("web", &[], |_| {}).await?;
    site.instance("web", |one| says(one, "Ready", "Unknown", "ConfigurationError"))
        .await?;
    site.cell.delete(POD, Some(namespace), "web").await?;
    site.instance("web", is_ready).await.map(|_| ())
}

pub(crate) async fn down(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    let mut provider = environment.provider.lock().await;
    for name in ["web", "kept"] {
        site.make(name, &[], |_| {}).await?;
        site.instance(name, is_ready).await?;
    }
    let kept = site.pod("kept", |_| Ok(())).await?;
    provider.end()?;
    site.cell.delete(INSTANCE, Some(namespace), "web").await?;
    always("the Instance waits for its provider", WATCHED, async || {
        site.cell.expect(INSTANCE, Some(namespace), "web").await?;
        site.cell.expect(POD, Some(namespace), "web").await.map(|_| ())
    })
    .await?;
    provider.start_again().await?;
    gone(&site.cell, INSTANCE, namespace, "web").await?;
    let pod = site.cell.get(POD, Some(namespace), "web").await?;
    ensure!(pod.is_none(), "the Pod outlives its Instance");
    let after = site.pod("kept", |_| Ok(())).await?;
    ensure!(uid(&after) == uid(&kept), "a restart of the provider replaced a Pod");
    Ok(())
}

pub(crate) async fn quiet(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    users::count(&site.cell, FLOW, USER, &verbs).await?;
    site.make("web", &[], |_| {}).await?;
    site.instance("web", is_ready).await?;
    // Its own writes come back as events.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = users::requests(&site.cell, FLOW).await?;
    ensure!(before > 3.0, "its requests are not counted: {before}");
    tokio::time::sleep(WATCHED).await;
    let after = users::requests(&site.cell, FLOW).await?;
    // Two at most are a look for a server that was set back.
    ensure!(after - before < 2.5, "{} requests", after - before);
    Ok(())
}
