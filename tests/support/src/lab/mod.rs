//! A lab: etcd, kube-apiserver, kube-controller-manager and Karmada, all real, on an address of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::sync::Mutex;

use crate::plane::Plane;
use crate::{artifacts, workspace};

mod detached;
mod events;
mod spec;
mod supervisor;

pub use detached::Detached;
pub use spec::{Flags, LabSpec, Member};

use events::{FrontProxy, PlaneInfo, Ready};
use supervisor::Supervisor;

/// Name of the Karmada control plane in [`Lab::plane`].
pub const HUB: &str = "hub";

/// Where this variable is set, a lab leaves its folder with all logs behind.
const KEEP: &str = "POPCELL_KEEP_LABS";

/// A running lab. It ends when this value is dropped or when the process ends, in whatever way. Its directory, logs
/// included, is removed unless the thread that drops it is panicking or `POPCELL_KEEP_LABS` is set.
pub struct Lab {
    supervisor: Mutex<Supervisor>,
    ready: Ready,
}

impl Lab {
    /// Builds the programs where they are missing, starts the lab and waits until every plane serves and every member
    /// is Ready. Progress is reported on standard error.
    ///
    /// # Errors
    /// Where Go is missing: how to get it. Otherwise which program did not come up, and the end of its log.
    pub async fn start(spec: &LabSpec) -> Result<Self> {
        let bin = artifacts::lab_programs()?;
        let dir = new_directory()?;
        let file = dir.join("spec.json");
        fs::write(&file, document(spec, &dir, &bin)?).with_context(|| format!("failed to write {}", file.display()))?;
        let mut supervisor = Supervisor::spawn(&bin.join("lab"), &file, dir.join("supervisor.log"))?;
        let ready = supervisor.ready().await?;
        eprintln!("lab: ready after {:.1} s on {}", ready.seconds, ready.address);
        Ok(Self {
            supervisor: Mutex::new(supervisor),
            ready,
        })
    }

    /// A client for the hub, made in the caller's runtime.
    pub async fn hub(&self) -> Result<Plane> {
        self.plane(HUB).await
    }

    /// A client for the hub, a member or an extra plane, made in the caller's runtime.
    pub async fn plane(&self, name: &str) -> Result<Plane> {
        Plane::connect(name, &self.info(name)?.kubeconfig).await
    }

