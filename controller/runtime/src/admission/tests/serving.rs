//! The port: TLS with files that are renewed, and a stop that loses no review.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::{Client, Config};
use popcell_https::{Drained, FilePair, Limits};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::admission::{Endpoint, Record, ServeError, limits};

const LONG: Duration = Duration::from_secs(30);

/// Writes a pair of a new authority and gives the authority's certificate.
fn renew(directory: &Path) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    fs::write(directory.join("tls.crt"), leaf.pem()).unwrap();
    fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
    authority.der().to_vec()
}

fn files(directory: &Path) -> FilePair {
    FilePair {
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
        names: Vec::new(),
    }
}

/// Sends one review over a connection of its own that trusts this authority alone.
async fn call(port: u16, authority: &[u8]) -> Result<Value, kube::Error> {
    let mut config = Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.root_cert = Some(vec![authority.to_vec()]);
    config.default_retry = false;
    let body = review(&create(workload())).to_string().into_bytes();
    let request = http::Request::post(VALIDATE_WORKLOAD_PATH).body(body).unwrap();
    Client::try_from(config)?.request(request).await
}

#[tokio::test]
async fn reviews_are_served_over_tls_and_certificates_are_renewed_meanwhile() {
    let directory = TempDir::new().unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let none = Endpoint::bind(address, files(directory.path())).await;
    assert!(matches!(none, Err(ServeError::Certificate(_))), "{none:?}");

    let first = renew(directory.path());
    let limits = Limits {
        grace: Duration::from_millis(500),
        ..limits()
    };
    let endpoint = Endpoint::bind_within(address, files(directory.path()), limits)
        .await
        .unwrap();
    let taken = Endpoint::bind(endpoint.address(), files(directory.path())).await;
    assert!(matches!(taken, Err(ServeError::Listen(_))), "{taken:?}");
    let port = endpoint.address().port();
    let served = Served::good();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(endpoint.serve(served.router.clone(), Duration::from_millis(20), stop.clone()));

    let answer = call(port, &first).await.unwrap();
    assert_eq!(answer["response"], json!({ "uid": "uid-CREATE", "allowed": true }));

    let second = renew(directory.path());
    let renewed = async {
        while call(port, &second).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, renewed).await.expect("the new certificate is served");
    assert!(call(port, &first).await.is_err(), "the old one is not");

    stop.cancel();
    call(port, &second).await.expect("accepts while it says that it goes");
    let drained = timeout(LONG, serving).await.unwrap().unwrap().unwrap();
    assert_eq!(drained, Drained::Complete);
    assert!(call(port, &second).await.is_err());
}

#[test]
fn the_port_takes_the_memory_that_the_documentation_says() {
    assert_eq!(limits().memory() >> 20, 248);
}

#[tokio::test]
async fn reviews_have_threads_of_their_own() {
    let directory = TempDir::new().unwrap();
    let authority = renew(directory.path());
    let limits = Limits {
        grace: Duration::ZERO,
        ..limits()
    };
    let endpoint = Endpoint::bind_within("127.0.0.1:0".parse().unwrap(), files(directory.path()), limits)
        .await
        .unwrap();
    let port = endpoint.address().port();
    let servers = Servers::new(good);
    let names = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&names);
    let record: Record = Arc::new(move |_, _| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(name);
    });
    let router = router(Admission::new(Mode::Milo, servers.transport(), record, LARGEST));
    let stop = CancellationToken::new();
    let serving = tokio::spawn(endpoint.serve(router, LONG, stop.clone()));
    call(port, &authority).await.unwrap();
    stop.cancel();
    timeout(LONG, serving).await.unwrap().unwrap().unwrap();
    let names = names.lock().unwrap();
    assert!(
        !names.is_empty() && names.iter().all(|name| name.starts_with("popcell-https-")),
        "{names:?}"
    );
}
