//! Instances on a node that runs containers: a kubelet, containerd and runc.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::definitions::define;
use popcell_suites::environment::SOON;
use popcell_suites::read::{self, says};
use popcell_suites::steps::gone;
use popcell_test_support::kind::{INSTANCE, POD};
use popcell_test_support::probe::get;
use popcell_test_support::stand_ins::IN_CELLS;
use popcell_test_support::{Nodes, PodProvider, PodProviderSpec, eventually, users};
use serde_json::{Value, json};

use crate::environment::{Environment, MACHINE, Site};

/// The image that the node has.
const HTTPD: &str = "docker.io/library/httpd:2.4";
const PAGE: &str = "<h1>It runs</h1>\n";

pub(crate) async fn answer(environment: &Environment, namespace: &str) -> Result<()> {
    let cell = environment.lab.plane(MACHINE).await?;
    define(&cell, &IN_CELLS).await?;
    let nodes = Nodes::of_containers(&cell, 1).await?;
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let account = users::of_provider(&environment.lab, MACHINE, files.path()).await?;
    let mut provider = PodProvider::start(PodProviderSpec::of(&account).without_registry()).await?;
    let site = Site::on(cell, namespace).await?;
    let seen = seen(&site).await;
    let words = || {
        format!(
            "the provider wrote:\n{}\n\nthe node wrote:\n{}",
            provider.last_words(),
            nodes.last_words()
        )
    };
    seen.with_context(words)?;
    provider.end()
}

async fn seen(site: &Site) -> Result<()> {
    let named = |kind: &str, data: Value| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "namespace": site.namespace, "name": "web" }, "data": data });
    site.cell
        .apply(&named("ConfigMap", json!({ "index.html": PAGE })))
        .await?;
    // "change-me".
    site.cell
        .apply(&named("Secret", json!({ "password": "Y2hhbmdlLW1l" })))
        .await?;
    site.make("web", &[], |one| {
        let runtime = &mut one["spec"]["runtime"];
        runtime["resources"]["requests"] = json!({ "cpu": "100m", "memory": "64Mi" });
        let container = &mut runtime["sandbox"]["containers"][0];
        container["image"] = json!(HTTPD);
        container["env"] = json!([
            { "name": "TITLE", "value": "popcell" },
            { "name": "PASSWORD", "valueFrom": { "secretKeyRef": { "name": "web", "key": "password" } } },
        ]);
        container["ports"] = json!([{ "name": "http", "port": 80 }]);
        container["volumeAttachments"] = json!([
            { "name": "content", "mountPath": "/usr/local/apache2/htdocs" },
            { "name": "secret", "mountPath": "/usr/local/apache2/htdocs/secret" },
        ]);
        one["spec"]["volumes"] = json!([
            { "name": "content", "configMap": { "name": "web" } },
            { "name": "secret", "secret": { "secretName": "web" } },
        ]);
    })
    .await?;
    for (name, image, environment) in [
        ("absent", "registry.example.invalid/absent:1", json!([])),
        ("crashing", HTTPD, json!([{ "name": "LISTEN", "value": "nowhere" }])),
    ] {
        site.make(name, &[], |one| {
            one["spec"]["runtime"]["resources"]["requests"] = json!({ "cpu": "100m", "memory": "64Mi" });
            let container = &mut one["spec"]["runtime"]["sandbox"]["containers"][0];
            container["image"] = json!(image);
            container["env"] = environment;
        })
        .await?;
    }
    let instance = site
        .instance("web", |one| says(one, "Available", "True", "Available"))
        .await?;
    let address = address(&instance)?;
    for (path, expected) in [
        ("/", PAGE),
        ("/env/TITLE", "popcell"),
        ("/env/PASSWORD", "change-me"),
        ("/secret/password", "change-me"),
    ] {
        eventually("the port answers", SOON, async || {
            let (code, body) = get((address, 80), path).await?;
            ensure!(
                (code, body.as_str()) == (200, expected),
                "{path} answers {code}: {body:?}"
            );
            Ok(())
        })
        .await?;
    }
    for (name, reason) in [("absent", "ImageUnavailable"), ("crashing", "InstanceCrashing")] {
        site.instance(name, |one| says(one, "Available", "Unknown", reason))
            .await?;
    }
    site.cell.delete(INSTANCE, Some(&site.namespace), "web").await?;
    gone(&site.cell, INSTANCE, &site.namespace, "web").await?;
    gone(&site.cell, POD, &site.namespace, "web").await?;
    // Another machine may have the address outside.
    let answer = get((address, 80), "/").await.ok();
    ensure!(answer != Some((200, PAGE.to_owned())), "what was deleted still answers");
    Ok(())
}

fn address(instance: &DynamicObject) -> Result<Ipv4Addr> {
    let address = read::at(instance, "/status/networkInterfaces/0/assignments/networkIP");
    let address = address.as_str().with_context(|| format!("no address: {address}"))?;
    address.parse().with_context(|| format!("no address: {address}"))
}
