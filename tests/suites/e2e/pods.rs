//! Each Deployment of the manifests, started as a kubelet starts its Pod, serves where its probes and ports say.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use popcell_suites::environment::{DFW, Environment, ONE, SOON, SPARE};
use popcell_suites::read::at;
use popcell_test_support::kind::{CLUSTER, CRON_JOB, DEPLOYMENT, INTERPRETER_CONFIGURATION, INTERPRETER_CUSTOMIZATION};
use popcell_test_support::lab::HUB;
use popcell_test_support::pod::{self, Node, Pod};
use popcell_test_support::{
    Lab, Plane, artifacts, definitions, eventually, kubeconfig, manifests, objects, users, workspace,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::manifests::cert_manager;
use crate::manifests_pod::SERVING_CERTIFICATE;

const WEBHOOK: &str = "webhook/overlays/default";
const WEBHOOKS_NAMESPACE: &str = "popcell-system";
const WEBHOOK_NAME: &str = "popcell-webhook";
const MANAGER_NAME: &str = "compute-manager";
const PROVIDER_NAME: &str = "popcell-provider-pod";
/// As an API server says that an account of the Pods lacks a right. The server that stands in for milo refuses a cell's user.
const REFUSED: [&str; 2] = [" cannot ", "system:serviceaccount:compute-system:"];

/// Whether Pods can be started here. Where not, this is said.
fn possible() -> Result<bool> {
    let obstacle = pod::obstacle()?;
    if let Some(obstacle) = &obstacle {
        eprintln!("SKIPPED: {obstacle}");
    }
    Ok(obstacle.is_none())
}

/// The interpreter webhook, with the certificate that cert-manager would make.
pub(crate) async fn webhook(environment: &Environment, _: &str) -> Result<()> {
    if !possible()? {
        return Ok(());
    }
    let home = environment.lab.plane(SPARE).await?;
    cert_manager(&home).await?;
    installed(&home, &manifests::build(WEBHOOK.as_ref())?).await?;
    let name = format!("{WEBHOOK_NAME}.{WEBHOOKS_NAMESPACE}.svc");
    let (certificate, key) = environment.lab.server_certificate("webhook", &name).await?;
    let files = [("tls.crt", read(&certificate)?), ("tls.key", read(&key)?)];
    home.apply(&secret(WEBHOOKS_NAMESPACE, "popcell-webhook-tls", &files))
        .await?;

    let node = Node::of(&environment.lab, &home);
    let mut pod = node.start(DEPLOYMENT, WEBHOOKS_NAMESPACE, WEBHOOK_NAME).await?;
    pod.ready().await?;
    pod.serves().await?;
    register(&environment.lab, &home, &pod.address("https")?).await?;
    pod.end()
}

/// The CronJob that is shipped with it calls it and registers it. Not in the hub, which has a member whose agent could not resolve
/// the name of a Service: in a server with the kinds that it reads and writes.
async fn register(lab: &Lab, home: &Plane, webhook: &str) -> Result<()> {
    let karmada = lab.plane(ONE).await?;
    for kind in [INTERPRETER_CONFIGURATION, INTERPRETER_CUSTOMIZATION, CLUSTER] {
        let mut crd = objects::open_crd(kind.group, kind.kind, kind.plural);
        crd["spec"]["scope"] = json!("Cluster");
        crd["spec"]["versions"][0]["name"] = json!(kind.version);
        karmada.apply(&crd).await?;
    }
    identify(lab).await?;
    let authority = secret(
        WEBHOOKS_NAMESPACE,
        "popcell-webhook-ca",
        &[("tls.crt", read(lab.ca_file())?)],
    );
    home.apply(&authority).await?;
    let node = Node::of(lab, home).name(&format!("{WEBHOOK_NAME}.{WEBHOOKS_NAMESPACE}.svc"), 443, webhook)?;
    let mut registered = None;
    // The second time, and each later one, has nothing to do and does nothing.
    for _ in 0..2 {
        let mut job = node.start(CRON_JOB, WEBHOOKS_NAMESPACE, "popcell-register").await?;
        job.completes().await?;
        let now = karmada.expect(INTERPRETER_CONFIGURATION, None, "popcell").await?;
        let before = registered.replace(now.clone());
        ensure!(
            before.is_none_or(|before| before.metadata.resource_version == now.metadata.resource_version),
            "registered again: {now:?}"
        );
    }
    let registered = registered.context("it was not registered")?;
    let service = at(&registered, "/webhooks/0/clientConfig/service");
    ensure!(
        service["name"] == WEBHOOK_NAME && service["port"] == 443,
        "{registered:?}"
    );
    Ok(())
}

/// Who registers is made by the commands of the docs, as an operator copies them; also the second time.
async fn identify(lab: &Lab) -> Result<()> {
    let commands = workspace::commands_of_page("docs/operations.md", "register.rbac.yaml")?;
    let (named, here) = (
        "https://karmada-apiserver.karmada-system.svc.cluster.local:5443",
        lab.url(ONE)?,
    );
    ensure!(commands.contains(named), "{commands}");
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    fs::copy(lab.kubeconfig(ONE)?, folder.path().join("karmada.kubeconfig")).context("failed to copy a kubeconfig")?;
    symlink(workspace::root().join("manifests"), folder.path().join("manifests"))
        .context("failed to link manifests")?;
    let programs = artifacts::lab_programs()?.into_os_string();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [programs.as_os_str(), &path].join(OsStr::new(":"));
    for _ in 0..2 {
        let ran = Command::new("sh")
            .args(["-euc", &commands.replace(named, here)])
            .env("PATH", &path)
            .env("KUBECONFIG", lab.kubeconfig(SPARE)?)
            .current_dir(folder.path())
            .output()
            .await
            .context("failed to start sh")?;
        let complaint = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "the commands of the docs failed: {complaint}");
    }
    Ok(())
}

