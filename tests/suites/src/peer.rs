//! Other webhooks as processes, to compare with: Karmada's example interpreter webhook, and one that does nothing.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_test_support::{Guarded, artifacts, eventually};
use tempfile::TempDir;

/// A webhook of another vendor. It ends with this value.
pub struct Peer {
    process: Guarded,
    url: String,
    /// Below its directory.
    ca_file: &'static str,
    dir: TempDir,
}

impl Peer {
    /// Starts Karmada's example interpreter webhook on a free port of `address`, and waits until it listens.
    pub async fn example(address: Ipv4Addr) -> Result<Self> {
        let program = artifacts::lab_programs()?.join("karmada-example-webhook");
        let authority =
            rcgen::generate_simple_self_signed(vec![address.to_string()]).context("failed to make a certificate")?;
        Self::start(address, "interpreter-workload", "tls.crt", |dir, port| {
            write(dir, "tls.crt", &authority.cert.pem())?;
            write(dir, "tls.key", &authority.signing_key.serialize_pem())?;
            // Its manager wants a configuration and never calls the server: nothing in the example asks it anything.
            write(dir, "kubeconfig", KUBECONFIG)?;
            let arguments = vec![
                format!("KUBECONFIG={}", dir.join("kubeconfig").display()),
                program.display().to_string(),
                format!("--bind-address={address}"),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", dir.display()),
            ];
            Ok(("env".into(), arguments))
        })
        .await
    }

    /// The same with `program`, the no-op echo of the benchmarks.
    pub async fn echo(program: &Path, address: Ipv4Addr) -> Result<Self> {
        Self::start(address, "interpret", "ca/ca.crt", |dir, port| {
            let arguments = vec![
                format!("--listen={address}:{port}"),
                format!("--ca-dir={}", dir.join("ca").display()),
                format!("--san={address}"),
            ];
            Ok((program.to_owned(), arguments))
        })
        .await
    }

    async fn start(
        address: Ipv4Addr,
        path: &str,
        ca_file: &'static str,
        command: impl FnOnce(&Path, u16) -> Result<(PathBuf, Vec<String>)>,
    ) -> Result<Self> {
        let dir = tempfile::tempdir().context("failed to make a directory")?;
        let port = free_port(address)?;
        let (program, arguments) = command(dir.path(), port)?;
        let mut process = Guarded::spawn(&program, &arguments, &dir.path().join("program.log"))?;
        let what = format!("{path} of {address} listens");
        eventually(&what, Duration::from_mins(1), async || {
            ensure!(process.try_wait()?.is_none(), "it ended: {}", process.log());
            TcpStream::connect((address, port))
                .map(drop)
                .context("it does not listen")
        })
        .await?;
        Ok(Self {
            process,
            url: format!("https://{address}:{port}/{path}"),
            ca_file,
            dir,
        })
    }

    /// Where to call.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The authority of its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.dir.path().join(self.ca_file)
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
";

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::write(dir.join(name), text).with_context(|| format!("failed to write {name}"))
}

fn free_port(address: Ipv4Addr) -> Result<u16> {
    let listener = TcpListener::bind((address, 0)).context("failed to find a free port")?;
    Ok(listener.local_addr().context("no local address")?.port())
}
