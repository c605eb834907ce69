//! Who the controller is on each server: the users that the manifests give rights to, with those rights and no others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::kind::NAMESPACE as NAMESPACES;
use crate::lab::HUB;
use crate::{Lab, Plane, eventually, kubeconfig, manifests};

/// Its namespace on the server that it runs on, where its Lease is, and that of its account in the hub.
pub const NAMESPACE: &str = "compute-system";
/// Its account on the server that it runs on.
pub const ACCOUNT: &str = "compute";
/// Account of the provider of Pods, on the server that it runs on.
pub const PROVIDER_ACCOUNT: &str = "popcell-provider-pod";
/// Its account in the hub.
pub const HUB_ACCOUNT: &str = "compute-manager";
/// Its name in the hub, as a token of [`HUB_ACCOUNT`] says it.
pub const HUB_USER: &str = "system:serviceaccount:compute-system:compute-manager";
/// Its name in projects and where Projects are listed, as a token of [`ACCOUNT`] says it too.
pub const USER: &str = "system:serviceaccount:compute-system:compute";
/// Where the hub has service accounts of cells, named as their Clusters.
pub const CELLS_NAMESPACE: &str = "popcell-cells";

/// How long a server may take to serve the kinds of rights.
const SOON: Duration = Duration::from_secs(90);
/// What of the manifests concerns users; the rest needs a cluster with Pods.
const RIGHTS: [&str; 8] = [
    "Namespace",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Gives the hub's user its rights and writes a kubeconfig with a token of it.
pub async fn of_hub(lab: &Lab, dir: &Path) -> Result<PathBuf> {
    let hub = lab.hub().await?;
    grant(&hub, manifests::HUB_RBAC).await?;
    with_token(lab, &hub, HUB_ACCOUNT, dir, HUB).await
}

/// A kubeconfig of the hub for the user of a cell.
pub async fn of_cell(lab: &Lab, cluster: &str) -> Result<PathBuf> {
    let mut kubeconfigs = lab.user(&cell(cluster), &[]).await?;
    kubeconfigs.remove(HUB).context("no kubeconfig of the hub")
}

/// Gives [`USER`] its rights in a project.
pub async fn in_project(project: &Plane) -> Result<()> {
    grant(project, manifests::PROJECT_RBAC).await
}

/// The user of a cell on hub and projects, by the name of its Cluster.
#[must_use]
pub fn cell(cluster: &str) -> String {
    format!("popcell:cell:{cluster}")
}

/// Gives these cells their rights in the hub, which hold each to its own copies; others keep theirs. A kubeconfig of one is
/// [`Lab::user`] of [`cell`].
pub async fn cells_on_hub(hub: &Plane, clusters: &[&str]) -> Result<()> {
    let shipped = manifests::with_cells(manifests::HUB_RBAC, &[], manifests::CELL_ON_HUB, clusters)?;
    granted(hub, &shipped).await
}

/// Gives [`USER`] and these cells their rights in a project, which hold each cell to its own claims; others keep theirs.
pub async fn cells_in_project(project: &Plane, clusters: &[&str]) -> Result<()> {
    let (components, bindings) = ([manifests::CLAIMS], manifests::CELL_IN_PROJECT);
    let shipped = manifests::with_cells(manifests::PROJECT_RBAC, &components, bindings, clusters)?;
    granted(project, &shipped).await
}

/// Gives the program its rights on the server that it runs on, with those of `directory` of the manifests, and writes a
/// kubeconfig with a token of its account.
pub async fn at_home(lab: &Lab, plane: &str, directory: &str, dir: &Path) -> Result<PathBuf> {
    let home = lab.plane(plane).await?;
    grant(&home, directory).await?;
    with_token(lab, &home, ACCOUNT, dir, plane).await
}

/// The same for a server that is project and cell in one, which uses quota.
pub async fn of_single_cluster(lab: &Lab, plane: &str, dir: &Path) -> Result<PathBuf> {
    let home = lab.plane(plane).await?;
    let shipped = manifests::build_own(&json!({
        "resources": [format!("../{}", manifests::SINGLE_CLUSTER)],
        "components": [format!("../{}", manifests::QUOTA_CREDENTIALS)],
    }))?;
    granted(&home, &shipped).await?;
    with_token(lab, &home, ACCOUNT, dir, plane).await
}

/// Gives the provider of Pods its rights in a cell, and writes a kubeconfig with a token of its account.
pub async fn of_provider(lab: &Lab, plane: &str, dir: &Path) -> Result<PathBuf> {
    let cell = lab.plane(plane).await?;
    let shipped = manifests::build_own(&json!({
        "resources": [format!("../{}", manifests::MANAGER)],
        "components": [format!("../{}", manifests::PROVIDER)],
    }))?;
    granted(&cell, &shipped).await?;
    with_token(lab, &cell, PROVIDER_ACCOUNT, dir, plane).await
}

async fn grant(plane: &Plane, directory: &str) -> Result<()> {
    granted(plane, &manifests::build(directory.as_ref())?).await
}

async fn granted(plane: &Plane, shipped: &[Value]) -> Result<()> {
    let rights = shipped.iter().filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        RIGHTS.contains(&kind)
    });
    for object in rights {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        eventually(&what, SOON, async || plane.apply(object).await).await?;
    }
    Ok(())
}

async fn with_token(lab: &Lab, plane: &Plane, account: &str, dir: &Path, name: &str) -> Result<PathBuf> {
    let token = plane.token(NAMESPACE, account).await?;
    let document = kubeconfig::document(lab.url(name)?, Some(lab.ca_file()), &json!({ "token": token }));
    kubeconfig::write(dir, &format!("{name}-{account}"), &document)
}

/// Makes a server count the requests of a user by themselves (see [`requests`]), those of `verbs`.
pub async fn count(plane: &Plane, flow: &str, user: &str, verbs: &[&str]) -> Result<()> {
    let what = format!("requests of {user} are counted on {}", plane.name());
    let schema = flow_schema(flow, user, verbs);
    eventually(&what, SOON, async || plane.apply(&schema).await)
        .await
        .map(|_| ())
}

/// A server as a user of its own, who may do everything and whose requests of `verbs` are counted (see [`requests`]).
pub async fn administrator(lab: &Lab, server: &Plane, flow: &str, user: &str, verbs: &[&str]) -> Result<Plane> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": user },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    });
    server.apply(&binding).await?;
    count(server, flow, user, verbs).await?;
    let kubeconfigs = lab.user(user, &[]).await?;
    let file = kubeconfigs.get(server.name()).context("the lab made no kubeconfig")?;
    let plane = Plane::connect(server.name(), file).await?;
    eventually("the user has its rights", SOON, async || {
        plane.list(NAMESPACES, None, "").await
    })
    .await?;
    Ok(plane)
}

/// Requests of a flow that a server has dispatched.
pub async fn requests(plane: &Plane, flow: &str) -> Result<f64> {
    let page = plane.metrics().await.context("failed to count requests")?;
    let flow = format!("flow_schema=\"{flow}\"");
    let metric = "apiserver_flowcontrol_dispatched_requests_total";
    Ok(crate::probe::sum_of(&page, metric, &[&flow]))
}

fn flow_schema(name: &str, user: &str, verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": name },
        "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": { "name": "workload-high" },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": user } }],
                "resourceRules": [{
                    "verbs": verbs, "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"],
                }],
                "nonResourceRules": [{ "verbs": verbs, "nonResourceURLs": ["*"] }],
            }],
        },
    })
}
