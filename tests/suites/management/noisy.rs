//! Objects of one namespace that no server accepts, beside those of another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use popcell_api::kind::{Kind, Scope};
use popcell_https::{Certificates, FilePair, Limits, Listener, Source};
use popcell_suites::world::SOON;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{eventually, objects};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::tenant::Tenant;
use crate::world::{P1, World};

/// Objects that fail.
const MANY: usize = 50;
/// Workloads of the other namespace in each part of the run: the slowest is the 99th percentile.
const MEASURED: usize = 30;
/// Slower than twice the quiet figure is delayed by others only beyond this. Programs and servers of a test share few
/// processors, which objects of 1.5 MB keep busy for seconds; an open circuit breaker costs 15 s and more.
const GRANULARITY: Duration = Duration::from_secs(10);
const VALIDATING: Kind = Kind::of(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    Scope::Cluster,
);
/// What etcd takes, in bytes of a request.
const ETCD: usize = 1_572_864;

/// Fifty Workloads behind a webhook of the hub that answers 500, then fifty that are too large for etcd.
pub(crate) async fn beside_others(world: &World, namespace: &str) -> Result<()> {
    let short: String = namespace.chars().take(50).collect();
    let noisy = Tenant::new(world, P1, &format!("{short}-a")).await?;
    let other = Tenant::new(world, P1, &format!("{short}-b")).await?;
    // Its hub namespace is there before anything is measured.
    carried(&other, "first").await?;
    noisy.workload("first", &[("us", &["LHR"], 1)]).await?;
    noisy.in_hub(WORKLOAD_DEPLOYMENT, "first-us-lhr", |_| Ok(())).await?;
    let quiet = slowest(&other, "quiet").await?;

    let webhook = Failing::start(world, &noisy).await?;
    for number in 0..MANY {
        noisy
            .workload(&format!("failing-{number}"), &[("us", &["LHR"], 1)])
            .await?;
    }
    eventually("the webhook is called", SOON, async || webhook.was_called(world).await).await?;
    let beside_failing = slowest(&other, "failing").await?;
    let names = noisy.names_in_hub(WORKLOAD_DEPLOYMENT).await?;
    ensure!(
        names == ["first-us-lhr"],
        "the webhook has let something through: {names:?}"
    );
    webhook.end(&noisy).await?;
    for number in 0..MANY {
        noisy.delete(WORKLOAD, &format!("failing-{number}")).await?;
    }

    let size = largest(&noisy).await?;
    for number in 0..MANY {
        large(&noisy, &format!("large-{number}"), size).await?;
    }
    let beside_large = slowest(&other, "large").await?;
    eprintln!(
        "noisy: {quiet:?} quiet, {beside_failing:?} beside a webhook that fails, {beside_large:?} beside {size} bytes"
    );
    for number in 0..MANY {
        noisy.delete(WORKLOAD, &format!("large-{number}")).await?;
    }
    for found in [beside_failing, beside_large] {
        ensure!(
            found <= (2 * quiet).max(GRANULARITY),
            "{found:?}, and {quiet:?} without the others"
        );
    }
    Ok(())
}

/// The longest time from a Workload to its WorkloadDeployment in the hub.
async fn slowest(tenant: &Tenant, part: &str) -> Result<Duration> {
    let mut times = Vec::new();
    for number in 0..MEASURED {
        times.push(carried(tenant, &format!("{part}-{number}")).await?);
    }
    times.sort();
    let (middle, slowest) = (times.get(MEASURED / 2), times.last().context("nothing was measured")?);
    eprintln!("noisy: {part}: {middle:?} in the middle, {slowest:?} at most");
    Ok(*slowest)
}

async fn carried(tenant: &Tenant, name: &str) -> Result<Duration> {
    let since = Instant::now();
    tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
    let deployment = format!("{name}-us-lhr");
    let is_there = async {
        let namespace = Some(tenant.hub_namespace.as_str());
        while tenant
            .hub
            .get(WORKLOAD_DEPLOYMENT, namespace, &deployment)
            .await?
            .is_none()
        {
            sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    timeout(SOON, is_there).await.context("it is not carried")??;
    Ok(since.elapsed())
}

/// Makes a Workload with so many bytes of an environment variable.
async fn large(tenant: &Tenant, name: &str, size: usize) -> Result<()> {
    let mut workload = objects::workload(&tenant.namespace, name, &[("us", &["LHR"], 1)]);
    let container = &mut workload["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
    container["env"] = json!([{ "name": "LARGE", "value": "x".repeat(size) }]);
    tenant.project.create(&workload, false).await.map(|_| ())
}

/// The largest that a project takes, to some hundred bytes: what is made of it is larger.
async fn largest(tenant: &Tenant) -> Result<usize> {
    let mut size = ETCD;
    while large(tenant, "largest", size).await.is_err() {
        size -= 200;
        ensure!(size > ETCD / 2, "the project takes no large Workload at all");
    }
    tenant.delete(WORKLOAD, "largest").await?;
    Ok(size)
}

/// A webhook of the hub that answers 500 to whatever is written of WorkloadDeployments in one namespace.
struct Failing {
    name: String,
    _serving: AbortOnDropHandle<()>,
}

impl Failing {
    async fn start(world: &World, tenant: &Tenant) -> Result<Self> {
        const HOST: &str = "127.0.0.1";
        let (certificate, key) = world.lab.server_certificate("failing", HOST).await?;
        let files = FilePair {
            certificate,
            key,
            names: Vec::new(),
        };
        let certificates = Arc::new(Certificates::open(Source::Files(files))?);
        let listener = Listener::bind(format!("{HOST}:0").parse()?, Limits::default()).await?;
        let url = format!("https://{}/", listener.address());
        let router = Router::new().fallback(async || StatusCode::INTERNAL_SERVER_ERROR);
        let serving = tokio::spawn(async move {
            let served = listener.serve(&certificates, router, CancellationToken::new()).await;
            served.unwrap();
        });
        let name = format!("failing-{}", tenant.hub_namespace);
        let within = json!({ "matchLabels": { "kubernetes.io/metadata.name": tenant.hub_namespace } });
        let authority = STANDARD.encode(std::fs::read(world.lab.ca_file())?);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": name },
            "webhooks": [{
                "name": "failing.popcell.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Fail", "namespaceSelector": within,
                "clientConfig": { "url": url, "caBundle": authority },
                "rules": [{ "apiGroups": ["compute.datumapis.com"], "apiVersions": ["*"],
                    "resources": ["workloaddeployments", "workloaddeployments/status"],
                    "operations": ["CREATE", "UPDATE"] }],
            }],
        });
        tenant.hub.apply(&configuration).await?;
        let probe = objects::workload_deployment(&tenant.hub_namespace, "refused", "LHR", 1);
        eventually("the webhook refuses", SOON, async || {
            let refusal = tenant.hub.create(&probe, true).await.err().context("it is admitted")?;
            ensure!(format!("{refusal:#}").contains("failed calling webhook"), "{refusal:#}");
            Ok(())
        })
        .await?;
        Ok(Self {
            name,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    /// The controller has met it.
    async fn was_called(&self, world: &World) -> Result<()> {
        let log = world.controller.lock().await.log();
        ensure!(log.contains("failed calling webhook"), "it was not");
        Ok(())
    }

    async fn end(self, tenant: &Tenant) -> Result<()> {
        tenant.hub.delete(VALIDATING, None, &self.name).await
    }
}
