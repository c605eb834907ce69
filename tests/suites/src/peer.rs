//! Karmada's example interpreter webhook as a process, to compare with.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_test_support::{artifacts, eventually};
use tempfile::TempDir;

/// It ends with this value.
pub struct ExampleWebhook {
    child: Child,
    port: u16,
    address: Ipv4Addr,
    dir: TempDir,
}

impl ExampleWebhook {
    /// Starts it on a free port of `address` and waits until it listens.
    pub async fn start(address: Ipv4Addr) -> Result<Self> {
        let dir = tempfile::tempdir().context("failed to make a directory")?;
        let authority =
            rcgen::generate_simple_self_signed(vec![address.to_string()]).context("failed to make a certificate")?;
        write(&dir, "tls.crt", &authority.cert.pem())?;
        write(&dir, "tls.key", &authority.signing_key.serialize_pem())?;
        // Its manager wants a configuration and never calls the server: nothing in the example asks it anything.
        write(&dir, "kubeconfig", KUBECONFIG)?;
        let port = free_port(address)?;
        let program = artifacts::lab_programs()?.join("karmada-example-webhook");
        let child = Command::new(&program)
            .arg(format!("--bind-address={address}"))
            .arg(format!("--secure-port={port}"))
            .arg(format!("--cert-dir={}", dir.path().display()))
            .env("KUBECONFIG", dir.path().join("kubeconfig"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let mut peer = Self {
            child,
            port,
            address,
            dir,
        };
        eventually(
            "Karmada's example webhook listens",
            Duration::from_mins(1),
            async || {
                ensure!(peer.child.try_wait()?.is_none(), "it ended");
                TcpStream::connect((address, port))
                    .map(|_| ())
                    .context("it does not listen")
            },
        )
        .await?;
        Ok(peer)
    }

    /// Where to call.
    pub fn url(&self) -> String {
        format!("https://{}:{}/interpreter-workload", self.address, self.port)
    }

    /// The authority of its certificate: the certificate itself.
    pub fn ca_file(&self) -> PathBuf {
        self.dir.path().join("tls.crt")
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ExampleWebhook {
    fn drop(&mut self) {
        // Nothing is left to tell when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
";

fn write(dir: &TempDir, name: &str, text: &str) -> Result<()> {
    std::fs::write(dir.path().join(name), text).with_context(|| format!("failed to write {name}"))
}

fn free_port(address: Ipv4Addr) -> Result<u16> {
    let listener = TcpListener::bind((address, 0)).context("failed to find a free port")?;
    Ok(listener.local_addr().context("no local address")?.port())
}
