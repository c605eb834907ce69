//! The program's rotation of certificate files, and what its metrics say of it.

use std::fs;
use std::path::Path;

use crate::client::{Client, HOST};
use crate::fixture::request;
use crate::process::{Environment, Webhook, eventually};

/// A pair for [`HOST`] under an authority in `dir`, made by the program itself.
fn make_pair(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(
        {
            let mut params = rcgen::CertificateParams::default();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params
        },
        rcgen::KeyPair::generate().unwrap(),
    )
    .unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new([HOST.to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    fs::write(dir.join("ca.crt"), authority.pem()).unwrap();
    fs::write(dir.join("tls.crt"), leaf.pem()).unwrap();
    fs::write(dir.join("tls.key"), key.serialize_pem()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn three_rotations_of_the_files_of_a_running_process() {
    let environment = Environment::new(&["misbehaving"]);
    let served = environment.path().join("tls");
    make_pair(&served);
    let client = |webhook: &Webhook, dir: &Path| Client::new(webhook.address, &[fs::read(dir.join("ca.crt")).unwrap()]);
    let mut command = environment.bare_command();
    command.args(["--tls-reload-period", "20ms", "--call-timeout", "30s"]);
    command
        .arg("--tls-cert")
        .arg(served.join("tls.crt"))
        .arg("--tls-key")
        .arg(served.join("tls.key"));
    let webhook = Webhook::start(command);
    let mut kept = client(&webhook, &served).http1().await;

    for rotation in 1..=3 {
        let next = environment.path().join(format!("next-{rotation}"));
        make_pair(&next);
        if rotation == 3 {
            fs::remove_dir_all(&served).unwrap();
            eventually("it is noticed", async || {
                webhook.metric("popcell_certificate_reload_failing").await > 0
            })
            .await;
            fs::create_dir(&served).unwrap();
        }
        fs::copy(next.join("tls.crt"), served.join("tls.crt")).unwrap();
        let errors = webhook.metric("popcell_certificate_reload_errors_total").await;
        eventually("a certificate without its key is noticed", async || {
            webhook.metric("popcell_certificate_reload_errors_total").await > errors
        })
        .await;
        fs::copy(next.join("tls.key"), served.join("tls.key")).unwrap();
        let trusting = client(&webhook, &next);
        eventually("it is served", async || trusting.dial("http/1.1").await.is_ok()).await;
        assert!(trusting.post("", request("InterpretHealth", "")).await.is_successful());
        assert!(kept.post("", request("InterpretHealth", "")).await.is_successful());
    }
    eventually("all is well", async || {
        webhook.metric("popcell_certificate_reload_failing").await == 0
    })
    .await;
    assert!(webhook.metric("popcell_certificate_reloads_total").await >= 3);
    eventually("the log says why", async || {
        webhook.log().contains("the key is not the certificate's")
    })
    .await;
}
