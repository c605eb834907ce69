//! Certificates that change under a running listener, and a certificate authority of our own, shared by replicas.

mod harness;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::{Authority, Client, HOST, Running, SecretVolume, eventually, get_request, send, text};
use popcell_https::{CertificateError, Certificates, Limits, SelfSigned, Source};
use tempfile::TempDir;
use x509_parser::prelude::{FromDer, X509Certificate};

const PERIOD: Duration = Duration::from_millis(20);

async fn served_becomes(client: &Client, der: &[u8]) {
    eventually("the new certificate is served", async || {
        client.served().await.as_deref() == Some(der)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_rotations_with_a_removed_directory_and_an_open_connection() {
    let (running, authority, volume) = Running::simple(Limits::default()).await;
    tokio::spawn(Arc::clone(&running.certificates).watch(PERIOD));
    let client = Client::new(running.address, &[authority.pem()]);
    let mut kept = client.http1().await;
    let status = running.certificates.status();

    for rotation in 1..=3 {
        let before = client.served().await.unwrap();
        if rotation == 3 {
            volume.empty();
            let errors = status.reload_errors.load(Relaxed);
            eventually("more than one look failed", async || {
                status.reload_errors.load(Relaxed) > errors + 2
            })
            .await;
            assert!(status.failing.load(Relaxed));
            assert_eq!(
                client.served().await.as_ref(),
                Some(&before),
                "the old pair stays while the files are gone"
            );
            for file in ["tls.crt", "tls.key"] {
                std::os::unix::fs::symlink(format!("..data/{file}"), volume.file(file)).unwrap();
            }
        }
        let next = authority.issue(&[HOST]);
        volume.swap(&next);
        served_becomes(&client, &next.der).await;
        eventually("the look is good again", async || !status.failing.load(Relaxed)).await;
        assert_eq!(status.reloads.load(Relaxed), rotation);
        assert_eq!(text(send(&mut kept, get_request("/hello")).await).await, "hello");
    }
    let accepted = running.status.accepted.load(Relaxed);
    assert_eq!(text(send(&mut kept, get_request("/hello")).await).await, "hello");
    assert_eq!(
        running.status.accepted.load(Relaxed),
        accepted,
        "the first connection went on through all of it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_fails_while_the_key_is_later_than_the_certificate() {
    let (running, authority, volume) = Running::simple(Limits::default()).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let before = client.served().await.unwrap();
    let former_key = fs::read_to_string(volume.file("tls.key")).unwrap();
    let next = authority.issue(&[HOST]);

    volume.swap_parts(Some(&next.certificate), Some(&former_key));
    let error = running.certificates.reload().unwrap_err();
    assert!(matches!(error, CertificateError::KeyMismatch { .. }), "{error}");
    assert_eq!(client.served().await.as_ref(), Some(&before));

    volume.swap_parts(Some(&next.certificate), None);
    let error = running.certificates.reload().unwrap_err();
    assert!(error.to_string().contains("tls.key"), "{error}");
    assert_eq!(client.served().await.as_ref(), Some(&before));

    volume.swap(&next);
    assert!(running.certificates.reload().unwrap());
    assert_eq!(client.served().await, Some(next.der));
    assert!(!running.certificates.reload().unwrap(), "equal content is no rotation");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_taken() {
    let (running, authority, volume) = Running::simple(Limits::default()).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let before = client.served().await.unwrap();
    let status = running.certificates.status();
    let not_after = status.not_after.load(Relaxed);

    volume.swap(&authority.issue(&["other.popcell.test"]));
    let error = running.certificates.reload().unwrap_err().to_string();
    assert!(error.contains("other.popcell.test") && error.contains(HOST), "{error}");
    assert_eq!(client.served().await, Some(before));
    assert_eq!(status.not_after.load(Relaxed), not_after);
    assert_eq!(status.reload_errors.load(Relaxed), 1);
    assert_eq!(
        status.last_error.load().as_deref().map(String::as_str),
        Some(error.as_str())
    );

    let wider = authority.issue(&["other.popcell.test", "*.popcell.test"]);
    volume.swap(&wider);
    assert!(running.certificates.reload().unwrap(), "a wildcard covers the name");
    assert!(!status.failing.load(Relaxed));
}

#[tokio::test]
async fn server_names_that_are_given_decide_alone() {
    let authority = Authority::new("one");
    let volume = SecretVolume::new(&authority.issue(&[HOST, "old.popcell.test"]));
    let mut pair = volume.pair();
    pair.names = vec!["missing.popcell.test".to_owned()];
    let error = Certificates::open(Source::Files(pair.clone())).unwrap_err().to_string();
    assert!(error.contains("missing.popcell.test"), "{error}");

    pair.names = vec![HOST.to_owned()];
    let certificates = Certificates::open(Source::Files(pair)).unwrap();
    volume.swap(&authority.issue(&[HOST]));
    assert!(certificates.reload().unwrap(), "a name that nobody asked for may go");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_rotates_in_both_orders_under_calls() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let volume = SecretVolume::new(&old.issue(&[HOST]));
    let running = Running::start(Source::Files(volume.pair()), Limits::default()).await;
    tokio::spawn(Arc::clone(&running.certificates).watch(PERIOD));
    let both = Client::new(running.address, &[old.pem(), new.pem()]);
    let call = async |client: &Client| {
        let response = client.http1().await.send_request(get_request("/hello")).await.unwrap();
        assert_eq!(text(response).await, "hello");
    };
    // Bundle first: clients trust both, then the certificate changes, while every call is a new handshake.
    let next = new.issue(&[HOST]);
    volume.swap(&next);
    while both.served().await.unwrap() != next.der {
        call(&both).await;
    }
    call(&Client::new(running.address, &[new.pem()])).await;
    // Certificate first: clients that have kept a connection go on, and new ones that trust only the old fail until
    // their bundle has the new authority too.
    let mut kept = both.http1().await;
    let back = old.issue(&[HOST]);
    volume.swap(&back);
    served_becomes(&both, &back.der).await;
    assert_eq!(text(send(&mut kept, get_request("/hello")).await).await, "hello");
    assert!(
        Client::new(running.address, &[new.pem()])
            .dial("http/1.1")
            .await
            .is_err()
    );
    call(&both).await;
}

#[tokio::test]
async fn an_expired_pair_never_replaces_a_good_one_and_starts_when_it_is_all_there_is() {
    let (running, authority, volume) = Running::simple(Limits::default()).await;
    volume.swap(&authority.expired(&[HOST]));
    let error = running.certificates.reload().unwrap_err().to_string();
    assert!(error.contains("expired since"), "{error}");
    let later = SystemTime::now() + Duration::from_hours(48);
    volume.swap(&authority.issue_between(&[HOST], later, later + Duration::from_hours(48)));
    let error = running.certificates.reload().unwrap_err().to_string();
    assert!(error.contains("not valid before"), "{error}");

    volume.swap(&authority.expired(&["former.popcell.test"]));
    let certificates = Certificates::open(Source::Files(volume.pair())).unwrap();
    volume.swap(&authority.issue(&[HOST]));
    assert!(
        certificates.reload().unwrap(),
        "names of an expired certificate bind nobody"
    );
}

#[tokio::test]
async fn a_certificate_that_is_its_own_authority_is_served() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new([HOST.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let one = harness::Pem {
        der: Vec::new(),
        certificate: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    };
    Certificates::open(Source::Files(SecretVolume::new(&one).pair())).unwrap();
}

#[tokio::test]
async fn refusals_at_start_name_the_file_and_what_is_wrong() {
    let authority = Authority::new("one");
    let (one, other) = (authority.issue(&[HOST]), authority.issue(&[HOST]));
    let volume = SecretVolume::new(&one);
    let refusal = || {
        Certificates::open(Source::Files(volume.pair()))
            .unwrap_err()
            .to_string()
    };
    for (certificate, key, expected) in [
        (
            Some(one.certificate.as_str()),
            Some(other.key.as_str()),
            "the key is not the certificate's",
        ),
        (Some("nothing"), Some(one.key.as_str()), "tls.crt: no CERTIFICATE block"),
        (
            Some(one.certificate.as_str()),
            Some("nothing"),
            "tls.key: no private key",
        ),
        (
            Some(one.key.as_str()),
            Some(one.key.as_str()),
            "tls.crt: no CERTIFICATE block",
        ),
        (None, Some(one.key.as_str()), "failed to read"),
        (
            Some(&format!("{}{}", authority.pem(), one.certificate)),
            Some(one.key.as_str()),
            "tls.crt: its first certificate is a certificate authority (CN=one): the server's own certificate must come first",
        ),
        (
            Some(&authority.pem()),
            Some(one.key.as_str()),
            "tls.crt: it has the certificate of an authority (CN=one) only",
        ),
        (
            Some(&format!("\u{feff}{}", one.certificate)),
            Some(one.key.as_str()),
            "tls.crt: it begins with a byte order mark (UTF-8)",
        ),
        (
            Some(one.certificate.as_str()),
            Some(&format!("\u{feff}{}", one.key)),
            "tls.key: it begins with a byte order mark (UTF-8)",
        ),
        (
            Some(one.certificate.as_str()),
            Some(&one.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")),
            "tls.key: its private key is encrypted",
        ),
    ] {
        volume.swap_parts(certificate, key);
        let message = refusal();
        assert!(message.contains(expected), "{message}");
    }
}

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
