//! The manifests that are shipped, built by kustomize.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{artifacts, users, workspace};

/// The rights of our programs in the hub, as a directory of [`build`].
pub const HUB_RBAC: &str = "hub-rbac";
/// Its rights in projects.
pub const PROJECT_RBAC: &str = "project-rbac";
/// Its rights where it runs, and everything else that it needs there.
pub const MANAGER: &str = "base/manager";
/// The same with the reading of Projects, and with admission.
pub const MANAGEMENT_PLANE: &str = "overlays/management-plane";
/// A cell.
pub const CELL: &str = "overlays/cell";
/// Management controllers and a cell on one cluster.
pub const SINGLE_CLUSTER: &str = "overlays/single-cluster";
/// A component: the way of a cell to claims.
pub const QUOTA_CREDENTIALS: &str = "components/quota-credentials";
/// A component: the provider of Pods, which runs Instances in the cluster of the cell.
pub const PROVIDER: &str = "components/provider-pod";
/// A component: modules in place of those of the image, as a ConfigMap.
pub const MODULE_CONFIG_MAP: &str = "webhook/components/module-config-map";
/// A component: modules in place of those of the image, as an image of their own.
pub const MODULE_IMAGE: &str = "webhook/components/module-image";
/// A component: the admission webhook's certificate by cert-manager's CSI driver.
pub const CSI_CERTIFICATE: &str = "components/csi-webhook-cert";
/// Rights of cells in projects, a component.
pub const CLAIMS: &str = "components/claims";
/// The bindings of one cell, to the rights of cells in the hub.
pub const CELL_ON_HUB: &str = "hub-rbac/cell";
/// The binding of one cell, to the rights of cells in a project.
pub const CELL_IN_PROJECT: &str = "components/claims/cell";

/// The directory of an operator's own kustomization.
const OWN: &str = "own";

/// Where an operator writes the addresses of API servers; no API server accepts it.
pub const API_SERVERS: &str = "addresses-of-your-API-servers";
/// What the tests write there.
pub const ADDRESSES: &str = "192.0.2.0/24";

/// Directories to build, relative to `manifests`: every overlay, and every other part that is complete by itself, such as
/// the CRDs.
pub fn overlays() -> Result<Vec<PathBuf>> {
    let root = workspace::root().join("manifests");
    let mut found = Vec::new();
    for part in subdirectories(&root)? {
        let overlays = part.join("overlays");
        if part.ends_with("overlays") {
            found.extend(subdirectories(&part)?);
        } else if overlays.is_dir() {
            found.extend(subdirectories(&overlays)?);
        } else if part.join("kustomization.yaml").is_file() {
            found.push(part);
        }
    }
    let relative = |dir: &PathBuf| dir.strip_prefix(&root).map_or_else(|_| dir.clone(), Path::to_path_buf);
    let mut found: Vec<PathBuf> = found.iter().map(relative).collect();
    found.sort();
    Ok(found)
}

/// The objects of a directory of `manifests`, with the modules of this repository and the addresses of API servers where an
/// operator puts theirs.
pub fn build(directory: &Path) -> Result<Vec<Value>> {
    build_in(&copy()?, directory)
}

/// The objects of a kustomization of an operator's own, which stands in a directory beside those of `manifests`.
pub fn build_own(kustomization: &Value) -> Result<Vec<Value>> {
    let copy = copy()?;
    write_own(&copy, OWN, kustomization)?;
    build_in(&copy, OWN.as_ref())
}

/// Objects of a directory and of components as an operator builds them who has these cells: for each there are the bindings
/// of the directory `bindings`, of its user and its service account.
pub fn with_cells(directory: &str, components: &[&str], bindings: &str, clusters: &[&str]) -> Result<Vec<Value>> {
    let copy = copy()?;
    let above = |name: &str| format!("../{name}");
    let mut resources = vec![above(directory)];
    for cluster in clusters {
        let subjects = json!([
            { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": users::cell(cluster) },
            { "kind": "ServiceAccount", "namespace": users::CELLS_NAMESPACE, "name": cluster },
        ]);
        let line = json!([{ "op": "add", "path": "/subjects", "value": subjects }]);
        let own = format!("cell-{cluster}");
        let kustomization = json!({
            "resources": [above(bindings)],
            "nameSuffix": format!("-{cluster}"),
            "patches": [{ "target": { "kind": "ClusterRoleBinding|RoleBinding" }, "patch": line.to_string() }],
        });
        write_own(&copy, &own, &kustomization)?;
        resources.push(above(&own));
    }
    let components: Vec<String> = components.iter().copied().map(above).collect();
    write_own(&copy, OWN, &json!({ "resources": resources, "components": components }))?;
    build_in(&copy, OWN.as_ref())
}

/// The template of the Pods of a Deployment or CronJob.
#[must_use]
pub fn pod_template(workload: &Value) -> &Value {
    let spec = &workload["spec"];
    let spec = spec.get("jobTemplate").map_or(spec, |job| &job["spec"]);
    &spec["template"]
}

fn write_own(copy: &TempDir, name: &str, kustomization: &Value) -> Result<()> {
    let directory = copy.path().join(name);
    fs::create_dir(&directory).with_context(|| format!("failed to make {}", directory.display()))?;
    // JSON is YAML.
    let file = directory.join("kustomization.yaml");
    fs::write(&file, kustomization.to_string()).with_context(|| format!("failed to write {}", file.display()))
}

fn copy() -> Result<TempDir> {
    let copy = tempfile::tempdir().context("failed to make a directory")?;
    copy_tree(&workspace::root().join("manifests"), copy.path())?;
    for file in [
        "base/admission/networkpolicy.yaml",
        "overlays/management-plane/kustomization.yaml",
        "overlays/single-cluster/kustomization.yaml",
    ] {
        let path = copy.path().join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        ensure!(
            text.contains(API_SERVERS),
            "{file} does not ask for the addresses of API servers"
        );
        fs::write(&path, text.replace(API_SERVERS, ADDRESSES))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(copy)
}

fn build_in(copy: &TempDir, directory: &Path) -> Result<Vec<Value>> {
    let modules = copy.path().join("webhook/components/module-config-map");
    let compiled = artifacts::modules()?;
    for entry in fs::read_dir(&compiled).with_context(|| format!("failed to list {}", compiled.display()))? {
        let file = entry.context("failed to list the modules")?.path();
        if file.extension().is_some_and(|extension| extension == "wasm")
            && let Some(name) = file.file_name()
        {
            fs::copy(&file, modules.join(name)).context("failed to copy a module")?;
        }
    }
    let kustomize = artifacts::lab_programs()?.join("kustomize");
    let output = Command::new(&kustomize)
        .arg("build")
        .arg(copy.path().join(directory))
        .output();
    let output = output.with_context(|| format!("failed to start {}", kustomize.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "kustomize build {} failed: {}",
        directory.display(),
        complaint.trim()
    );
    let text = String::from_utf8(output.stdout).context("kustomize wrote something that is no text")?;
    serde_saphyr::from_multiple(&text).context("kustomize wrote something that is no YAML")
}

fn subdirectories(parent: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).with_context(|| format!("failed to list {}", parent.display()))? {
        let path = entry
            .with_context(|| format!("failed to list {}", parent.display()))?
            .path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to list {}", from.display()))? {
        let path = entry
            .with_context(|| format!("failed to list {}", from.display()))?
            .path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(|| format!("failed to copy {}", path.display()))?;
        }
    }
    Ok(())
}
