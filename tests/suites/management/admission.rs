//! The admission webhook, called by the API server of a project for requests that came through milo's gateway.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kube::api::DynamicObject;
use kube::client::Body;
use popcell_api::{API_VERSION, annotations};
use popcell_core::names;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_suites::steps::refused;
use popcell_test_support::kind::{NAMESPACE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually, manifests, objects};
use serde_json::{Value, json};

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

/// The warnings with which the API server answers a create that is only tried.
async fn warnings(plane: &Plane, workload: &Value) -> Result<Vec<String>> {
    let mut tried = workload.clone();
    tried["metadata"]["name"] = json!("tried");
    let namespace = workload["metadata"]["namespace"].as_str().context("no namespace")?;
    let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/workloads?dryRun=All");
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(tried.to_string().into_bytes()))?;
    let response = plane.client().send(request).await?;
    ensure!(response.status().is_success(), "{}", response.status());
    let found = response.headers().get_all("warning").into_iter();
    Ok(found
        .map(|one| String::from_utf8_lossy(one.as_bytes()).into_owned())
        .collect())
}

/// What is accepted and not done is a warning for the user and a condition of the object, and a name may be as long as a label.
async fn limited(tenant: &Tenant, admin: &Plane) -> Result<()> {
    let (name, placement) = ("w".repeat(63), "p".repeat(63));
    let mut limited = objects::workload(&tenant.namespace, &name, &[(&placement, &["LHR"], 1)]);
    limited["spec"]["template"]["spec"]["networkInterfaces"][0]["networkPolicy"] = json!({ "ingress": [{}] });
    let field = "spec.template.spec.networkInterfaces[0].networkPolicy: popcell does not enforce it";
    let found = warnings(admin, &limited).await?;
    ensure!(found.len() == 1 && found[0].contains(field), "{found:?}");
    admin.create(&limited, false).await?;
    let shown = |one: &DynamicObject| {
        let condition = read::condition(one, "UnsupportedFields")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(
            condition["status"] == "True" && message.starts_with(field),
            "{condition}"
        );
        Ok(())
    };
    tenant.in_project(WORKLOAD, &name, shown).await?;
    let derived = names::workload_deployment(&name, &placement, "LHR");
    ensure!(derived.len() == 59, "{derived}");
    tenant.in_hub(WORKLOAD_DEPLOYMENT, &derived, |_| Ok(())).await?;
    tenant.delete(WORKLOAD, &name).await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, &derived).await
}

/// `kubectl scale` on a WorkloadDeployment.
async fn scaled(plane: &Plane, namespace: &str, name: &str) -> Result<Value> {
    let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/workloaddeployments/{name}/scale");
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    let request = request.body(json!({ "spec": { "replicas": 5 } }).to_string().into_bytes())?;
    Ok(plane.client().request(request).await?)
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
    ensure!(warnings(&admin, &good).await?.is_empty(), "a good one has warnings");
    limited(&tenant, &admin).await?;
    let derived = names::workload_deployment("web", "us", "LHR");
    tenant.in_project(WORKLOAD_DEPLOYMENT, &derived, |_| Ok(())).await?;
    refused(
        scaled(&admin, namespace, &derived).await,
        &["vworkloaddeploymentscale.kb.io", "popcell scale"],
        "a number of replicas",
    )?;

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
    .await?;
    who_writes_what_runs_may_read_it(environment, &tenant).await
}

/// The author of what runs needs the right to read what it is given. Who changes what runs nowhere needs none.
async fn who_writes_what_runs_may_read_it(environment: &Environment, tenant: &Tenant) -> Result<()> {
    const EDITOR: &str = "kim@example.com";
    const DENIED: [&str; 3] = [
        "vworkload.kb.io",
        "valueFrom.secretKeyRef.name",
        "permission to read the Secret was denied: get the right to \"get\" secrets \"db\"",
    ];
    let (namespace, server) = (tenant.namespace.as_str(), &tenant.project);
    let author = environment.as_user(P2, USER).await?;
    let editor = environment.as_user(P2, EDITOR).await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db", "namespace": namespace },
        "data": { "password": "c2VzYW1l" } });
    server.create(&secret, false).await?;
    let mut given = objects::workload(namespace, "given", &[("us", &["LHR"], 1)]);
    let key = json!({ "secretKeyRef": { "name": "db", "key": "password" } });
    let container = &mut given["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
    container["env"] = json!([{ "name": "PASSWORD", "valueFrom": key }]);
    let containers = json!([container]);
    refused(author.create(&given, false).await, &DENIED, "a Workload with a Secret")?;
    let read =
        |name: &str| json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"] });
    // The right to another is none to this.
    tenant.grant("other", USER, &read("other")).await?;
    tenant.grant("secret", USER, &read("db")).await?;
    eventually("the user may read the Secret", SOON, async || {
        author.create(&given, false).await.map(|_| ())
    })
    .await?;

    let rights =
        json!({ "apiGroups": ["compute.datumapis.com"], "resources": ["workloads"], "verbs": ["get", "patch"] });
    tenant.grant("editor", EDITOR, &rights).await?;
    let within = Some(namespace);
    let scaled =
        json!({ "spec": { "placements": objects::workload("", "", &[("us", &["LHR"], 2)])["spec"]["placements"] } });
    eventually("another user scales it", SOON, async || {
        editor.merge(WORKLOAD, within, "given", &scaled).await.map(|_| ())
    })
    .await?;
    let restarted = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
    let restarted = json!({ "spec": { "template": { "metadata": { "annotations": restarted } } } });
    let restarted = editor.merge(WORKLOAD, within, "given", &restarted).await;
    restarted.context("a restart asks for no right")?;
    // Another program would read what is named already.
    let mut containers = containers;
    containers[0]["image"] = json!("registry.test/other:1");
    let other =
        json!({ "spec": { "template": { "spec": { "runtime": { "sandbox": { "containers": containers } } } } } });
    let changed = editor.merge(WORKLOAD, within, "given", &other);
    refused(changed.await, &DENIED, "another program")?;
    let author_too = json!({ "apiGroups": ["compute.datumapis.com"], "resources": ["workloads"], "verbs": ["patch"] });
    tenant.grant("author", USER, &author_too).await?;
    eventually("who may read it changes what runs", SOON, async || {
        author.merge(WORKLOAD, within, "given", &other).await.map(|_| ())
    })
    .await?;
    tenant.clean("given").await
}
