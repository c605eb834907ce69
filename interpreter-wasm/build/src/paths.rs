//! Takes this machine's paths out of the module: panics carry the file that they are in.
//!
//! Flags for the dependencies name nothing but what modules share (cargo's home, the SDK), because cargo compiles the
//! standard library anew for every other set of flags. The module's own folder is named to its own compiler call only.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The flag that replaces one folder.
fn flag(from: &Path, to: &str) -> String {
    format!("--remap-path-prefix={}=/{to}", from.display())
}

/// For the module's own compiler call.
pub(crate) fn of_module(manifest: &Path) -> Vec<String> {
    manifest
        .parent()
        .map(|folder| flag(folder, "module"))
        .into_iter()
        .collect()
}

/// For all other crates: cargo's home, and each crate in a folder of this machine that the module depends on.
pub(crate) fn of_dependencies(cargo: &Command, manifest: &Path) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let home = home.map(|home| flag(&home, "cargo"));
    let mut local: Vec<String> = metadata(cargo, manifest)
        .map(|metadata| local_dependencies(&metadata, manifest))
        .unwrap_or_default()
        .iter()
        .map(|(name, folder)| flag(folder, name))
        .collect();
    local.sort();
    home.into_iter().chain(local).collect()
}

/// What cargo knows of the module's dependencies. Cargo itself reports what is wrong with them when it compiles.
fn metadata(cargo: &Command, manifest: &Path) -> Option<Value> {
    let mut command = Command::new(cargo.get_program());
    for (name, value) in cargo.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// Name and folder of each package without a registry or repository that the module reaches, itself left out.
fn local_dependencies(metadata: &Value, manifest: &Path) -> Vec<(String, PathBuf)> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();

    let packages: HashMap<String, Value> = list(metadata.get("packages"))
        .into_iter()
        .filter_map(|package| Some((text(&package, "id")?, package)))
        .collect();
    let edges: HashMap<String, Vec<Value>> = list(metadata.get("resolve").and_then(|resolve| resolve.get("nodes")))
        .into_iter()
        .filter_map(|node| Some((text(&node, "id")?, list(node.get("dependencies")))))
        .collect();
    let is_module = |package: &Value| text(package, "manifest_path").map(PathBuf::from).as_deref() == Some(manifest);

    let mut open: Vec<&str> = packages
        .iter()
        .filter(|(_, package)| is_module(package))
        .map(|(id, _)| id.as_str())
        .collect();
    let mut reached = HashSet::new();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(edges.get(id).into_iter().flatten().filter_map(Value::as_str));
        }
    }
    reached
        .into_iter()
        .filter_map(|id| packages.get(id))
        .filter(|package| package.get("source").is_none_or(Value::is_null) && !is_module(package))
        .filter_map(|package| {
            let folder = PathBuf::from(text(package, "manifest_path")?).parent()?.to_path_buf();
            Some((text(package, "name")?, folder))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reached_local_packages_are_named() {
        let package = |name: &str, source: Option<&str>| serde_json::json!({"id": name, "name": name, "source": source, "manifest_path": format!("/x/{name}/Cargo.toml")});
        let metadata = serde_json::json!({
            "packages": [package("module", None), package("sdk", None), package("other", None), package("syn", Some("registry"))],
            "resolve": {"nodes": [
                {"id": "module", "dependencies": ["sdk"]},
                {"id": "sdk", "dependencies": ["syn"]},
                {"id": "other", "dependencies": ["sdk"]},
            ]},
        });
        assert_eq!(
            local_dependencies(&metadata, Path::new("/x/module/Cargo.toml")),
            [("sdk".to_owned(), PathBuf::from("/x/sdk"))]
        );
        assert_eq!(local_dependencies(&Value::Null, Path::new("/x/module/Cargo.toml")), []);
    }
}
