//! A server's webhook that fails for one namespace, and an object that etcd does not take.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::DynamicObject;
use popcell_api::kind::{Kind, Scope};
use popcell_https::{Certificates, FilePair, Limits, Listener, Source};
use popcell_test_support::kind::WORKLOAD;
use popcell_test_support::{Lab, Plane, eventually, objects};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::environment::SOON;

const VALIDATING: Kind = Kind::of(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    Scope::Cluster,
);
/// What etcd takes, in bytes of a request.
const ETCD: usize = 1_572_864;

/// Makes a Workload of one replica in `city` with so many bytes of an environment variable.
///
/// # Errors
/// The project does not take it.
pub async fn create_large(
    project: &Plane,
    namespace: &str,
    name: &str,
    city: &str,
    bytes: usize,
) -> Result<DynamicObject> {
    let mut workload = objects::workload(namespace, name, &[("us", &[city], 1)]);
    let container = &mut workload["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
    container["env"] = json!([{ "name": "LARGE", "value": "x".repeat(bytes) }]);
    project.create(&workload, false).await
}

/// The most bytes of [`create_large`] that a project takes, to some hundred bytes: what is made of it is larger.
///
/// # Errors
/// The project takes no large Workload at all.
pub async fn largest(project: &Plane, namespace: &str, city: &str) -> Result<usize> {
    const NAME: &str = "largest";
    let mut bytes = ETCD;
    while create_large(project, namespace, NAME, city, bytes).await.is_err() {
        bytes -= 200;
        ensure!(bytes > ETCD / 2, "the project takes no large Workload at all");
    }
    project.delete(WORKLOAD, Some(namespace), NAME).await?;
    Ok(bytes)
}

/// A validating webhook of a hub that answers 500 to whatever is written of WorkloadDeployments in one namespace. Its
/// server ends with this value.
pub struct FailingWebhook {
    name: String,
    hub: Plane,
    _serving: AbortOnDropHandle<()>,
}

impl FailingWebhook {
    /// Starts it, and waits until the hub asks it.
    ///
    /// # Errors
    /// It does not start, or the hub does not ask it.
    pub async fn start(lab: &Lab, hub: Plane, namespace: &str) -> Result<Self> {
        const HOST: &str = "127.0.0.1";
        let (certificate, key) = lab.server_certificate("failing", HOST).await?;
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
            if let Err(error) = listener.serve(&certificates, router, CancellationToken::new()).await {
                eprintln!("the failing webhook ended: {error}");
            }
        });
        let name = format!("failing-{namespace}");
        let within = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
        let authority = STANDARD.encode(std::fs::read(lab.ca_file()).context("failed to read the lab's authority")?);
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
        hub.apply(&configuration).await?;
        let probe = objects::workload_deployment(namespace, "refused", "LHR", 1);
        eventually("the webhook refuses", SOON, async || {
            let refusal = hub.create(&probe, true).await.err().context("it is admitted")?;
            ensure!(format!("{refusal:#}").contains("failed calling webhook"), "{refusal:#}");
            Ok(())
        })
        .await?;
        Ok(Self {
            name,
            hub,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    /// The hub asks it no longer.
    ///
    /// # Errors
    /// Its configuration stays.
    pub async fn end(self) -> Result<()> {
        self.hub.delete(VALIDATING, None, &self.name).await
    }
}
