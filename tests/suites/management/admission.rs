//! The admission webhook, called by the API server of a project for requests that came through milo's gateway.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use popcell_suites::world::SOON;
use popcell_test_support::kind::NAMESPACE;
use popcell_test_support::{Plane, eventually, kubeconfig, manifests, objects};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tenant::Tenant;
use crate::world::{P2, World};

/// The namespaces whose Workloads are reviewed: other tests make what a review refuses.
const REVIEWED: &str = "popcell.test/reviewed";
const USER: &str = "jo@example.com";

/// The project as a user reaches it.
async fn through_gateway(world: &World, dir: &TempDir, user: &Value, name: &str) -> Result<Plane> {
    let document = kubeconfig::document(&world.gateway.project_url(P2), None, user);
    Plane::connect(name, &kubeconfig::write(dir.path(), name, &document)?).await
}

/// Registers the shipped configurations, at the controller's address.
async fn register(world: &World, project: &Plane) -> Result<()> {
    let url = world.controller.lock().await.webhook_url();
    let authority = STANDARD.encode(std::fs::read(world.lab.ca_file())?);
    let shipped = manifests::build("base/admission".as_ref())?;
    let configurations = shipped.into_iter().filter(|object| object["webhooks"].is_array());
    for mut configuration in configurations {
        for webhook in configuration["webhooks"].as_array_mut().context("no webhooks")? {
            let path = webhook["clientConfig"]["service"]["path"].as_str().context("no path")?;
            webhook["clientConfig"] = json!({ "url": format!("{url}{path}"), "caBundle": authority });
            webhook["namespaceSelector"] = json!({ "matchLabels": { REVIEWED: "true" } });
        }
        project.apply(&configuration).await?;
    }
    Ok(())
}

fn refused(outcome: Result<kube::api::DynamicObject>, because: &str) -> Result<()> {
    let error = outcome.err().context("it was admitted")?;
    let text = format!("{error:#}");
    ensure!(text.contains("vworkload.kb.io") && text.contains(because), "{text}");
    Ok(())
}

pub(crate) async fn reviewed(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P2, namespace).await?;
    let server = &tenant.project;
    let label = json!({ "metadata": { "labels": { REVIEWED: "true" } } });
    server.merge(NAMESPACE, None, namespace, &label).await?;
    register(world, server).await?;
    let dir = tempfile::tempdir()?;
    let admin = through_gateway(world, &dir, &json!({}), "admin").await?;
    let user = through_gateway(world, &dir, &json!({ "token": USER }), "user").await?;
    let good = objects::workload(namespace, "web", &[("us", &["LHR"], 1)]);
    let mut nowhere = objects::workload(namespace, "lost", &[("us", &["XXX"], 1)]);

    eventually("Workloads are reviewed", SOON, async || {
        refused(admin.create(&nowhere, true).await, "XXX")
    })
    .await?;
    // Without the gateway nobody says which project it is.
    refused(server.create(&good, true).await, "iam.miloapis.com/parent-name")?;
    admin.create(&good, false).await.context("a good one was refused")?;

    // May create Workloads, and not use the network.
    grant(
        server,
        namespace,
        "creator",
        &json!({ "apiGroups": ["compute.datumapis.com"], "resources": ["workloads"], "verbs": ["create"] }),
    )
    .await?;
    nowhere = objects::workload(namespace, "mine", &[("us", &["LHR"], 1)]);
    eventually("the user may not use the network", SOON, async || {
        refused(user.create(&nowhere, true).await, "network")
    })
    .await?;
    grant(
        server,
        namespace,
        "networks",
        &json!({ "apiGroups": ["networking.datumapis.com"], "resources": ["networks"], "verbs": ["use"] }),
    )
    .await?;
    eventually("the user may use the network", SOON, async || {
        user.create(&nowhere, true).await.map(|_| ())
    })
    .await
}

async fn grant(server: &Plane, namespace: &str, name: &str, rule: &Value) -> Result<()> {
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    let metadata = json!({ "namespace": namespace, "name": name });
    server
        .apply(&json!({ "apiVersion": VERSION, "kind": "Role", "metadata": metadata, "rules": [rule] }))
        .await?;
    let granted = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER });
    server
        .apply(
            &json!({ "apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": granted, "subjects": [subject] }),
        )
        .await
        .map(|_| ())
}
