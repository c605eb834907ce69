//! Whatever standard error is, the program serves, renews its certificate and stops.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use crate::abuse::free;
use crate::client::{Client, HOST, get_plain};
use crate::fixture::{request, request_about};
use crate::process::{Environment, Webhook, eventually};

/// A certificate authority that writes pairs for the program.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn write(&self, environment: &Environment) {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new([HOST.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &self.0).unwrap();
        fs::write(environment.path().join("tls.crt"), leaf.pem()).unwrap();
        fs::write(environment.path().join("tls.key"), key.serialize_pem()).unwrap();
    }

    fn client(&self, address: SocketAddr) -> Client {
        Client::new(address, &[self.0.pem()])
    }
}

/// A program that logs as much as it can to `stderr`; killed when the test ends.
struct Chatty {
    child: Child,
    address: SocketAddr,
    health: SocketAddr,
}

impl Chatty {
    fn start(environment: &Environment, stderr: Stdio) -> Self {
        let (address, health) = (free(), free());
        let mut command = environment.bare_command();
        command
            .arg("--tls-cert")
            .arg(environment.path().join("tls.crt"))
            .arg("--tls-key")
            .arg(environment.path().join("tls.key"))
            .args(["--tls-reload-period", "50ms"])
            .args(["--listen", &address.to_string(), "--health-listen", &health.to_string()])
            .env(
                "RUST_LOG",
                "info,popcell_webhook=trace,hyper=trace,h2=trace,rustls=trace",
            );
        let child = command.stderr(stderr).stdout(Stdio::null()).spawn().unwrap();
        Self { child, address, health }
    }

    /// Serves calls with much to log, takes a renewed certificate, reports lost lines, and ends when it is told to.
    async fn goes_on(mut self, environment: &Environment, first: &Authority) {
        eventually("it is ready", async || {
            tokio::net::TcpStream::connect(self.health).await.is_ok()
        })
        .await;
        let client = first.client(self.address);
        // Handshakes have much to log.
        for _ in 0..300 {
            let reply = client.post("", request("InterpretHealth", "failed")).await;
            assert!(reply.refusal().contains("no such size"), "{reply:?}");
        }
        assert_eq!(get_plain(self.health, "/readyz").await.0, 200);
        // A pair that cannot be used is a warning at each look.
        fs::write(environment.path().join("tls.crt"), "nonsense").unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let second = Authority::new();
        second.write(environment);
        eventually("the new certificate is served", async || {
            second.client(self.address).dial("http/1.1").await.is_ok()
        })
        .await;
        eventually("lost lines are counted", async || {
            let (_, metrics) = get_plain(self.health, "/metrics").await;
            let lost = metrics
                .lines()
                .find_map(|line| line.strip_prefix("popcell_log_lines_lost_total "));
            lost.is_some_and(|lost| lost != "0")
        })
        .await;
        let terminated = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(terminated.success());
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(0));
                return;
            }
            assert!(Instant::now() < end, "it does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Chatty {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn prepared() -> (Environment, Authority) {
    let (environment, authority) = (Environment::new(&["misbehaving"]), Authority::new());
    authority.write(&environment);
    (environment, authority)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_device_under_standard_error_harms_nothing() {
    let (environment, authority) = prepared();
    let full = File::options().write(true).open("/dev/full").unwrap();
    Chatty::start(&environment, full.into())
        .goes_on(&environment, &authority)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_is_closed_harms_nothing() {
    let (environment, authority) = prepared();
    let mut chatty = Chatty::start(&environment, Stdio::piped());
    drop(chatty.child.stderr.take());
    chatty.goes_on(&environment, &authority).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_pipe_harms_nothing() {
    let (environment, authority) = prepared();
    let mut chatty = Chatty::start(&environment, Stdio::piped());
    let unread = chatty.child.stderr.take();
    chatty.goes_on(&environment, &authority).await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_the_log_are_one_line_and_cut() {
    let environment = Environment::new(&["misbehaving"]);
    let mut command = environment.command();
    command
        .env("POPCELL_LOG_FORMAT", "text")
        .env("RUST_LOG", "debug,cranelift=off,wasmtime=off");
    // The lines for people have the addresses, too, but are not read by the fixture.
    let (address, health) = (free(), free());
    command.args(["--listen", &address.to_string(), "--health-listen", &health.to_string()]);
    let webhook = Webhook::start_text(command, address, health);
    let forged = "a\\nERROR popcell: forged\\u001b[31m".to_owned() + &"x".repeat(1000);
    let object = json!({"apiVersion": "tests.popcell.dev/v1", "kind": "Misbehaving", "metadata": {"name": "a"}});
    let body = request_about("InterpretHealth", "Misbehaving", &object);
    let named = body.replacen(
        r#""name":"a","namespace":"ns""#,
        &format!(r#""name":"{forged}","namespace":"{forged}""#),
        1,
    );
    assert_ne!(named, body);
    environment.client(&webhook).post("", named).await;
    let kind = body.replacen(r#""kind":"Misbehaving"},"#, &format!(r#""kind":"{forged}"}},"#), 1);
    assert_ne!(kind, body);
    environment.client(&webhook).post("", kind).await;
    eventually("both are logged", async || webhook.log().matches("forged").count() >= 3).await;
    let log = webhook.log();
    assert!(!log.contains('\u{1b}'), "{log}");
    assert!(
        !log.lines()
            .any(|line| line.trim_start().starts_with("ERROR popcell: forged")),
        "{log}"
    );
    assert!(!log.contains(&"x".repeat(254)), "{log}");
}
