//! Who the controller is in the hub: what manifests/hub-rbac gives it, and nothing else.

use anyhow::{Context, Result, ensure};
use popcell_api::names::REMOVED_CELLS;
use popcell_test_support::Plane;
use serde_json::{Value, json};

use crate::world::World;

/// Verb, group, resource, namespace, name.
type Request = (&'static str, &'static str, &'static str, &'static str, &'static str);

const MAY: &[Request] = &[
    ("watch", "", "namespaces", "", ""),
    ("create", "", "namespaces", "", ""),
    ("patch", "", "namespaces", "", ""),
    ("delete", "", "namespaces", "", ""),
    ("watch", "", "resourcequotas", "", ""),
    ("get", "", "resourcequotas", "any", ""),
    ("create", "", "resourcequotas", "any", ""),
    ("patch", "", "resourcequotas", "any", ""),
    ("delete", "", "resourcequotas", "any", ""),
    ("get", "compute.datumapis.com", "workloaddeployments", "any", ""),
    ("create", "compute.datumapis.com", "workloaddeployments", "any", ""),
    ("patch", "compute.datumapis.com", "workloaddeployments", "any", ""),
    ("delete", "compute.datumapis.com", "workloaddeployments", "any", ""),
    ("get", "compute.datumapis.com", "instances", "any", ""),
    ("list", "compute.datumapis.com", "instances", "any", ""),
    ("delete", "compute.datumapis.com", "instances", "any", ""),
    ("create", "policy.karmada.io", "propagationpolicies", "any", ""),
    ("patch", "policy.karmada.io", "propagationpolicies", "any", ""),
    ("delete", "policy.karmada.io", "propagationpolicies", "any", ""),
    ("get", "cluster.karmada.io", "clusters", "", ""),
    ("watch", "cluster.karmada.io", "clusters", "", ""),
    ("watch", "work.karmada.io", "resourcebindings", "any", ""),
    ("get", "", "configmaps", "compute-system", REMOVED_CELLS),
];

const MAY_NOT: &[Request] = &[
    ("get", "", "secrets", "karmada-cluster", ""),
    ("get", "", "configmaps", "compute-system", "other"),
    ("update", "", "configmaps", "compute-system", REMOVED_CELLS),
    ("patch", "", "resourcequotas/status", "any", ""),
    ("delete", "cluster.karmada.io", "clusters", "", ""),
    ("patch", "work.karmada.io", "resourcebindings", "any", ""),
    // Cells make copies, and Karmada writes what cells say of WorkloadDeployments.
    ("create", "compute.datumapis.com", "instances", "any", ""),
    ("patch", "compute.datumapis.com", "instances", "any", ""),
    ("patch", "compute.datumapis.com", "instances/status", "any", ""),
    (
        "patch",
        "compute.datumapis.com",
        "workloaddeployments/status",
        "any",
        "",
    ),
    // Every change is a patch.
    ("update", "compute.datumapis.com", "workloaddeployments", "any", ""),
    ("create", "policy.karmada.io", "clusterpropagationpolicies", "", ""),
    ("list", "config.karmada.io", "resourceinterpretercustomizations", "", ""),
    (
        "patch",
        "config.karmada.io",
        "resourceinterpreterwebhookconfigurations",
        "",
        "",
    ),
    (
        "create",
        "",
        "serviceaccounts/token",
        "compute-system",
        "compute-manager",
    ),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
];

pub(crate) async fn exact(world: &World, _: &str) -> Result<()> {
    let hub = Plane::connect("hub", world.hub_user()).await?;
    for (requests, expected) in [(MAY, true), (MAY_NOT, false)] {
        for request in requests {
            ensure!(
                allowed(&hub, *request).await? == expected,
                "{request:?} is not {expected}"
            );
        }
    }
    Ok(())
}

async fn allowed(hub: &Plane, (verb, group, resource, namespace, name): Request) -> Result<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "namespace": namespace, "name": name,
        } },
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())?;
    let answer: Value = hub.client().request(request).await?;
    answer["status"]["allowed"].as_bool().context("no answer")
}
