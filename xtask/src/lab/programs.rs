//! How to run our programs on a lab that stays, by hand or under a debugger.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use popcell_test_support::lab::Detached;
use popcell_test_support::workspace;
use serde_json::{Value, json};

use super::MEMBERS;
use super::companions::PROJECT;

const WEBHOOK_PORT: u16 = 21_000;
const WEBHOOK_HEALTH_PORT: u16 = 21_001;
/// Health and metrics of the first controller; each further one has the next two.
const CONTROLLER_PORT: u16 = 21_010;

/// Writes the controllers' configuration into the lab's directory, and answers the lines that run each program on the
/// lab: webhook, management controllers of the project, and those of each cell, which start Instances without quota.
pub(super) fn lines(lab: &Detached) -> Result<String> {
    let target = workspace::target_dir();
    let program = |name: &str| target.join("debug").join(name).display().to_string();
    let at = |port: u16| format!("{}:{port}", lab.address());
    let kubeconfig = |plane: &str| -> Result<String> {
        let found = lab.planes().find(|(name, ..)| *name == plane);
        let (.., file) = found.with_context(|| format!("the lab has no plane {plane}"))?;
        Ok(file.display().to_string())
    };
    let hub = kubeconfig("hub")?;
    let authority = lab.dir().join("webhook-ca");
    let modules = target.join("modules").display().to_string();
    let mut lines = vec![
        "to run our programs on it, each line also behind `rust-lldb --` or `rust-gdb --args`:".to_owned(),
        "  cargo build --bins && cargo xtask module".to_owned(),
        // The profile for tests leaves out what a debugger shows of variables.
        "  (for a debugger: CARGO_PROFILE_DEV_DEBUG=full CARGO_PROFILE_DEV_PACKAGE_POPCELL_CORE_OPT_LEVEL=0 cargo build \
         --bin popcell-controller)"
            .to_owned(),
        format!(
            "  {} --module-dir={modules} --listen={} --health-listen={} --self-signed --ca-dir={} --san={}",
            program("popcell-webhook"),
            at(WEBHOOK_PORT),
            at(WEBHOOK_HEALTH_PORT),
            authority.display(),
            lab.address(),
        ),
        format!(
            "  {} register --module-dir={modules} --url=https://{} --ca-file={} --kubeconfig={hub}",
            program("popcell"),
            at(WEBHOOK_PORT),
            authority.join("ca.crt").display(),
        ),
    ];
    let cells = MEMBERS
        .iter()
        .map(|(member, _)| ("cell", *member, json!({ "mode": "single", "clusterName": member })));
    let management = ("management", PROJECT, json!({ "mode": "single" }));
    for ((group, plane, discovery), port) in std::iter::once(management)
        .chain(cells)
        .zip((CONTROLLER_PORT..).step_by(2))
    {
        let file = configuration(lab.dir(), plane, &discovery, &at(port + 1))?;
        lines.push(format!(
            "  {} --enable-{group}-controllers --server-config={} --kubeconfig={} --federation-kubeconfig={hub} \
             --leader-elect=false --health-probe-bind-address={}",
            program("popcell-controller"),
            file.display(),
            kubeconfig(plane)?,
            at(port),
        ));
    }
    Ok(lines.join("\n"))
}

/// Writes the configuration of one controller, and answers its file.
fn configuration(dir: &Path, plane: &str, discovery: &Value, metrics: &str) -> Result<PathBuf> {
    let document = json!({
        "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
        "kind": "WorkloadOperator",
        "discovery": discovery,
        "metricsServer": { "bindAddress": metrics, "secureServing": false },
    });
    let file = dir.join(format!("controller-{plane}.yaml"));
    // JSON is YAML.
    fs::write(&file, document.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(file)
}
