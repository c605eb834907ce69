//! The admission webhook, called by the API server of a project for requests that came through milo's gateway.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use popcell_suites::environment::SOON;
use popcell_suites::steps::refused;
use popcell_test_support::kind::NAMESPACE;
use popcell_test_support::{Plane, eventually, manifests, objects};
use serde_json::json;

use crate::environment::{Environment, P2};
use popcell_suites::tenant::Tenant;

/// The namespaces whose Workloads are reviewed: other tests make what a review refuses.
const REVIEWED: &str = "popcell.test/reviewed";
const USER: &str = "jo@example.com";

/// Registers the shipped configurations, at the controller's address.
async fn register(environment: &Environment, project: &Plane) -> Result<()> {
    let url = environment.controller.lock().await.webhook_url();
    let authority = STANDARD.encode(std::fs::read(environment.lab.ca_file())?);
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

pub(crate) async fn reviewed(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let server = &tenant.project;
    let label = json!({ "metadata": { "labels": { REVIEWED: "true" } } });
    server.merge(NAMESPACE, None, namespace, &label).await?;
    register(environment, server).await?;
    let admin = environment.as_administrator(P2).await?;
    let user = environment.as_user(P2, USER).await?;
    let good = objects::workload(namespace, "web", &[("us", &["LHR"], 1)]);
    let mut nowhere = objects::workload(namespace, "lost", &[("us", &["XXX"], 1)]);

    eventually("Workloads are reviewed", SOON, async || {
        refused(
            admin.create(&nowhere, true).await,
            &["vworkload.kb.io", "XXX"],
            "a Workload",
        )
    })
    .await?;
    // Without the gateway nobody says which project it is.
    refused(
        server.create(&good, true).await,
        &["vworkload.kb.io", "iam.miloapis.com/parent-name"],
        "a Workload",
    )?;
    admin.create(&good, false).await.context("a good one was refused")?;

    // May create Workloads, and not use the network.
    tenant
        .grant(
            "creator",
            USER,
            &json!({ "apiGroups": ["compute.datumapis.com"], "resources": ["workloads"], "verbs": ["create"] }),
        )
        .await?;
    nowhere = objects::workload(namespace, "mine", &[("us", &["LHR"], 1)]);
    eventually("the user may not use the network", SOON, async || {
        refused(
            user.create(&nowhere, true).await,
            &["vworkload.kb.io", "network"],
            "a Workload",
        )
    })
    .await?;
    tenant
        .grant(
            "networks",
            USER,
            &json!({ "apiGroups": ["networking.datumapis.com"], "resources": ["networks"], "verbs": ["use"] }),
        )
        .await?;
    eventually("the user may use the network", SOON, async || {
        user.create(&nowhere, true).await.map(|_| ())
    })
    .await
}
