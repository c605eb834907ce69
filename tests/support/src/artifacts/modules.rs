//! Interpreter modules of this repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use popcell_module_build::{BuildRequest, Built, build};

use crate::workspace;

/// Directories of the crates that are modules: those under interpreter-wasm that can become a component.
pub fn module_crates() -> Result<Vec<PathBuf>> {
    let parent = workspace::root().join("interpreter-wasm");
    let mut crates = Vec::new();
    for entry in fs::read_dir(&parent).with_context(|| format!("failed to list {}", parent.display()))? {
        let dir = entry
            .with_context(|| format!("failed to list {}", parent.display()))?
            .path();
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("\"cdylib\"") {
            crates.push(dir);
        }
    }
    crates.sort();
    Ok(crates)
}

/// Builds one module into [`workspace::modules_dir`], named after its folder. Where nothing changed cargo compiles
/// nothing.
pub fn build_module(manifest_dir: &Path, report: &mut dyn FnMut(&str)) -> Result<Built> {
    let name = manifest_dir
        .file_name()
        .context("a module has no folder")?
        .to_string_lossy()
        .into_owned();
    let modules = workspace::modules_dir();
    fs::create_dir_all(&modules).with_context(|| format!("failed to make {}", modules.display()))?;
    let request = BuildRequest {
        manifest_dir: manifest_dir.to_owned(),
        target_dir: workspace::target_dir().join("guest"),
        output: modules.join(format!("{name}.wasm")),
    };
    build(&request, report).with_context(|| format!("failed to build the module {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_no_modules() {
        let crates = module_crates().unwrap();
        let names: Vec<_> = crates.iter().filter_map(|dir| dir.file_name()?.to_str()).collect();
        assert!(
            names.contains(&"compute") && names.contains(&"karmada-example"),
            "{names:?}"
        );
        assert!(!names.contains(&"sdk") && !names.contains(&"build"), "{names:?}");
    }
}