/// The management plane, whose token the hub trusts, and which finds the hub by the name that is shipped.
pub(crate) async fn management_plane(environment: &Environment, _: &str) -> Result<()> {
    if !possible()? {
        return Ok(());
    }
    let lab = &environment.lab;
    let home = lab.plane(SPARE).await?;
    definitions::discovery(&home, &[]).await?;
    serving_certificate(lab, &home).await?;
    installed(&home, &manifests::build(manifests::MANAGEMENT_PLANE.as_ref())?).await?;
    let authority = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "compute-karmada-ca", "namespace": users::NAMESPACE },
        "data": { "ca.crt": String::from_utf8(read(lab.ca_file())?)? },
    });
    home.apply(&authority).await?;
    users::cells_on_hub(&lab.hub().await?, &[DFW]).await?;
    environment.trust.put_in(lab, SPARE).await?;

    let node = Node::of(lab, &home).name(
        "karmada-apiserver.karmada-system.svc.cluster.local",
        5443,
        lab.url(HUB)?,
    )?;
    leads(&node).await
}

/// A cell, with quota and with the provider of Pods.
pub(crate) async fn cell(environment: &Environment, _: &str) -> Result<()> {
    if !possible()? {
        return Ok(());
    }
    let lab = &environment.lab;
    let home = lab.plane(DFW).await?;
    let shipped = manifests::build_own(&json!({
        "resources": [above(manifests::CELL)],
        "components": [above(manifests::PROVIDER)],
    }))?;
    installed(&home, &shipped).await?;
    let node = Node::of(lab, &home);
    let early = node.start(DEPLOYMENT, users::NAMESPACE, MANAGER_NAME).await.err();
    let early = format!("{:#}", early.context("a Pod starts without its Secrets")?);
    ensure!(early.contains("no Secret compute-system/compute-"), "{early}");
    let hub = lab.hub().await?;
    users::cells_on_hub(&hub, &[DFW]).await?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": DFW, "namespace": users::CELLS_NAMESPACE },
    });
    hub.apply(&account).await?;
    let token = hub.token(users::CELLS_NAMESPACE, DFW).await?;
    // What it names by a relative path is a key beside it.
    let user = json!({ "tokenFile": "token" });
    let kubeconfig = kubeconfig::document(lab.url(HUB)?, Some(Path::new("ca.crt")), &user);
    let files = [
        ("kubeconfig", kubeconfig.to_string().into_bytes()),
        ("token", token.into_bytes()),
        ("ca.crt", read(lab.ca_file())?),
    ];
    home.apply(&secret(users::NAMESPACE, "compute-hub-credentials", &files))
        .await?;
    home.apply(&quota_credentials(lab, DFW).await?).await?;

    leads(&node).await?;
    provides(&node).await
}

