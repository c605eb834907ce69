//! TLS 1.2 and 1.3, http/1.1 and h2, and keep-alive.

mod harness;

use harness::{Client, Running, get_request, post_request, send, text};
use popcell_https::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
