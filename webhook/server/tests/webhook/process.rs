//! The program as a process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::client::{Client, HOST, get_plain};
use crate::fixture::wasm;

/// A directory with modules, an authority and whatever else one process needs.
pub(crate) struct Environment {
    root: TempDir,
}

impl Environment {
    /// A module directory with some variants of the fixture, each in a file of its name.
    pub(crate) fn new(variants: &[&str]) -> Self {
        let environment = Self {
            root: TempDir::new().unwrap(),
        };
        fs::create_dir(environment.modules()).unwrap();
        for variant in variants {
            fs::write(environment.modules().join(format!("{variant}.wasm")), wasm(variant)).unwrap();
        }
        environment
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn modules(&self) -> PathBuf {
        self.root.path().join("modules")
    }

    /// The program with free ports, a certificate of its own and JSON logs.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.bare_command();
        command
            .args(["--self-signed", "--san", HOST, "--ca-dir"])
            .arg(self.path().join("ca"));
        command
    }

    /// The same without a certificate.
    pub(crate) fn bare_command(&self) -> Command {
        let program = std::env::var_os("POPCELL_WEBHOOK_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_popcell-webhook").into()));
        // By environment, so that a test can still say otherwise by flag.
        command
            .env("POPCELL_LISTEN", "127.0.0.1:0")
            .env("POPCELL_HEALTH_LISTEN", "127.0.0.1:0")
            .env("POPCELL_MODULE_DIR", self.modules())
            .env("POPCELL_LOG_FORMAT", "json")
            .env("RUST_LOG", "info");
        command
    }

    /// Starts it with more arguments and waits until it serves.
    pub(crate) fn start(&self, arguments: &[&str]) -> Webhook {
        let mut command = self.command();
        command.args(arguments);
        Webhook::start(command)
    }

    /// A client that trusts the authority that the program has made.
    pub(crate) fn client(&self, webhook: &Webhook) -> Client {
        Client::new(webhook.address, &[fs::read(self.path().join("ca/ca.crt")).unwrap()])
    }
}

/// A process that serves. It is killed when the test ends.
pub(crate) struct Webhook {
    child: Child,
    /// What it writes goes to a file, so that all of it can be read once the process has ended.
    log: NamedTempFile,
    pub(crate) address: SocketAddr,
    pub(crate) health: SocketAddr,
}

impl Webhook {
    pub(crate) fn start(mut command: Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        let mut child = command
            .stderr(log.reopen().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let written = fs::read_to_string(&log).unwrap();
            let serving = written.lines().find_map(serving);
            if let Some((address, health)) = serving {
                return Self {
                    child,
                    log,
                    address,
                    health,
                };
            }
            if let Some(status) = child.try_wait().unwrap() {
                panic!("ended with {status}: {}", last(&written));
            }
            assert!(Instant::now() < end, "does not serve: {}", last(&written));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The same for lines that are for people: it waits for the health port alone.
    pub(crate) fn start_text(mut command: Command, address: SocketAddr, health: SocketAddr) -> Self {
        let log = NamedTempFile::new().unwrap();
        let stderr = log.reopen().unwrap();
        let child = command.stderr(stderr).stdout(Stdio::null()).spawn().unwrap();
        let webhook = Self {
            child,
            log,
            address,
            health,
        };
        let end = Instant::now() + Duration::from_mins(1);
        while std::net::TcpStream::connect(health).is_err() {
            assert!(Instant::now() < end, "does not serve: {}", webhook.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        webhook
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the exit, for at most a minute.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "does not end: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// All lines so far. A thread of the program writes them, a moment after what they are about.
    pub(crate) fn log(&self) -> String {
        let read = || fs::read_to_string(&self.log).unwrap();
        let mut text = read();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let later = read();
            if later.len() == text.len() {
                return text;
            }
            text = later;
        }
    }

    pub(crate) async fn metrics(&self) -> String {
        let (status, text) = get_plain(self.health, "/metrics").await;
        assert_eq!(status, 200);
        text
    }

    /// The value of the series that begins with `name`, labels included; 0 when there is none.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.metrics().await;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The end of a log, for a message.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn serving(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_str(line).ok()?;
    (line["message"] == "serving").then(|| {
        let address = |field: &str| line[field].as_str().unwrap().parse().unwrap();
        (address("address"), address("health"))
    })
}

/// Waits until `condition` holds; fails after 20 s.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
