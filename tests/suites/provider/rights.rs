//! What the provider's account may not do, whoever has its token.

use anyhow::{Context, Result};
use popcell_api::gates;
use popcell_suites::environment::SOON;
use popcell_suites::read::{is_ready, says, uid};
use popcell_suites::steps::refused;
use popcell_test_support::kind::{INSTANCE, POD};
use popcell_test_support::{Plane, eventually};
use serde_json::{Value, json};

use crate::environment::{Environment, Site};

pub(crate) async fn held(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    let provider = Plane::connect(site.cell.name(), &environment.account).await?;
    site.make("gated", &[gates::NETWORK], |_| {}).await?;
    let gated = site
        .instance("gated", |one| says(one, "Ready", "False", "SchedulingGatesPresent"))
        .await?;

    let pod = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": namespace, "name": "gated", "labels": { "compute.datumapis.com/instance-uid": uid(&gated) },
                "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "name": "gated",
                    "uid": uid(&gated), "controller": true }],
            },
            "spec": { "automountServiceAccountToken": false, "containers": [{ "name": "a", "image": "a:1",
                "securityContext": { "allowPrivilegeEscalation": false } }] },
        })
    };
    eventually("policies act, and let its own Pods pass", SOON, async || {
        let mut ownerless = pod(namespace);
        ownerless["metadata"]["ownerReferences"] = json!([]);
        refused(
            provider.create(&ownerless, true).await,
            &["that an Instance of their name owns"],
            "a Pod of no Instance",
        )?;
        provider.create(&pod(namespace), true).await.map(|_| ())
    })
    .await?;
    let reaches = "makes no Pod that reaches its node";
    let changes: [(&str, Value); 6] = [
        ("/spec/hostNetwork", json!(true)),
        ("/spec/automountServiceAccountToken", json!(true)),
        (
            "/spec/volumes",
            json!([{ "name": "root", "hostPath": { "path": "/" } }]),
        ),
        ("/spec/initContainers", json!([{ "name": "i", "image": "i:1" }])),
        (
            "/spec/containers/0/securityContext",
            json!({ "allowPrivilegeEscalation": true }),
        ),
        (
            "/spec/containers/0/ports",
            json!([{ "containerPort": 80, "hostPort": 80 }]),
        ),
    ];
    // Where no Pod Security refuses them already.
    site.cell
        .apply(&popcell_test_support::objects::namespace("unguarded"))
        .await?;
    for (place, value) in changes {
        let mut other = pod("unguarded");
        let (parent, field) = place.rsplit_once('/').context("no place")?;
        other.pointer_mut(parent).context("no parent")?[field] = value;
        refused(provider.create(&other, true).await, &[reaches], place)?;
    }
    let system = provider.create(&pod("kube-system"), true).await;
    refused(system, &["no Pods in namespaces of Kubernetes"], "a Pod of kube-system")?;

    let mut foreign = pod(namespace);
    foreign["metadata"] = json!({ "namespace": namespace, "name": "foreign" });
    site.cell.create(&foreign, false).await?;
    let deleted = provider.delete(POD, Some(namespace), "foreign").await;
    refused(
        deleted,
        &["that an Instance of their name owns"],
        "the deletion of another owner's Pod",
    )?;

    for patch in [
        json!({ "spec": { "controller": { "schedulingGates": [] } } }),
        json!({ "metadata": { "labels": { "a": "b" } } }),
        json!({ "metadata": { "finalizers": ["compute.datumapis.com/another"] } }),
    ] {
        let patched = provider.merge(INSTANCE, Some(namespace), "gated", &patch).await;
        refused(
            patched,
            &["its finalizer and the status of Instances"],
            &patch.to_string(),
        )?;
    }
    // What it has to do, it does under the same policies.
    site.make("web", &[], |_| {}).await?;
    site.instance("web", is_ready).await.map(|_| ())
}
