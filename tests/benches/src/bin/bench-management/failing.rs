//! A server's webhook that fails for one namespace, and an object that etcd does not take.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::{Kind, Scope};
use popcell_suites::environment::SOON;
use popcell_test_support::kind::WORKLOAD;
use popcell_test_support::{Plane, eventually, objects};
use serde_json::json;

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
pub(crate) async fn create_large(
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
pub(crate) async fn largest(project: &Plane, namespace: &str, city: &str) -> Result<usize> {
    const NAME: &str = "largest";
    let mut bytes = ETCD;
    while create_large(project, namespace, NAME, city, bytes).await.is_err() {
        bytes -= 200;
        ensure!(bytes > ETCD / 2, "the project takes no large Workload at all");
    }
    project.delete(WORKLOAD, Some(namespace), NAME).await?;
    Ok(bytes)
}

/// Registers a validating webhook with a hub for what is written of WorkloadDeployments in one namespace, which nobody
/// serves, and waits until the hub refuses for it; answers its name.
pub(crate) async fn failing_webhook(hub: &Plane, namespace: &str) -> Result<String> {
    let name = format!("failing-{namespace}");
    let within = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": name },
        "webhooks": [{
            "name": "failing.popcell.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "namespaceSelector": within,
            "clientConfig": { "url": "https://127.0.0.1:1/" },
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
    Ok(name)
}

/// The hub asks the webhook of this name no longer.
pub(crate) async fn forget_webhook(hub: &Plane, name: &str) -> Result<()> {
    hub.delete(VALIDATING, None, name).await
}