    /// Names of the members.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.ready.members.keys().map(String::as_str)
    }

    /// The admin kubeconfig of a plane.
    pub fn kubeconfig(&self, plane: &str) -> Result<&Path> {
        Ok(&self.info(plane)?.kubeconfig)
    }

    /// The URL of a plane's API server.
    pub fn url(&self, plane: &str) -> Result<&str> {
        Ok(&self.info(plane)?.url)
    }

    /// The URLs of all API servers.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.ready.all_planes().map(|(_, info)| info.url.as_str())
    }

    fn info(&self, plane: &str) -> Result<&PlaneInfo> {
        let found = self.ready.all_planes().find(|(name, _)| *name == plane);
        let (_, info) = found.with_context(|| {
            let names: Vec<&str> = self.ready.all_planes().map(|(name, _)| name).collect();
            format!("the lab has no plane {plane}; it has {}", names.join(", "))
        })?;
        Ok(info)
    }

    /// The loopback address that only this lab uses.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.ready.address
    }

    /// The lab's directory: logs, certificates, data.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.ready.dir
    }

    /// The authority that signed the certificates of all API servers, as a PEM file.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        &self.ready.ca_file
    }

    /// Certificate and key of a client whose word every API server takes for who a caller is, as PEM files.
    #[must_use]
    pub fn front_proxy(&self) -> (&Path, &Path) {
        let FrontProxy { cert_file, key_file } = &self.ready.front_proxy;
        (cert_file, key_file)
    }

    /// A program that was built with the lab, such as `karmadactl`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.ready.bin.join(name)
    }

    /// Ends a process gracefully and waits for its end.
    pub async fn stop(&self, process: &str) -> Result<()> {
        self.command(&format!("stop {process}")).await
    }

    /// Starts a process that was stopped and waits until it serves.
    pub async fn start_process(&self, process: &str) -> Result<()> {
        self.command(&format!("start {process}")).await
    }

    /// Stops and starts a process.
    pub async fn restart(&self, process: &str) -> Result<()> {
        self.command(&format!("restart {process}")).await
    }

    /// Ends a process without warning (SIGKILL).
    pub async fn kill(&self, process: &str) -> Result<()> {
        self.command(&format!("kill {process}")).await
    }

    /// Has the running etcd of a plane save a snapshot in a file of the lab's directory. See [`LabSpec::own_etcd`].
    pub async fn snapshot(&self, plane: &str, name: &str) -> Result<PathBuf> {
        let file = self.ready.dir.join(format!("{plane}-{name}.db"));
        self.command(&format!("snapshot {plane} {}", file.display())).await?;
        Ok(file)
    }

    /// Sets a plane back to a snapshot, and restarts its servers and what of Kubernetes and Karmada keeps what it has seen
    /// there. It is served at the same address as before.
    pub async fn restore(&self, plane: &str, snapshot: &Path) -> Result<()> {
        self.command(&format!("restore {plane} {}", snapshot.display())).await
    }

    async fn command(&self, line: &str) -> Result<()> {
        self.supervisor.lock().await.command(line).await.map(|_| ())
    }

    /// A user with a client certificate; one kubeconfig for each plane.
    pub async fn user(&self, name: &str, groups: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
        let line = format!("user {name} {}", groups.join(" "));
        Ok(self.supervisor.lock().await.command(line.trim_end()).await?.kubeconfigs)
    }

    /// Gives a plane other keys for service account tokens, and restarts its API server: it signs with the private key, and
    /// accepts and publishes what the public keys verify. All are PEM.
    pub async fn set_token_keys(&self, plane: &str, private: &str, public: &[&str]) -> Result<()> {
        for (half, text) in [("key", private.to_owned()), ("pub", public.concat())] {
            let file = self.token_keys(plane, half);
            fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
        }
        self.restart(&api_server(plane)).await
    }

    /// Where the lab has them (tests/lab/cmd/lab/layout.go).
    fn token_keys(&self, plane: &str, half: &str) -> PathBuf {
        self.ready.dir.join("pki").join(format!("sa-{plane}.{half}"))
    }

    /// Certificate and key of a server at addresses or names, which blanks separate, signed by [`Lab::ca_file`], as PEM files.
    pub async fn server_certificate(&self, name: &str, hosts: &str) -> Result<(PathBuf, PathBuf)> {
        let line = format!("server-certificate {name} {hosts}");
        let answer = self.supervisor.lock().await.command(&line).await?;
        Ok((answer.cert_file, answer.key_file))
    }

    /// Fails when a program ended by itself since the last call.
    pub async fn expect_alive(&self) -> Result<()> {
        let deaths = self.supervisor.lock().await.deaths();
        ensure!(
            deaths.is_empty(),
            "programs of the lab ended by themselves: {}",
            deaths.join("; ")
        );
        Ok(())
    }

    /// Ends the lab and waits for it. Dropping does the same without telling of errors.
    pub async fn end(self) -> Result<()> {
        let status = self.supervisor.lock().await.end()?;
        ensure!(status.success(), "the supervisor ended with {status}");
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for death in self.supervisor.get_mut().deaths() {
            eprintln!("lab: {death}");
        }
        let ended = self.supervisor.get_mut().end();
        if std::thread::panicking() || ended.is_err() || std::env::var_os(KEEP).is_some() {
            eprintln!("lab: logs are in {}", self.ready.dir.join("logs").display());
        } else {
            // Best effort: what is left lies in the build directory.
            let _ = fs::remove_dir_all(&self.ready.dir);
        }
    }
}

/// The name of a plane's API server among the lab's processes.
fn api_server(plane: &str) -> String {
    if plane == HUB {
        "kube-apiserver".to_owned()
    } else {
        format!("kube-apiserver-{plane}")
    }
}

fn new_directory() -> Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = workspace::target_dir()
        .join("labs")
        .join(format!("{}-{number}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
    Ok(dir)
}

/// The spec as the supervisor reads it.
pub(crate) fn document(spec: &LabSpec, dir: &Path, bin: &Path) -> Result<String> {
    let mut document = serde_json::to_value(spec).context("failed to write the lab's spec")?;
    document["dir"] = json!(dir);
    document["bin"] = json!(bin);
    serde_json::to_string_pretty(&document).context("failed to write the lab's spec")
}
