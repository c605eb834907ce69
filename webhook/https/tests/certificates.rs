//! Certificates that change under a running listener.

mod harness;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use harness::{Authority, Client, HOST, Running, SecretVolume, eventually, get_request, send, text};
use popcell_https::{CertificateError, Certificates, Limits, Source};

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
