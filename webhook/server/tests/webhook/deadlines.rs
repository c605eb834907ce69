//! Whose fault a timeout is, and deadlines that are on, off and absent.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Connection, HOST, Reply};
use crate::fixture::{LONG, request};
use crate::process::{Environment, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_upload_and_a_busy_slot_are_never_the_modules_fault() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--slots", "1", "--call-timeout", "2s"]);
    let client = environment.client(&webhook);
    for behaviour in ["", "loop"] {
        let holder = tokio::spawn({
            let client = client.clone();
            async move { client.post("?timeout=1s", request("InterpretHealth", "loop")).await }
        });
        let body = request("InterpretHealth", behaviour);
        let body = body.replacen(
            r#""metadata":{"#,
            &format!(r#""pad":"{}","metadata":{{"#, "x".repeat(3 << 20)),
            1,
        );
        let mut stream = client.dial("http/1.1").await.unwrap();
        let head = format!(
            "POST /interpret?timeout=2s HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let begun = Instant::now();
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in body.as_bytes().chunks(body.len().div_ceil(20)) {
            // On a busy machine the deadline ends the upload itself: the server does not read on then.
            if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer).await);
        let given_up = answer.is_empty() || answer.starts_with("HTTP/1.1 408");
        assert!(!given_up || begun.elapsed() >= UPLOAD, "{behaviour}: {answer}");
        let sent_away = answer.starts_with("HTTP/1.1 429") && answer.contains("retry-after: 1");
        let answered = answer.contains(r#""successful":true"#);
        assert!(
            given_up || sent_away || (answered && behaviour != "loop"),
            "{behaviour}: {answer}"
        );
        assert!(!answer.contains("longer than its deadline"), "{answer}");
        holder.await.unwrap();
    }
}

/// What `?timeout=2s` leaves for upload and call: less a tenth.
const UPLOAD: Duration = Duration::from_millis(1800);
/// Queries that ask for a deadline in each way, and for none.
const QUERIES: [&str; 5] = ["", "?timeout=1s", "?timeout=30s", "?timeout=0s", "?timeout=abc"];
/// The cap, given as `--call-timeout`.
const CAP: Duration = Duration::from_millis(1500);
/// How much earlier than its deadline a loop may end.
const TOLERANCE: Duration = Duration::from_millis(50);
/// How long the process is stopped.
const STOPPED: Duration = Duration::from_secs(5);
/// Runs about five milliseconds.
const SHORT: &str = "spin-5000000";

/// When a loop has to end.
fn end(query: &str) -> Duration {
    if query == "?timeout=1s" {
        Duration::from_millis(900)
    } else {
        CAP
    }
}

/// Asks again where a busy machine left a call too little time, as Karmada's client does. Answers how long the last took
/// as well.
async fn ask(client: &mut Connection, query: &str, behaviour: &str) -> (Reply, Duration) {
    for _ in 0..20 {
        let asked = Instant::now();
        let reply = client.post(query, request("InterpretHealth", behaviour)).await;
        if !reply.is_sent_away() {
            return (reply, asked.elapsed());
        }
    }
    panic!("{query}: {behaviour} is always sent away");
}

/// Neither earlier nor with another deadline than [`end`]. That it ends no later than 50 ms after it cannot be asked of a
/// machine that may be busy; the clock of the engine is held to it by a test of its own.
async fn a_loop_ends_when_it_should(client: &mut Connection, query: &str) {
    let (reply, took) = ask(client, query, "loop").await;
    let message = reply.refusal();
    assert!(took + TOLERANCE >= end(query), "{query}: ended after {took:?}");
    let text = message.split_once("its deadline of ").unwrap().1;
    let deadline = popcell_https::timeout::parse_duration(text.split_once(' ').unwrap().0).unwrap();
    // What is lost before the module runs is taken from its time; with less than nine tenths it is sent away.
    let least = end(query) / 10 * 9;
    assert!((least..=end(query)).contains(&deadline), "{query}: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_ends_and_a_short_call_passes_whatever_the_parameter() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "1500ms"]);
    let mut client = environment.client(&webhook).http1().await;
    for query in QUERIES {
        let (reply, _) = ask(&mut client, query, SHORT).await;
        assert!(reply.is_successful(), "{query}: {reply:?}");
        a_loop_ends_when_it_should(&mut client, query).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_hold_right_after_the_process_was_stopped() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "1500ms"]);
    let client = environment.client(&webhook);
    let mut connections = Vec::new();
    for query in QUERIES {
        let mut connection = client.http1().await;
        let (reply, _) = ask(&mut connection, query, "").await;
        assert!(reply.is_successful(), "{query}: {reply:?}");
        connections.push((query, connection));
    }
    webhook.signal("STOP");
    let short: Vec<_> = connections
        .into_iter()
        .map(|(query, mut connection)| {
            tokio::spawn(async move {
                let (reply, _) = ask(&mut connection, query, SHORT).await;
                assert!(reply.is_successful(), "{query}: {reply:?}");
            })
        })
        .collect();
    tokio::time::sleep(STOPPED).await;
    webhook.signal("CONT");
    for call in short {
        call.await.unwrap();
    }
    let mut connection = client.http1().await;
    for query in QUERIES {
        a_loop_ends_when_it_should(&mut connection, query).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_calls_pass_right_after_the_process_was_stopped() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "30s"]);
    let client = environment.client(&webhook);
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = client.http1().await;
        assert!(
            connection
                .post("", request("InterpretHealth", ""))
                .await
                .is_successful()
        );
        connections.push(connection);
    }
    // One call is in the module while the process stands still; the others arrive meanwhile.
    let during = tokio::spawn({
        let client = client.clone();
        async move { client.post("", request("InterpretHealth", LONG)).await }
    });
    webhook.signal("STOP");
    let calls: Vec<_> = connections
        .into_iter()
        .map(|mut connection| tokio::spawn(async move { connection.post("", request("InterpretHealth", "")).await }))
        .collect();
    tokio::time::sleep(STOPPED).await;
    webhook.signal("CONT");
    for call in calls {
        let reply = call.await.unwrap();
        assert!(reply.is_successful(), "{reply:?}");
    }
    let reply = during.await.unwrap();
    assert!(reply.is_successful(), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_its_client_gave_up_frees_its_slot() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--slots", "1", "--call-timeout", "30s"]);
    let client = environment.client(&webhook);
    let given_up = tokio::spawn({
        let client = client.clone();
        async move { client.post("", request("InterpretHealth", "loop")).await }
    });
    eventually("it runs", async || {
        webhook.metric("popcell_requests_in_flight").await > 0
    })
    .await;
    given_up.abort();
    eventually("the slot is free", async || {
        client
            .post("?timeout=2s", request("InterpretHealth", LONG))
            .await
            .is_successful()
    })
    .await;
}
