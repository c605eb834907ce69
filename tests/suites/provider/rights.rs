//! What the provider's account may not do, whoever has its token.

use anyhow::{Context, Result};
use kube::api::DynamicObject;
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
            "spec": { "automountServiceAccountToken": false, "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
                "containers": [{ "name": "a", "image": "a:1", "securityContext": { "allowPrivilegeEscalation": false } }] },
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
    // Where no Pod Security refuses them already.
    site.cell
        .apply(&popcell_test_support::objects::namespace("unguarded"))
        .await?;
    for (place, value, message) in changes() {
        let mut other = pod("unguarded");
        let (parent, field) = place.rsplit_once('/').context("no place")?;
        other.pointer_mut(parent).context("no parent")?[field] = value;
        refused(provider.create(&other, true).await, &[message], place)?;
    }
    let system = provider.create(&pod("kube-system"), true).await;
    refused(system, &["no Pods in namespaces of Kubernetes"], "a Pod of kube-system")?;

    // As a RuntimeClass adds it.
    let mut sandboxed = pod(namespace);
    sandboxed["spec"]["tolerations"] = json!([{ "key": "sandbox.example.com/runtime", "operator": "Exists" }]);
    provider.create(&sandboxed, true).await?;
    policies(&provider, namespace, &gated).await?;

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
    let granted = json!({ "conditions": [{ "type": "QuotaGranted", "status": "True", "reason": "QuotaAvailable", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let written = provider.set_status(INSTANCE, Some(namespace), "gated", &granted).await;
    refused(
        written,
        &["conditions Programmed and Available, and no other"],
        "QuotaGranted",
    )?;
    // What it has to do, it does under the same policies.
    site.make("web", &[], |_| {}).await?;
    site.instance("web", is_ready).await.map(|_| ())
}

/// NetworkPolicies, with which all traffic of a namespace could be kept away.
async fn policies(provider: &Plane, namespace: &str, instance: &DynamicObject) -> Result<()> {
    let policy = |namespace: &str| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {
                "namespace": namespace, "name": format!("instance-{}", uid(instance)),
                "labels": { "compute.datumapis.com/instance-uid": uid(instance) },
                "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "name": "gated",
                    "uid": uid(instance), "controller": true }],
            },
            "spec": { "podSelector": { "matchLabels": { "compute.datumapis.com/instance-uid": uid(instance) } },
                "policyTypes": ["Ingress"] },
        })
    };
    provider.create(&policy(namespace), true).await?;
    for (place, value) in [
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/name", json!("another")),
        ("/spec/podSelector", json!({})),
        ("/spec/podSelector", json!({ "matchLabels": { "app": "a" } })),
        (
            "/spec/podSelector",
            json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] }),
        ),
    ] {
        let mut other = policy(namespace);
        *other.pointer_mut(place).context("no such place")? = value;
        eventually(place, SOON, async || {
            let made = provider.create(&other, true).await;
            refused(made, &["only the NetworkPolicy of an Instance, for its Pod"], place)
        })
        .await?;
    }
    let system = provider.create(&policy("kube-system"), true).await;
    refused(
        system,
        &["no NetworkPolicies in namespaces of Kubernetes"],
        "a NetworkPolicy of kube-system",
    )
}

/// What of a Pod is not allowed: its place, a value, and what the refusal says.
fn changes() -> [(&'static str, Value, &'static str); 22] {
    let (reaches, displaces) = (
        "makes no Pod that reaches its node",
        "makes no Pod of Kubernetes itself",
    );
    let of_container = |field: &str, value: Value| json!({ "allowPrivilegeEscalation": false, field: value });
    [
        ("/spec/hostNetwork", json!(true), reaches),
        ("/spec/hostPID", json!(true), reaches),
        ("/spec/hostIPC", json!(true), reaches),
        ("/spec/shareProcessNamespace", json!(true), reaches),
        ("/spec/nodeName", json!("node"), reaches),
        ("/spec/automountServiceAccountToken", json!(true), reaches),
        (
            "/spec/volumes",
            json!([{ "name": "root", "hostPath": { "path": "/" } }]),
            reaches,
        ),
        (
            "/spec/initContainers",
            json!([{ "name": "i", "image": "i:1" }]),
            reaches,
        ),
        (
            "/spec/securityContext",
            json!({ "seccompProfile": { "type": "Unconfined" } }),
            reaches,
        ),
        ("/spec/securityContext/seLinuxOptions", json!({ "type": "t" }), reaches),
        (
            "/spec/containers/0/securityContext",
            json!({ "allowPrivilegeEscalation": true }),
            reaches,
        ),
        (
            "/spec/containers/0/securityContext",
            json!({ "allowPrivilegeEscalation": true, "privileged": true }),
            // By the server of the lab before any policy.
            "disallowed by cluster policy",
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("capabilities", json!({ "add": ["SYS_ADMIN"] })),
            reaches,
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("seccompProfile", json!({ "type": "Unconfined" })),
            reaches,
        ),
        (
            "/spec/containers/0/ports",
            json!([{ "containerPort": 80, "hostPort": 80 }]),
            reaches,
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("procMount", json!("Unmasked")),
            // By the server before any policy: it goes with a user namespace.
            "procMount",
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("seLinuxOptions", json!({ "type": "spc_t" })),
            reaches,
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("windowsOptions", json!({ "runAsUserName": "a" })),
            reaches,
        ),
        (
            "/spec/containers/0/securityContext",
            of_container("appArmorProfile", json!({ "type": "Unconfined" })),
            reaches,
        ),
        ("/spec/priorityClassName", json!("system-node-critical"), displaces),
        ("/spec/tolerations", json!([{ "operator": "Exists" }]), displaces),
        (
            "/spec/tolerations",
            json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" }]),
            displaces,
        ),
    ]
}