/// Everything on one cluster, where nothing was before: as it is, and with quota and the provider of Pods.
pub(crate) async fn one_cluster(environment: &Environment, _: &str) -> Result<()> {
    if !possible()? {
        return Ok(());
    }
    let lab = &environment.lab;
    let home = lab.plane(ONE).await?;
    let node = Node::of(lab, &home);
    // Nothing is on until a component switches it on.
    installed(&home, &manifests::build(manifests::MANAGER.as_ref())?).await?;
    let mut idle = node.start(DEPLOYMENT, users::NAMESPACE, MANAGER_NAME).await?;
    idle.ready().await?;
    idle.serves().await?;
    ends(&mut idle)?;
    serving_certificate(lab, &home).await?;
    installed(&home, &manifests::build(manifests::SINGLE_CLUSTER.as_ref())?).await?;
    leads(&node).await?;

    // As the comments of its config.yaml say.
    let config = json!({
        "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
        "kind": "WorkloadOperator",
        "webhookServer": {},
        "discovery": {
            "mode": "single", "clusterName": "single", "projectID": "p1",
            "quotaKubeconfigPath": "/etc/quota-credentials/kubeconfig",
        },
    });
    let shipped = manifests::build_own(&json!({
        "resources": [above(manifests::SINGLE_CLUSTER)],
        "components": [
            above(manifests::QUOTA_CREDENTIALS), above(manifests::PROVIDER), above(manifests::CSI_CERTIFICATE),
        ],
        "patches": [{ "patch": issuer().to_string() }],
        "configMapGenerator": [{
            "name": "compute-config", "namespace": users::NAMESPACE, "behavior": "replace",
            "literals": [format!("config.yaml={config}")],
        }],
    }))?;
    installed(&home, &shipped).await?;
    home.apply(&quota_credentials(lab, "single").await?).await?;
    leads(&node).await?;
    provides(&node).await
}

/// The other tests here start all of them: of every overlay, and of every component that changes or makes one.
pub(crate) async fn all(_: &Environment, _: &str) -> Result<()> {
    let mut with_deployment = BTreeSet::new();
    for overlay in manifests::overlays()? {
        let shipped = manifests::build(&overlay)?;
        if shipped.iter().any(|object| object["kind"] == "Deployment") {
            with_deployment.insert(overlay.display().to_string());
        }
    }
    let started = [
        WEBHOOK,
        manifests::MANAGEMENT_PLANE,
        manifests::CELL,
        manifests::SINGLE_CLUSTER,
    ];
    ensure!(
        with_deployment == started.map(str::to_owned).into(),
        "{with_deployment:?}"
    );
    let root = workspace::root().join("manifests");
    let text = |dir: &Path| String::from_utf8(read(&dir.join("kustomization.yaml"))?).context("not a text");
    let mut used = [
        manifests::PROVIDER,
        manifests::QUOTA_CREDENTIALS,
        manifests::CSI_CERTIFICATE,
    ]
    .map(str::to_owned)
    .to_vec();
    for overlay in started {
        used.push(text(&root.join(overlay))?);
    }
    for component in std::fs::read_dir(root.join("components")).context("failed to list the components")? {
        let dir = component.context("failed to list the components")?.path();
        if text(&dir)?.contains("kind: Deployment") || dir.join("deployment.yaml").exists() {
            let name = format!("components/{}", dir.file_name().unwrap_or_default().display());
            ensure!(
                used.iter().any(|used| used.contains(&name)),
                "{name} is started by none"
            );
        }
    }
    Ok(())
}

