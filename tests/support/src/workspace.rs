//! Where things lie in this repository and in its build directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// Cargo's build directory: `CARGO_TARGET_DIR`, or `target` in the root.
#[must_use]
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root().join(dir),
        _ => root().join("target"),
    }
}

/// Where interpreter modules are put after they are built.
#[must_use]
pub fn modules_dir() -> PathBuf {
    target_dir().join("modules")
}

/// The CRDs that are shipped.
#[must_use]
pub fn crds_dir() -> PathBuf {
    root().join("manifests/crds")
}

/// The CRD of the platform's catalogue.
#[must_use]
pub fn catalogue_crds_dir() -> PathBuf {
    root().join("manifests/instance-types/crd")
}

/// CRDs of kinds that are not this project's.
#[must_use]
pub fn stand_in_crds_dir() -> PathBuf {
    root().join("tests/support/crds")
}

/// What happens to Pods in a lab: stages of KWOK.
#[must_use]
pub fn node_stages() -> PathBuf {
    root().join("tests/lab/testdata/nodes.yaml")
}

/// The one document of a YAML file.
pub fn yaml(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    yaml_text(&text).with_context(|| format!("failed to understand {}", file.display()))
}

/// All documents of a YAML file.
pub fn yaml_documents(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_saphyr::from_multiple(&text).with_context(|| format!("failed to understand {}", file.display()))
}

/// The one document of a YAML text.
pub fn yaml_text(text: &str) -> Result<Value> {
    Ok(serde_saphyr::from_str(text)?)
}

/// The one block of YAML on a page of the docs that contains `what`, as readers copy it.
pub fn yaml_of_page(page: &str, what: &str) -> Result<String> {
    block_of_page(page, "yaml", what)
}

/// The same of shell commands.
pub fn commands_of_page(page: &str, what: &str) -> Result<String> {
    block_of_page(page, "sh", what)
}

fn block_of_page(page: &str, language: &str, what: &str) -> Result<String> {
    let file = root().join(page);
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let begin = format!("\n```{language}\n");
    let blocks = text.split(&begin).skip(1);
    let mut blocks = blocks.filter_map(|rest| Some(rest.split_once("\n```\n")?.0));
    let block = blocks.find(|block| block.contains(what));
    Ok(format!(
        "{}\n",
        block.with_context(|| format!("{page} has no block of {language} with {what}"))?
    ))
}

/// The object that has every field of its kind, such as `workload`.
pub fn whole_object(kind: &str) -> Result<Value> {
    let objects = root().join("controller/api/tests/objects");
    yaml(&objects.join(format!("{}.yaml", kind.to_lowercase())))
}
