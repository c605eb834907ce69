//! Nodes for a plain API server: a real kube-scheduler, and KWOK in place of a kubelet, or a kubelet that runs containers.
//!
//! What KWOK makes of a Pod is chosen by its first image ([`images`]); the stages are in `tests/lab/testdata/nodes.yaml`.

use std::net::Ipv4Addr;
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

mod containers;

pub use containers::missing as missing_for_containers;

/// Images that a node of KWOK does not run; it runs all others.
pub mod images {
    /// It cannot be pulled.
    pub const MISSING: &str = "lab.test/missing:1";
    /// Its program ends again and again.
    pub const CRASHING: &str = "lab.test/crashing:1";
    /// Its container cannot be made as it is described.
    pub const MISCONFIGURED: &str = "lab.test/misconfigured:1";
    /// Its node makes no network for it.
    pub const NETWORKLESS: &str = "lab.test/networkless:1";
}

const PORT: u16 = 10_247;
const SOON: Duration = Duration::from_mins(1);
/// In the stages, where the time that a Pod takes to start is written.
const START: &str = "START_MILLISECONDS";

/// Nodes of an API server, and the scheduler that gives them Pods. They end with this value.
#[derive(Debug)]
pub struct Nodes {
    all: Vec<Node>,
    scheduler: Guarded,
    _files: TempDir,
}

#[derive(Debug)]
struct Node {
    name: String,
    process: Guarded,
    /// The page that tells that the process is healthy.
    health: (Ipv4Addr, u16, &'static str),
}

impl Nodes {
    /// Makes one of KWOK's and waits until Pods can be given to it, which start after `start`.
    pub async fn start(plane: &Plane, start: Duration) -> Result<Self> {
        let files = directory("nodes")?;
        let stages = workspace::node_stages();
        let text = std::fs::read_to_string(&stages).with_context(|| format!("failed to read {}", stages.display()))?;
        let own = files.path().join("stages.yaml");
        std::fs::write(&own, text.replace(START, &start.as_millis().to_string()))
            .with_context(|| format!("failed to write {}", own.display()))?;
        let address = free_address(&[PORT])?;
        let arguments = [
            format!("--kubeconfig={}", plane.kubeconfig().display()),
            format!("--config={}", own.display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-lease-duration-seconds=0".to_owned(),
            format!("--node-ip={address}"),
            format!("--server-address={address}:{PORT}"),
        ];
        let kwok = artifacts::lab_programs()?.join("kwok");
        let node = Node {
            name: "node".to_owned(),
            process: Guarded::spawn(&kwok, &arguments, &files.path().join("kwok.log"))?,
            health: (address, PORT, "/readyz"),
        };
        plane
            .apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node.name } }))
            .await?;
        Self::with_scheduler(plane, vec![node], files).await
    }

    /// Starts some that run containers, and waits until Pods can be given to them. They have two images:
    /// `docker.io/library/httpd:2.4`, of a small web server, and the one of a Pod's first process.
    ///
    /// # Errors
    /// Where this machine cannot run containers: what it lacks ([`missing_for_containers`]).
    pub async fn of_containers(plane: &Plane, count: usize) -> Result<Self> {
        let files = directory("nodes")?;
        let nodes = (0..count).map(|index| {
            let name = format!("node-{index}");
            let dir = files.path().join(&name);
            std::fs::create_dir(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
            containers::start(plane, &dir, name)
        });
        let nodes = nodes.collect::<Result<_>>()?;
        Self::with_scheduler(plane, nodes, files).await
    }

    async fn with_scheduler(plane: &Plane, nodes: Vec<Node>, files: TempDir) -> Result<Self> {
        let kubeconfig = plane.kubeconfig().display();
        let arguments = [
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let scheduler = artifacts::lab_programs()?.join("kube-scheduler");
        let mut nodes = Self {
            scheduler: Guarded::spawn(&scheduler, &arguments, &files.path().join("kube-scheduler.log"))?,
            all: nodes,
            _files: files,
        };
        eventually("the nodes are healthy", SOON, async || {
            for process in nodes.processes() {
                if let Some(status) = process.try_wait()? {
                    return Ok(Err((status, process.log())));
                }
            }
            for node in &nodes.all {
                let (address, port, page) = node.health;
                let (code, body) = get((address, port), page).await?;
                anyhow::ensure!(code == 200, "{page} answers {code}: {body}");
            }
            Ok(Ok(()))
        })
        .await?
        .or_else(|(status, log)| bail!("a program of the nodes ended with {status}:\n{log}"))?;
        for node in &nodes.all {
            node.takes_pods(plane).await?;
        }
        Ok(nodes)
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut Guarded> {
        let of_nodes = self.all.iter_mut().map(|node| &mut node.process);
        of_nodes.chain([&mut self.scheduler])
    }

    /// What the nodes and the scheduler have written.
    #[must_use]
    pub fn last_words(&self) -> String {
        let of_nodes = self.all.iter().map(|node| node.process.log());
        of_nodes.chain([self.scheduler.log()]).collect::<Vec<_>>().join("\n")
    }
}

impl Node {
    async fn takes_pods(&self, plane: &Plane) -> Result<()> {
        // The API server gives each new Node this taint, for a controller to take off that no lab runs.
        let untainted = json!({ "spec": { "taints": null } });
        eventually("the node is there", SOON, async || {
            plane.merge(NODE, None, &self.name, &untainted).await.map(|_| ())
        })
        .await?;
        eventually("the node is ready", SOON, async || {
            let node = plane.expect(NODE, None, &self.name).await?;
            let conditions = node.data.pointer("/status/conditions").and_then(|all| all.as_array());
            let is_ready = |one: &serde_json::Value| one["type"] == "Ready" && one["status"] == "True";
            anyhow::ensure!(conditions.into_iter().flatten().any(is_ready), "{}", node.data);
            Ok(())
        })
        .await
    }
}
