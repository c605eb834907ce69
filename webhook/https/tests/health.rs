//! The plain port: what it says, and that it says it whatever the rest of the process does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use popcell_https::ListenError;
use popcell_https::health::{Check, Health, Readiness, routes};

const FREE: &str = "127.0.0.1:0";

/// The whole answer. Blocks the thread, and with it a runtime that has only this one.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Status and body.
fn get(health: &Health, path: &str) -> (u16, String) {
    let answer = ask(health.address(), path).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

async fn start(checks: Vec<Check>) -> Health {
    let router = routes(checks, || Ok("# EOF\n".to_owned()));
    Health::start(FREE.parse().unwrap(), router).await.unwrap()
}

// One thread, which every request here blocks: only a port with a thread of its own answers at all.
#[tokio::test]
async fn it_answers_while_the_runtime_is_busy() {
    let health = start(Vec::new()).await;
    assert_eq!(get(&health, "/livez"), (200, "ok\n".to_owned()));
    assert_eq!(get(&health, "/readyz"), (200, "ok\n".to_owned()));
    let metrics = ask(health.address(), "/metrics").unwrap();
    assert!(
        metrics.contains("content-type: application/openmetrics-text"),
        "{metrics}"
    );
    assert!(metrics.ends_with("\r\n\r\n# EOF\n"), "{metrics}");
    assert_eq!(get(&health, "/other").0, 404);
}

#[tokio::test]
async fn who_is_not_ready_says_what_is_missing() {
    let synced = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&synced);
    let sync = move || {
        let synced = seen.load(Ordering::Relaxed);
        synced.then_some(()).ok_or_else(|| "no list yet".to_owned())
    };
    let again = sync.clone();
    let readiness = Readiness::default();
    let checks = vec![
        Check::new("first", sync),
        Check::new("first-once", again).once(),
        Check::new("second", || Ok(())),
        readiness.check(),
    ];
    let health = start(checks).await;
    let missing = "first: no list yet\nfirst-once: no list yet\n";
    assert_eq!(get(&health, "/readyz"), (503, missing.to_owned()));
    assert_eq!(get(&health, "/livez").0, 200);
    synced.store(true, Ordering::Relaxed);
    assert_eq!(get(&health, "/readyz").0, 200);
    synced.store(false, Ordering::Relaxed);
    assert_eq!(get(&health, "/readyz"), (503, "first: no list yet\n".to_owned()));
    synced.store(true, Ordering::Relaxed);
    readiness.leave();
    assert_eq!(get(&health, "/readyz"), (503, "serving: stopping\n".to_owned()));
}

#[tokio::test]
async fn metrics_that_cannot_be_written_are_an_error() {
    let router = routes(Vec::new(), || Err(std::fmt::Error));
    let health = Health::start(FREE.parse().unwrap(), router).await.unwrap();
    assert_eq!(get(&health, "/metrics").0, 500);
}

#[tokio::test]
async fn a_page_that_is_larger_than_its_part_of_the_memory_is_written_to_several_scrapers() {
    const LARGE: usize = 6 * 1024 * 1024;
    let router = routes(Vec::new(), || Ok("x".repeat(LARGE)));
    let health = Health::start(FREE.parse().unwrap(), router).await.unwrap();
    let address = health.address();
    let scrapers: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(move || ask(address, "/metrics")))
        .collect();
    for scraper in scrapers {
        let answer = scraper.join().unwrap().unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.len() > LARGE,
            "{}",
            answer.len()
        );
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_said() {
    let taken = TcpListener::bind(FREE).unwrap();
    let address = taken.local_addr().unwrap();
    let started = Health::start(address, routes(Vec::new(), || Ok(String::new()))).await;
    assert!(matches!(started, Err(ListenError::Bind { .. })), "{started:?}");
}

#[tokio::test]
async fn the_port_is_free_after_the_stop() {
    let health = start(Vec::new()).await;
    let address = health.address();
    health.stop().await;
    TcpListener::bind(address).unwrap();
}

/// Reads one answer and leaves the connection open.
fn ask_on(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 4096];
    let asked = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    asked.is_ok()
        && stream
            .read(&mut answer)
            .is_ok_and(|size| answer[..size].starts_with(b"HTTP/1.1 200"))
}

#[tokio::test]
async fn kept_alive_silent_and_unread_connections_fail_no_probe() {
    let router = routes(Vec::new(), || Ok("x".repeat(1_000_000)));
    let health = Health::start(FREE.parse().unwrap(), router).await.unwrap();
    let connect = || {
        let stream = TcpStream::connect(health.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let probe = || {
        for path in ["/livez", "/readyz"] {
            assert_eq!(get(&health, path), (200, "ok\n".to_owned()));
        }
    };
    let mut kept = Vec::new();
    for _ in 0..300 {
        let mut stream = connect();
        assert!(ask_on(&mut stream));
        kept.push(stream);
    }
    probe();
    let mut silent: Vec<_> = (0..200).map(|_| connect()).collect();
    for stream in &mut silent {
        drop(stream.write_all(b"GET /livez"));
    }
    probe();
    let mut unread: Vec<_> = (0..300).map(|_| connect()).collect();
    for stream in &mut unread {
        drop(stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"));
    }
    // What has just been asked for is never taken away; a probe has a second.
    std::thread::sleep(Duration::from_millis(600));
    probe();
}

#[tokio::test]
async fn the_end_of_the_port_is_seen() {
    let health = start(Vec::new()).await;
    let mut ended = std::pin::pin!(health.ended());
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut ended)
            .await
            .is_err()
    );
    health.stop().await;
    ended.await;
}
