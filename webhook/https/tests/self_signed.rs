//! A certificate authority of our own, shared by replicas.

mod harness;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::{Client, HOST, Running};
use popcell_https::{CertificateError, Certificates, Limits, SelfSigned, Source};
use tempfile::TempDir;
use x509_parser::prelude::{FromDer, X509Certificate};

fn own(directory: &TempDir) -> SelfSigned {
    SelfSigned {
        ca_dir: directory.path().join("made/on/demand"),
        names: vec![HOST.to_owned(), "127.0.0.1".to_owned()],
    }
}

#[tokio::test]
async fn clients_that_trust_the_public_file_connect_by_name_and_by_address() {
    let directory = TempDir::new().unwrap();
    let own = own(&directory);
    let running = Running::start(Source::SelfSigned(own.clone()), Limits::default()).await;
    let trust = fs::read_to_string(own.public_file()).unwrap();
    assert!(!trust.contains("PRIVATE"));
    let client = Client::new(running.address, &[trust]);
    client.dial("http/1.1").await.unwrap();
    client.dial_name("http/1.1", "127.0.0.1").await.unwrap();
    assert!(client.dial_name("http/1.1", "other.popcell.test").await.is_err());
}

#[tokio::test]
async fn the_key_is_private_and_validity_begins_an_hour_ago() {
    let directory = TempDir::new().unwrap();
    let own = own(&directory);
    let running = Running::start(Source::SelfSigned(own.clone()), Limits::default()).await;
    let mode = fs::metadata(own.ca_dir.join("ca.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let trust = fs::read_to_string(own.public_file()).unwrap();
    let der = Client::new(running.address, &[trust]).served().await.unwrap();
    let (_, leaf) = X509Certificate::from_der(&der).unwrap();
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let back = now - leaf.validity().not_before.timestamp();
    assert!((3590..=3700).contains(&back), "{back}");
}

#[test]
fn replicas_that_race_end_with_one_authority() {
    let directory = TempDir::new().unwrap();
    let own = own(&directory);
    let barrier = Barrier::new(8);
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                barrier.wait();
                Certificates::open(Source::SelfSigned(own.clone())).unwrap();
            });
        }
    });
    let authority = fs::read_to_string(own.ca_dir.join("ca.pem")).unwrap();
    let public = fs::read_to_string(own.public_file()).unwrap();
    assert!(authority.starts_with(public.trim_end()));
    let files: Vec<_> = fs::read_dir(&own.ca_dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files.len(), 2, "nothing is left over: {files:?}");
}

#[tokio::test]
async fn a_restart_keeps_the_authority_and_a_replaced_one_is_followed() {
    let directory = TempDir::new().unwrap();
    let own = own(&directory);
    let running = Running::start(Source::SelfSigned(own.clone()), Limits::default()).await;
    let first = fs::read_to_string(own.public_file()).unwrap();
    Certificates::open(Source::SelfSigned(own.clone())).unwrap();
    assert_eq!(fs::read_to_string(own.public_file()).unwrap(), first);
    assert!(!running.certificates.reload().unwrap());

    fs::remove_dir_all(&own.ca_dir).unwrap();
    assert!(
        matches!(running.certificates.reload(), Err(CertificateError::Read { .. })),
        "no new authority behind clients' backs"
    );
    Client::new(running.address, &[first]).dial("http/1.1").await.unwrap();

    Certificates::open(Source::SelfSigned(own.clone())).unwrap();
    assert!(running.certificates.reload().unwrap());
    let second = fs::read_to_string(own.public_file()).unwrap();
    Client::new(running.address, &[second]).dial("http/1.1").await.unwrap();
}

#[test]
fn refusals_say_what_is_missing() {
    let directory = TempDir::new().unwrap();
    let nameless = SelfSigned {
        names: Vec::new(),
        ..own(&directory)
    };
    assert!(matches!(
        Certificates::open(Source::SelfSigned(nameless)),
        Err(CertificateError::NoNames)
    ));

    let own = own(&directory);
    fs::create_dir_all(&own.ca_dir).unwrap();
    fs::write(own.ca_dir.join("ca.pem"), "nonsense").unwrap();
    let message = Certificates::open(Source::SelfSigned(own.clone()))
        .unwrap_err()
        .to_string();
    assert!(message.contains("ca.pem"), "{message}");

    let authority = harness::Authority::new("gone");
    let past = SystemTime::now() - Duration::from_hours(48);
    let expired = authority.issue_between(&["ca"], past, past + Duration::from_hours(24));
    fs::write(own.ca_dir.join("ca.pem"), expired.certificate + &expired.key).unwrap();
    let message = Certificates::open(Source::SelfSigned(own)).unwrap_err().to_string();
    assert!(message.contains("expired"), "{message}");
}
