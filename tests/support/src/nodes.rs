//! Nodes for a plain API server: a real kube-scheduler, and KWOK in place of kubelets.
//!
//! What becomes of a Pod is chosen by its first image ([`images`]); the stages are in `tests/lab/testdata/nodes.yaml`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::address::free_address;
use crate::guarded::Guarded;
use crate::kind::NODE;
use crate::probe::get;
use crate::running::directory;
use crate::{Plane, artifacts, eventually, workspace};

/// Images that a node does not run; it runs all others.
pub mod images {
    /// It cannot be pulled.
    pub const MISSING: &str = "lab.test/missing:1";
    /// Its program ends again and again.
    pub const CRASHING: &str = "lab.test/crashing:1";
    /// Its container cannot be made as it is described.
    pub const MISCONFIGURED: &str = "lab.test/misconfigured:1";
}

const PORT: u16 = 10_247;
const SOON: Duration = Duration::from_mins(1);
/// In the stages, where the time that a Pod takes to start is written.
const START: &str = "START_MILLISECONDS";
const NAME: &str = "node";

/// One node of an API server, and the scheduler that gives it Pods. They end with this value.
#[derive(Debug)]
pub struct Nodes {
    _processes: [Guarded; 2],
    _files: TempDir,
}

impl Nodes {
    /// Makes the node and waits until Pods can be given to it, which start after `start`.
    pub async fn start(plane: &Plane, start: Duration) -> Result<Self> {
        let files = directory("nodes")?;
        let programs = artifacts::lab_programs()?;
        let stages = workspace::node_stages();
        let text = std::fs::read_to_string(&stages).with_context(|| format!("failed to read {}", stages.display()))?;
        let own = files.path().join("stages.yaml");
        std::fs::write(&own, text.replace(START, &start.as_millis().to_string()))
            .with_context(|| format!("failed to write {}", own.display()))?;
        let address = free_address(&[PORT])?;
        let spawn = |program: &str, arguments: Vec<String>| {
            let log = files.path().join(format!("{program}.log"));
            Guarded::spawn(&PathBuf::from(&programs).join(program), &arguments, &log)
        };
        let kubeconfig = plane.kubeconfig().display();
        let mut kwok = spawn(
            "kwok",
            vec![
                format!("--kubeconfig={kubeconfig}"),
                format!("--config={}", own.display()),
                "--manage-all-nodes=true".to_owned(),
                "--node-lease-duration-seconds=0".to_owned(),
                format!("--node-ip={address}"),
                format!("--server-address={address}:{PORT}"),
            ],
        )?;
        let mut scheduler = spawn(
            "kube-scheduler",
            vec![
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
            ],
        )?;
        eventually("KWOK is ready", SOON, async || {
            for process in [&mut kwok, &mut scheduler] {
                if let Some(status) = process.try_wait()? {
                    return Ok(Err((status, process.log())));
                }
            }
            let (code, body) = get((address, PORT), "/readyz").await?;
            anyhow::ensure!(code == 200, "/readyz answers {code}: {body}");
            Ok(Ok(()))
        })
        .await?
        .or_else(|(status, log)| bail!("a program of the nodes ended with {status}:\n{log}"))?;
        plane
            .apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NAME } }))
            .await?;
        // The API server gives each new Node this taint, for a controller to take off that no lab runs.
        plane
            .merge(NODE, None, NAME, &json!({ "spec": { "taints": null } }))
            .await?;
        eventually("the node is ready", SOON, async || {
            let node = plane.expect(NODE, None, NAME).await?;
            let ready = node
                .data
                .pointer("/status/conditions")
                .and_then(|all| all.as_array())
                .cloned();
            let is_ready = |one: &serde_json::Value| one["type"] == "Ready" && one["status"] == "True";
            anyhow::ensure!(ready.iter().flatten().any(is_ready), "{}", node.data);
            Ok(())
        })
        .await?;
        Ok(Self {
            _processes: [kwok, scheduler],
            _files: files,
        })
    }
}
