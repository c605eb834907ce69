//! The rights that are shipped, as a real API server understands them.

use anyhow::{Context, Result, ensure};
use http::Request;
use popcell_api::names::{CLAIM_PROJECTS, LEASE, REMOVED_CELLS};
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_test_support::{Plane, eventually, manifests, users};
use serde_json::{Value, json};

use crate::manifests::{accepted, only};
use crate::manifests_pod::Pod;

const COMPUTE: &str = "compute.datumapis.com";
const NETWORKING: &str = "networking.datumapis.com";
const QUOTA: &str = "quota.miloapis.com";
const RBAC: &str = "rbac.authorization.k8s.io";
const HOME: &str = users::NAMESPACE;
const CELLS: &str = users::CELLS_NAMESPACE;
const ANY: &str = "any";

/// Whether something is allowed: verb, group, resource with its subresource, namespace, name.
type Right = (
    bool,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// What the management plane binds to itself in namespaces of projects.
const REFERENCED_DATA: &str = "popcell-referenced-data";

/// What the user may do in a project.
pub(crate) async fn project(environment: &Environment, _: &str) -> Result<()> {
    let plane = environment.lab.plane(SPARE).await?;
    let shipped = manifests::build(manifests::PROJECT_RBAC.as_ref())?;
    accepted(&plane, &shipped).await?;
    let user = only(&shipped, "ClusterRoleBinding")?["subjects"][0]["name"].clone();
    let rights: [Right; 20] = [
        (true, "patch", COMPUTE, "workloads", ANY, ""),
        (true, "patch", COMPUTE, "workloads/status", ANY, ""),
        (false, "create", COMPUTE, "workloads", ANY, ""),
        (false, "delete", COMPUTE, "workloads", ANY, ""),
        (true, "create", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "delete", COMPUTE, "instances", ANY, ""),
        (true, "watch", NETWORKING, "locationbindings", ANY, ""),
        (true, "watch", NETWORKING, "networks", ANY, ""),
        (false, "patch", NETWORKING, "networks", ANY, ""),
        // Nothing in the project plane chooses a Location.
        (false, "list", NETWORKING, "locations", ANY, ""),
        (true, "list", QUOTA, "resourceclaims", ANY, ""),
        (false, "create", QUOTA, "resourceclaims", ANY, ""),
        (true, "get", "", "namespaces", ANY, ""),
        (true, "get", "", "configmaps", ANY, ""),
        (true, "get", "", "secrets", ANY, ""),
        (false, "list", "", "secrets", ANY, ""),
        (false, "watch", "", "secrets", ANY, ""),
        (false, "patch", "", "secrets", ANY, ""),
        (true, "create", "authorization.k8s.io", "subjectaccessreviews", ANY, ""),
        (true, "create", "events.k8s.io", "events", ANY, ""),
    ];
    exactly(&plane, user.as_str().context("no user")?, &rights).await
}

/// What the program of the management plane reads on the server that it runs on.
pub(crate) async fn at_home(plane: &Plane, user: &str) -> Result<()> {
    let rights: [Right; 5] = [
        (true, "get", COMPUTE, "instancetypes", "", "d1-standard-2"),
        (true, "list", COMPUTE, "instancetypes", "", ""),
        (true, "watch", COMPUTE, "instancetypes", "", ""),
        (false, "create", COMPUTE, "instancetypes", "", ""),
        (false, "delete", COMPUTE, "instancetypes", "", "d1-standard-2"),
    ];
    exactly(plane, user, &rights).await
}

/// A process that only admits: without any controllers, and with the webhooks.
pub(crate) async fn where_it_only_admits(environment: &Environment, _: &str) -> Result<()> {
    // Where no other test gives the account this right, or expects that it lacks it.
    let plane = environment.lab.plane(DFW).await?;
    let parts = [manifests::MANAGER, "base/admission"].map(|one| format!("../{one}"));
    let shipped = manifests::build_own(&json!({ "resources": parts }))?;
    for object in &shipped {
        if ["ClusterRole", "ClusterRoleBinding"]
            .map(Value::from)
            .contains(&object["kind"])
        {
            plane.apply(object).await?;
        }
    }
    at_home(&plane, &Pod::of(&shipped)?.user()?).await
}

/// What the program may do in its cell.
pub(crate) async fn in_its_cell(environment: &Environment, _: &str) -> Result<()> {
    // Where no other overlay gives rights to the same user.
    let plane = environment.lab.plane(ORD).await?;
    let shipped = manifests::build(manifests::CELL.as_ref())?;
    accepted(&plane, &shipped).await?;
    let rights: [Right; 54] = [
        // A cell has no catalogue.
        (false, "list", COMPUTE, "instancetypes", "", ""),
        (true, "watch", "", "namespaces", "", ""),
        (true, "get", "", "namespaces", "", "kube-system"),
        (false, "create", "", "namespaces", "", ""),
        (false, "patch", "", "namespaces", "", ""),
        (false, "delete", "", "namespaces", "", ""),
        (true, "watch", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "patch", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "patch", COMPUTE, "workloaddeployments/status", ANY, ""),
        (true, "update", COMPUTE, "workloaddeployments/finalizers", ANY, ""),
        (false, "create", COMPUTE, "workloaddeployments", ANY, ""),
        (false, "delete", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "watch", COMPUTE, "instances", ANY, ""),
        (true, "create", COMPUTE, "instances", ANY, ""),
        (true, "patch", COMPUTE, "instances", ANY, ""),
        (true, "delete", COMPUTE, "instances", ANY, ""),
        (true, "patch", COMPUTE, "instances/status", ANY, ""),
        (false, "deletecollection", COMPUTE, "instances", ANY, ""),
        (false, "get", COMPUTE, "workloads", ANY, ""),
        // It binds networks and claims subnets; what network services answer with, it only reads.
        (true, "watch", NETWORKING, "locations", ANY, ""),
        (true, "watch", NETWORKING, "networkcontexts", ANY, ""),
        (true, "watch", NETWORKING, "subnets", ANY, ""),
        (false, "create", NETWORKING, "locations", ANY, ""),
        (false, "patch", NETWORKING, "networkcontexts", ANY, ""),
        (false, "create", NETWORKING, "subnets", ANY, ""),
        (true, "watch", NETWORKING, "networkbindings", ANY, ""),
        (true, "create", NETWORKING, "networkbindings", ANY, ""),
        (true, "patch", NETWORKING, "networkbindings", ANY, ""),
        (true, "watch", NETWORKING, "subnetclaims", ANY, ""),
        (true, "create", NETWORKING, "subnetclaims", ANY, ""),
        (true, "patch", NETWORKING, "subnetclaims", ANY, ""),
        (false, "get", NETWORKING, "networks", ANY, ""),
        (true, "watch", "autoscaling", "horizontalpodautoscalers", ANY, ""),
        (true, "create", "autoscaling", "horizontalpodautoscalers", ANY, ""),
        (true, "delete", "autoscaling", "horizontalpodautoscalers", ANY, ""),
        (false, "patch", COMPUTE, "workloaddeployments/scale", ANY, ""),
        // Claims are in projects, not here.
        (false, "list", QUOTA, "resourceclaims", ANY, ""),
        (true, "create", "events.k8s.io", "events", ANY, ""),
        (true, "patch", "events.k8s.io", "events", ANY, ""),
        (true, "create", "", "configmaps", HOME, ""),
        (true, "get", "", "configmaps", HOME, CLAIM_PROJECTS),
        (true, "patch", "", "configmaps", HOME, CLAIM_PROJECTS),
        // What templates name is asked for by name.
        (true, "get", "", "configmaps", ANY, ""),
        (true, "get", "", "secrets", ANY, ""),
        (false, "list", "", "configmaps", ANY, ""),
        (false, "list", "", "secrets", ANY, ""),
        (false, "watch", "", "secrets", ANY, ""),
        (false, "patch", "", "secrets", ANY, ""),
        (false, "patch", "", "configmaps", ANY, ""),
        (true, "update", "coordination.k8s.io", "leases", HOME, LEASE),
        (false, "update", "coordination.k8s.io", "leases", ANY, LEASE),
        (false, "create", "", "pods", ANY, ""),
        (false, "create", "", "serviceaccounts/token", HOME, users::ACCOUNT),
        (false, "create", RBAC, "clusterrolebindings", "", ""),
    ];
    exactly(&plane, &Pod::of(&shipped)?.user()?, &rights).await
}

/// What a cell may ask of the hub; what it may write of that, a policy says ([`crate::stolen`]).
pub(crate) async fn of_a_cell_on_the_hub(environment: &Environment, _: &str) -> Result<()> {
    let hub = environment.lab.hub().await?;
    users::cells_on_hub(&hub, &[DFW, ORD]).await?;
    let rights: [Right; 31] = [
        (true, "watch", COMPUTE, "instances", ANY, ""),
        (true, "create", COMPUTE, "instances", ANY, ""),
        (true, "patch", COMPUTE, "instances", ANY, ""),
        (true, "delete", COMPUTE, "instances", ANY, ""),
        (true, "patch", COMPUTE, "instances/status", ANY, ""),
        (false, "deletecollection", COMPUTE, "instances", ANY, ""),
        (true, "get", COMPUTE, "workloaddeployments", ANY, "web"),
        (false, "list", COMPUTE, "workloaddeployments", ANY, ""),
        (false, "patch", COMPUTE, "workloaddeployments", ANY, ""),
        (false, "patch", COMPUTE, "workloaddeployments/status", ANY, ""),
        (true, "get", "", "namespaces", "", ANY),
        (false, "list", "", "namespaces", "", ""),
        (false, "create", "", "namespaces", "", ""),
        (false, "patch", "", "namespaces", "", ANY),
        (false, "delete", "", "namespaces", "", ANY),
        (true, "get", "cluster.karmada.io", "clusters", "", DFW),
        (false, "list", "cluster.karmada.io", "clusters", "", ""),
        (false, "patch", "cluster.karmada.io", "clusters", "", DFW),
        (false, "get", "cluster.karmada.io", "clusters/proxy", "", ORD),
        (true, "get", "", "configmaps", HOME, REMOVED_CELLS),
        (false, "patch", "", "configmaps", HOME, REMOVED_CELLS),
        (false, "create", "", "configmaps", HOME, ""),
        (false, "get", "", "configmaps", HOME, "other"),
        (false, "get", "", "secrets", "karmada-cluster", ""),
        (false, "get", NETWORKING, "networks", ANY, ""),
        (false, "get", "work.karmada.io", "works", ANY, ""),
        (false, "get", "work.karmada.io", "resourcebindings", ANY, ""),
        (false, "get", "policy.karmada.io", "propagationpolicies", ANY, ""),
        (false, "create", "", "serviceaccounts/token", HOME, users::HUB_ACCOUNT),
        (false, "create", "", "serviceaccounts/token", CELLS, ORD),
        (false, "create", RBAC, "rolebindings", HOME, ""),
    ];
    exactly(&hub, &users::cell(DFW), &rights).await?;
    // As at an upgrade: applied again, what is shipped takes no cell its rights.
    accepted(&hub, &manifests::build(manifests::HUB_RBAC.as_ref())?).await?;
    exactly(&hub, &users::cell(DFW), &rights).await?;
    let account = format!("system:serviceaccount:{CELLS}:{DFW}");
    exactly(&hub, &account, &rights).await?;
    let nobody: [Right; 2] = [
        (false, "create", COMPUTE, "instances", ANY, ""),
        (false, "get", "cluster.karmada.io", "clusters", "", DFW),
    ];
    exactly(&hub, &users::cell("nobody-named-it"), &nobody).await
}

/// What the user of the management plane may do on the hub. Cells make copies, and Karmada writes what cells say of
/// WorkloadDeployments; every change is a patch.
pub(crate) async fn of_the_hub_user(environment: &Environment, _: &str) -> Result<()> {
    const POLICY: &str = "policy.karmada.io";
    const CONFIG: &str = "config.karmada.io";
    let hub = environment.lab.hub().await?;
    users::cells_on_hub(&hub, &[DFW, ORD]).await?;
    let rights: [Right; 53] = [
        (true, "watch", "", "namespaces", "", ""),
        (true, "create", "", "namespaces", "", ""),
        (true, "patch", "", "namespaces", "", ""),
        (true, "delete", "", "namespaces", "", ""),
        (true, "watch", "", "resourcequotas", "", ""),
        (true, "get", "", "resourcequotas", ANY, ""),
        (true, "create", "", "resourcequotas", ANY, ""),
        (true, "patch", "", "resourcequotas", ANY, ""),
        (true, "delete", "", "resourcequotas", ANY, ""),
        (false, "patch", "", "resourcequotas/status", ANY, ""),
        (true, "watch", NETWORKING, "networks", ANY, ""),
        (true, "create", NETWORKING, "networks", ANY, ""),
        (true, "patch", NETWORKING, "networks", ANY, ""),
        (true, "delete", NETWORKING, "networks", ANY, ""),
        (false, "update", NETWORKING, "networks", ANY, ""),
        (false, "patch", NETWORKING, "networks/status", ANY, ""),
        (true, "get", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "create", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "patch", COMPUTE, "workloaddeployments", ANY, ""),
        (true, "delete", COMPUTE, "workloaddeployments", ANY, ""),
        (false, "update", COMPUTE, "workloaddeployments", ANY, ""),
        (false, "patch", COMPUTE, "workloaddeployments/status", ANY, ""),
        (true, "get", COMPUTE, "instances", ANY, ""),
        (true, "list", COMPUTE, "instances", ANY, ""),
        (true, "delete", COMPUTE, "instances", ANY, ""),
        (false, "create", COMPUTE, "instances", ANY, ""),
        (false, "patch", COMPUTE, "instances", ANY, ""),
        (false, "patch", COMPUTE, "instances/status", ANY, ""),
        (true, "create", POLICY, "propagationpolicies", ANY, ""),
        (true, "patch", POLICY, "propagationpolicies", ANY, ""),
        (true, "delete", POLICY, "propagationpolicies", ANY, ""),
        (false, "create", POLICY, "clusterpropagationpolicies", "", ""),
        (true, "get", "cluster.karmada.io", "clusters", "", ""),
        (true, "watch", "cluster.karmada.io", "clusters", "", ""),
        (false, "delete", "cluster.karmada.io", "clusters", "", ""),
        (true, "watch", "work.karmada.io", "resourcebindings", ANY, ""),
        (false, "patch", "work.karmada.io", "resourcebindings", ANY, ""),
        (true, "get", "", "configmaps", HOME, REMOVED_CELLS),
        (false, "get", "", "configmaps", HOME, "other"),
        (false, "update", "", "configmaps", HOME, REMOVED_CELLS),
        (false, "get", "", "secrets", "karmada-cluster", ""),
        (false, "get", "", "secrets", ANY, ""),
        (false, "list", "", "secrets", ANY, ""),
        (true, "create", RBAC, "rolebindings", ANY, ""),
        (true, "patch", RBAC, "rolebindings", ANY, REFERENCED_DATA),
        (false, "patch", RBAC, "rolebindings", ANY, "other"),
        (false, "delete", RBAC, "rolebindings", ANY, REFERENCED_DATA),
        (true, "bind", RBAC, "clusterroles", "", REFERENCED_DATA),
        (false, "bind", RBAC, "clusterroles", "", "cluster-admin"),
        (false, "list", CONFIG, "resourceinterpretercustomizations", "", ""),
        (
            false,
            "patch",
            CONFIG,
            "resourceinterpreterwebhookconfigurations",
            "",
            "",
        ),
        (false, "create", "", "serviceaccounts/token", HOME, users::HUB_ACCOUNT),
        (false, "create", RBAC, "clusterrolebindings", "", ""),
    ];
    exactly(&hub, users::HUB_USER, &rights).await
}

/// Asks for each right, until the answer is the expected one.
pub(crate) async fn exactly(plane: &Plane, user: &str, rights: &[Right]) -> Result<()> {
    for (allowed, verb, group, resource, namespace, name) in rights {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": user, "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace, "name": name,
            } },
        });
        let what = format!("whether {user} may {verb} {resource}/{subresource} {namespace}/{name} is {allowed}");
        // Authorizers learn of a binding by a watch.
        eventually(&what, SOON, async || {
            let request = Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
                .header("content-type", "application/json")
                .body(review.to_string().into_bytes())?;
            let answer: Value = plane.client().request(request).await?;
            ensure!(answer["status"]["allowed"] == *allowed, "{answer}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
