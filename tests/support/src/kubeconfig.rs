//! Kubeconfig files for our programs and for clients of tests.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

/// A kubeconfig for one server. `user` is the user's entry, such as `{"token": ...}`; its files are named by path.
#[must_use]
pub fn document(url: &str, ca_file: Option<&Path>, user: &Value) -> Value {
    let mut cluster = json!({ "server": url });
    if let Some(file) = ca_file {
        cluster["certificate-authority"] = json!(file);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "it", "cluster": cluster }],
        "users": [{ "name": "it", "user": user }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "current-context": "it",
    })
}

/// Writes `<dir>/<name>.kubeconfig`.
pub fn write(dir: &Path, name: &str, document: &Value) -> Result<PathBuf> {
    let file = dir.join(format!("{name}.kubeconfig"));
    // JSON is YAML.
    std::fs::write(&file, document.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(file)
}

/// A client that repeats nothing by itself. No request is sent.
pub async fn client(document: Value) -> Result<Client> {
    let file: Kubeconfig = serde_json::from_value(document).context("not a kubeconfig")?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config = config.context("failed to understand a kubeconfig")?;
    config.default_retry = false;
    Client::try_from(config).context("failed to make a client")
}
