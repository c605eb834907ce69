//! A stop that loses no request and that no client holds up.

mod harness;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use harness::{Client, Running, eventually, get_request, send, text};
use popcell_https::{Drained, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn limits(grace: Duration) -> Limits {
    Limits {
        grace,
        drain: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// Long enough that a test does its part inside; tests that wait for the end pay it.
const GRACE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn in_the_grace_every_answer_closes_its_connection_and_new_ones_are_served() {
    let (running, authority, _volume) = Running::simple(limits(GRACE)).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut kept = client.http1().await;
    assert_eq!(text(send(&mut kept, get_request("/hello")).await).await, "hello");
    running.stop.cancel();

    // The signal takes a moment to arrive; until then an answer keeps its connection.
    eventually("an answer closes its connection", async || {
        let response = send(&mut kept, get_request("/hello")).await;
        let closes = response
            .headers()
            .get("connection")
            .is_some_and(|value| value == "close");
        assert_eq!(text(response).await, "hello");
        closes
    })
    .await;
    eventually("the client sees it closed", async || kept.is_closed()).await;

    let mut late = client.http1().await;
    let response = send(&mut late, get_request("/hello")).await;
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(running.task.await.unwrap(), Drained::Complete);
    assert!(client.dial("http/1.1").await.is_err(), "nothing listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn h2_gets_goaway_and_its_open_streams_are_answered() {
    let (running, authority, _volume) = Running::simple(limits(GRACE)).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let (mut sender, connection) = client.http2().await;
    let held = tokio::spawn(sender.send_request(get_request("/held")));
    eventually("the call is in flight", async || {
        running.status.in_flight.load(Relaxed) == 1
    })
    .await;
    running.stop.cancel();
    eventually("GOAWAY has come", async || {
        sender.send_request(get_request("/hello")).await.is_err() || sender.is_closed()
    })
    .await;
    // A client that comes new in the grace is served as well, and sent away after it.
    let (mut late, late_connection) = client.http2().await;
    assert_eq!(
        text(late.send_request(get_request("/hello")).await.unwrap()).await,
        "hello"
    );
    late_connection.await.unwrap().unwrap();

    running.gate.add_permits(1);
    assert_eq!(text(held.await.unwrap().unwrap()).await, "held");
    connection.await.unwrap().unwrap();
    assert_eq!(running.task.await.unwrap(), Drained::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_and_half_requests_do_not_hold_the_exit() {
    let (running, authority, _volume) = Running::simple(limits(Duration::from_millis(300))).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut idle = Vec::new();
    for _ in 0..25 {
        let mut sender = client.http1().await;
        assert_eq!(text(send(&mut sender, get_request("/hello")).await).await, "hello");
        idle.push(sender);
    }
    let idle_h2 = client.http2().await;
    let silent = client.dial("http/1.1").await.unwrap();
    let raw = tokio::net::TcpStream::connect(running.address).await.unwrap();
    let mut half_head = client.dial("http/1.1").await.unwrap();
    half_head.write_all(b"POST /length HTTP/1.1\r\nho").await.unwrap();
    let mut half_body = client.dial("http/1.1").await.unwrap();
    half_body
        .write_all(b"POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nhalf")
        .await
        .unwrap();
    eventually("all are there", async || running.status.open.load(Relaxed) == 30).await;
    eventually("the half body is waited for", async || {
        running.status.in_flight.load(Relaxed) == 1
    })
    .await;

    running.stop.cancel();
    // The drain time is 20 s and far from being used up: nothing was waited for.
    assert_eq!(running.task.await.unwrap(), Drained::Complete);
    let mut answer = String::new();
    drop(half_body.read_to_string(&mut answer).await);
    assert!(answer.starts_with("HTTP/1.1 503"), "a half body is told so: {answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(half_head.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert!(running.status.cut.load(Relaxed) >= 1);
    drop((idle, idle_h2, silent, raw));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_in_flight_are_all_answered() {
    let (running, authority, _volume) = Running::simple(limits(Duration::from_millis(100))).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut calls = Vec::new();
    for _ in 0..100 {
        let mut sender = client.http1().await;
        calls.push(tokio::spawn(async move {
            let response = send(&mut sender, get_request("/held")).await;
            assert_eq!(response.headers()["connection"], "close");
            text(response).await
        }));
    }
    eventually("all are in flight", async || {
        running.status.in_flight.load(Relaxed) == 100
    })
    .await;
    running.stop.cancel();
    // Past the grace, so that what is answered is answered in the drain time.
    eventually("the grace is over", async || client.dial("http/1.1").await.is_err()).await;
    running.gate.add_permits(100);
    for call in calls {
        assert_eq!(call.await.unwrap(), "held");
    }
    assert_eq!(running.task.await.unwrap(), Drained::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_end_is_cut_when_the_drain_time_is_over() {
    let short = Limits {
        grace: Duration::from_millis(50),
        drain: Duration::from_millis(200),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(short).await;
    let mut sender = Client::new(running.address, &[authority.pem()]).http1().await;
    let endless = tokio::spawn(async move { sender.send_request(get_request("/held")).await.is_err() });
    eventually("it is in flight", async || running.status.in_flight.load(Relaxed) == 1).await;
    running.stop.cancel();
    assert_eq!(running.task.await.unwrap(), Drained::Cut(1));
    assert!(endless.await.unwrap());
}
