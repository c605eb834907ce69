//! Our own programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace;

/// How programs are compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// For tests and the demo.
    #[default]
    Dev,
    /// For benchmarks.
    Release,
}

/// Paths of our programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `popcell-webhook`.
    pub webhook: PathBuf,
    /// `popcell-controller`.
    pub controller: PathBuf,
    /// `popcell-provider-pod`.
    pub provider: PathBuf,
    /// `popcell`.
    pub popcell: PathBuf,
}

/// One line of cargo's output, as far as it concerns us.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

pub(super) fn build(profile: Profile) -> Result<Programs> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace::root())
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--bin=popcell-webhook",
            "--bin=popcell-controller",
            "--bin=popcell-provider-pod",
            "--bin=popcell",
        ])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    match profile {
        // With the whole workspace and one test selected (a small one), the features of shared libraries are those of
        // `cargo test --workspace`: nothing is compiled a second time.
        Profile::Dev => command.arg("--test=crds"),
        Profile::Release => command.arg("--release"),
    };
    let output = command.output().context("failed to start cargo")?;
    ensure!(
        output.status.success(),
        "failed to build our programs: cargo ended with {}",
        output.status
    );
    let mut found = executables(&String::from_utf8_lossy(&output.stdout));
    let mut take = |name: &str| found.remove(name).with_context(|| format!("cargo built no {name}"));
    Ok(Programs {
        webhook: take("popcell-webhook")?,
        controller: take("popcell-controller")?,
        provider: take("popcell-provider-pod")?,
        popcell: take("popcell")?,
    })
}

fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages
        .filter_map(|message| Some((message.target?.name, message.executable?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_by_target() {
        let found = executables(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"popcell\"},\"executable\":\"/t/popcell\"}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"serde\"},\"executable\":null}\n\
             not JSON\n{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(
            found,
            BTreeMap::from([("popcell".to_owned(), PathBuf::from("/t/popcell"))])
        );
    }
}