/// A Pod of the manager serves, and has what it needs where it runs: it takes the Lease.
async fn leads(node: &Node<'_>) -> Result<()> {
    let mut pod = node.start(DEPLOYMENT, users::NAMESPACE, MANAGER_NAME).await?;
    let outcome = async {
        pod.ready().await?;
        pod.serves().await?;
        eventually("it leads", SOON, async || {
            let leads = pod.metric("popcell_leader").await?;
            ensure!(leads > 0.5, "it does not");
            Ok(())
        })
        .await
    };
    outcome.await.with_context(|| pod.log())?;
    ends(&mut pod)
}

async fn provides(node: &Node<'_>) -> Result<()> {
    let mut pod = node.start(DEPLOYMENT, users::NAMESPACE, PROVIDER_NAME).await?;
    pod.ready().await?;
    pod.serves().await?;
    ends(&mut pod)
}

/// It ends well, and no right was missing.
fn ends(pod: &mut Pod) -> Result<()> {
    pod.end()?;
    let log = pod.log();
    let refused = log.lines().find(|line| REFUSED.iter().all(|text| line.contains(text)));
    ensure!(refused.is_none(), "{refused:?}");
    Ok(())
}

/// Applies all of it as an operator does, but for registrations of webhooks that nobody serves here.
async fn installed(home: &Plane, shipped: &[Value]) -> Result<()> {
    for object in shipped {
        let kind = object["kind"].as_str().unwrap_or_default();
        let what = format!("{kind} {}", object["metadata"]["name"]);
        let applied = eventually(&what, SOON, async || {
            if kind.ends_with("WebhookConfiguration") {
                home.dry_run(object).await
            } else {
                home.apply(object).await
            }
        });
        applied.await?;
    }
    Ok(())
}

/// The namespace of the program, the kinds of cert-manager, and the Secret that it would make of the Certificate that is shipped.
async fn serving_certificate(lab: &Lab, home: &Plane) -> Result<()> {
    cert_manager(home).await?;
    home.apply(&objects::namespace(users::NAMESPACE)).await?;
    let names = [
        "compute-webhook.compute-system.svc",
        "compute-webhook.compute-system.svc.cluster.local",
    ];
    let (certificate, key) = lab.server_certificate("admission", &names.join(" ")).await?;
    let files = [
        ("tls.crt", read(&certificate)?),
        ("tls.key", read(&key)?),
        ("ca.crt", read(lab.ca_file())?),
    ];
    home.apply(&secret(users::NAMESPACE, SERVING_CERTIFICATE, &files))
        .await?;
    Ok(())
}

/// What an operator adds to `components/csi-webhook-cert`: whose certificates the driver makes.
fn issuer() -> Value {
    let attributes = json!({
        "csi.cert-manager.io/issuer-kind": "ClusterIssuer", "csi.cert-manager.io/issuer-name": "compute-webhook",
    });
    let volume = json!({
        "name": "webhook-cert", "csi": { "driver": "csi.cert-manager.io", "volumeAttributes": attributes },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": MANAGER_NAME, "namespace": users::NAMESPACE },
        "spec": { "template": { "spec": { "volumes": [volume] } } },
    })
}

/// The Secret of `components/quota-credentials`, for the API server of a milo.
async fn quota_credentials(lab: &Lab, cluster: &str) -> Result<Value> {
    let kubeconfigs = lab.user(&users::cell(cluster), &[]).await?;
    let kubeconfig = read(kubeconfigs.get(SPARE).context("no kubeconfig")?)?;
    Ok(secret(
        users::NAMESPACE,
        "compute-quota-credentials",
        &[("kubeconfig", kubeconfig)],
    ))
}

fn secret(namespace: &str, name: &str, files: &[(&str, Vec<u8>)]) -> Value {
    let data: serde_json::Map<String, Value> = files
        .iter()
        .map(|(key, content)| ((*key).to_owned(), json!(STANDARD.encode(content))))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace }, "data": data,
    })
}

fn above(part: &str) -> String {
    format!("../{part}")
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}
