//! Stopping by the real signals: nothing is lost, nothing holds the exit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::get_plain;
use crate::fixture::request;
use crate::process::{Environment, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_one_of_two_replicas_stops() {
    let environment = Environment::new(&["misbehaving"]);
    let mut leaving = environment.start(&["--call-timeout", "30s"]);
    let staying = environment.start(&["--call-timeout", "30s"]);
    let clients = [environment.client(&leaving), environment.client(&staying)];

    let mut idle = Vec::new();
    for _ in 0..25 {
        let mut connection = clients[0].http1().await;
        assert!(
            connection
                .post("", request("InterpretHealth", ""))
                .await
                .is_successful()
        );
        idle.push(connection);
    }
    let mut half = clients[0].dial("http/1.1").await.unwrap();
    half.write_all(b"POST /interpret HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        .await
        .unwrap();

    // Like an endpoint list: new connections go to the leaving replica until it is seen to be unready.
    let (unready, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (clients, unready, done) = (clients.clone(), Arc::clone(&unready), Arc::clone(&done));
            tokio::spawn(async move {
                let mut connection = clients[0].http1().await;
                let mut answered = 0;
                while !done.load(Ordering::Relaxed) {
                    if connection.is_closed() || !connection.is_ready().await {
                        connection = clients[usize::from(unready.load(Ordering::Relaxed))].http1().await;
                    }
                    let reply = connection.post("?timeout=30s", request("InterpretStatus", "")).await;
                    assert!(reply.is_successful(), "{reply:?}");
                    answered += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                answered
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    leaving.signal("TERM");
    eventually("it is not ready", async || {
        get_plain(leaving.health, "/readyz").await.0 == 503
    })
    .await;
    assert_eq!(get_plain(leaving.health, "/livez").await.0, 200);
    // Late, as the news of an endpoint is.
    tokio::time::sleep(Duration::from_secs(1)).await;
    unready.store(true, Ordering::Relaxed);
    // The connections that were idle are still good for one call each, and closed with it.
    for mut connection in idle.drain(..10) {
        assert!(
            connection
                .post("", request("InterpretHealth", ""))
                .await
                .is_successful()
        );
        assert!(!connection.is_ready().await);
    }
    let status = leaving.exit().await;
    assert_eq!(status.code(), Some(0), "{}", leaving.log());
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.unwrap() > 10);
    }
    let mut answer = String::new();
    drop(half.read_to_string(&mut answer).await);
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"),
        "{answer}"
    );
    assert!(leaving.log().contains("every call was answered"), "{}", leaving.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_stops_too_and_a_second_signal_at_once() {
    let environment = Environment::new(&["misbehaving"]);
    let mut webhook = environment.start(&[]);
    webhook.signal("INT");
    eventually("it is not ready", async || {
        get_plain(webhook.health, "/readyz").await.0 == 503
    })
    .await;
    webhook.signal("TERM");
    assert_eq!(webhook.exit().await.code(), Some(143));
    assert!(webhook.log().contains("stopping at once"), "{}", webhook.log());
}
