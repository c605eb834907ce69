//! Protocols: TLS 1.2 and 1.3, http/1.1 and h2, keep-alive; who may speak HTTP/2, and what its heads take from others.

mod harness;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use harness::http2::{Frames, field, post};
use harness::{Client, Running, eventually, get_request, post_request, send, text};
use hyper_util::rt::TokioIo;
use popcell_https::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const STREAMS: u32 = 32;

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_wait_for_their_bodies_keep_no_other_body_out() {
    // 100 KiB for small bodies, and two for one at least of each other size.
    let bodies = 400 * 1024 + 8 * 1024 + 64 * 1024 + 1024 * 1024 + 100_000;
    let limits = Limits {
        body: 100_000,
        http2_connections: 16,
        bodies,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let head = [post("/length"), field("content-type", "application/json")].concat();
    let mut silent = Vec::new();
    for _ in 0..16 {
        let mut frames = Frames::open(&client).await;
        for stream in 0..STREAMS {
            frames.begin(2 * stream + 1, &head).await;
        }
        frames.flush().await;
        silent.push(frames);
    }
    eventually("all heads are there", async || {
        running.status.in_flight.load(Relaxed) == 16 * STREAMS as usize
    })
    .await;
    for size in [100, 10_000, 90_000] {
        let response = send(&mut client.http1().await, post_request("/length", vec![b'x'; size])).await;
        assert_eq!(text(response).await, size.to_string());
    }
    assert_eq!(running.status.no_room.load(Relaxed), 0);
}

#[tokio::test]
async fn few_connections_speak_http2_and_one_more_is_served_over_http1() {
    let limits = Limits {
        http2_connections: 2,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let first = [client.http2().await, client.http2().await];
    let agreed = async || {
        let stream = client.dial("h2,http/1.1").await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        (agreed.unwrap(), stream)
    };
    let (protocol, stream) = agreed().await;
    assert_eq!(protocol, b"http/1.1");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    assert_eq!(text(send(&mut sender, get_request("/hello")).await).await, "hello");
    assert!(client.dial("h2").await.is_err(), "there is nothing else that it speaks");
    // Those that do not ask for HTTP/2 take no place.
    let _http1 = client.http1().await;
    drop(first);
    eventually("a place is free", async || agreed().await.0 == b"h2").await;
}

#[tokio::test]
async fn a_head_over_http2_may_have_8_kib() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    let (mut sender, _) = Client::new(running.address, &[authority.pem()]).http2().await;
    for (size, expected) in [(7_000, 200), (9_000, 431)] {
        let mut request = get_request("/hello");
        request.headers_mut().insert("x", "x".repeat(size).try_into().unwrap());
        // Refused for its size before a request of it is made.
        let answered = tokio::time::timeout(Duration::from_secs(10), sender.send_request(request)).await;
        assert_eq!(answered.unwrap().unwrap().status(), expected, "{size}");
    }
}

#[tokio::test]
async fn tls_1_2_and_1_3_each_with_both_http_versions() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = Client::new(running.address, &[authority.pem()]).only(version);
        let stream = client.dial("h2").await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));

        let response = client
            .http1()
            .await
            .send_request(post_request("/length", vec![b'x'; 5000]))
            .await
            .unwrap();
        assert_eq!(text(response).await, "5000");
        let response = client
            .http2()
            .await
            .0
            .send_request(post_request("/length", vec![b'x'; 500_000]))
            .await
            .unwrap();
        assert_eq!(text(response).await, "500000");
    }
}

#[tokio::test]
async fn a_client_without_alpn_speaks_http1() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    let mut stream = Client::new(running.address, &[authority.pem()]).dial("").await.unwrap();
    stream
        .write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"),
        "{answer}"
    );
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    let mut sender = Client::new(running.address, &[authority.pem()]).http1().await;
    for _ in 0..50 {
        let response = send(&mut sender, get_request("/hello")).await;
        assert!(!response.headers().contains_key("connection"));
        assert_eq!(text(response).await, "hello");
    }
    assert_eq!(running.status.accepted.load(std::sync::atomic::Ordering::Relaxed), 1);
}
