//! Clients that take all they can get, from many addresses, and correct callers beside them from one of those.
//!
//! A busy machine makes everything slow, so nothing is judged by the clock: an abuse goes on until it has been reached
//! so often that its bytes are more than the listener keeps, and until each correct caller has called beside it. A
//! correct call is answered after as few repetitions as Karmada's client makes, and the memory is the most that the
//! process ever had.
//!
//! With `POPCELL_ABUSE=full` in the environment each goes on for a minute and in full number, in a control group with
//! the memory of a pod, which the machine has to let us make: only there is what the kernel has of sockets counted, and
//! only there callers and probes wait no longer than Karmada and kubelet do. `POPCELL_WEBHOOK_PROGRAM` names an
//! optimised build of the program.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::Request;
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::client::{Client, DIALLING, HOST, Kept, get_plain};
use crate::confined::{Confined, MEMORY};
use crate::fixture::{UID, object, request, request_about};
use crate::process::Environment;

/// kubelet does something when so many probes in a row have failed.
const PROBES: usize = 3;
/// So often a call is sent away at most before it is answered.
const REPETITIONS: usize = 10;
/// So often each correct caller goes round at least, beside the abuse.
const ROUNDS: usize = 4;
/// Only something that hangs takes longer, on any machine.
const HANGS: Duration = Duration::from_mins(5);
/// After an end that was not the abuser's will.
const AGAIN: Duration = Duration::from_millis(100);

/// So large is a test, and so long.
#[derive(Clone, Copy)]
struct Scale {
    full: bool,
    part: usize,
    time: Duration,
    /// The correct callers wait so long for each answer, with everything that belongs to the call.
    patience: Duration,
    /// A probe waits so long.
    probe: Duration,
}

impl Scale {
    fn now() -> Self {
        if std::env::var("POPCELL_ABUSE").is_ok_and(|scale| scale == "full") {
            return Self {
                full: true,
                part: 1,
                time: Duration::from_mins(1),
                // As Karmada's client, and as kubelet.
                patience: Duration::from_secs(10),
                probe: Duration::from_secs(1),
            };
        }
        Self {
            full: false,
            part: 4,
            time: Duration::from_secs(1),
            patience: HANGS,
            probe: HANGS,
        }
    }
}

/// What a correct caller has seen.
#[derive(Default)]
struct Seen {
    calls: usize,
    slowest: Duration,
    /// Sent away with 429 and `Retry-After`, which Karmada's client repeats, or not let in ([`correctly`]).
    repeated: usize,
    /// Connections that had to be opened.
    dialled: usize,
    /// Calls that Karmada's client would have given up.
    failed: Vec<String>,
}

/// Starts `number` abusers, calls correctly each second meanwhile, small and large, and looks at the memory once the
/// abuse was reached `enough` times, and the callers have called beside it.
async fn withstands<F>(name: &str, number: usize, enough: usize, abuse: impl Fn(Client, Arc<AtomicUsize>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let scale = Scale::now();
    let environment = Environment::new(&["misbehaving"]);
    let webhook = Confined::start(&environment, scale.full);
    let client = environment.client(&webhook.webhook);
    let (reached, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    // One keeps its connection, the other opens one for each call.
    let health = webhook.webhook.health;
    let callers = [true, false].map(|keeps| {
        let (client, over) = (client.clone(), Arc::clone(&over));
        thread::spawn(move || calling(&client, health, keeps, scale, &over))
    });
    let mut abusers = JoinSet::new();
    for index in 0..(number / scale.part).max(8) {
        let from = [127, 0, 0, 1 + u8::try_from(index % 8).unwrap()];
        abusers.spawn(abuse(client.clone().calling_from(from.into()), Arc::clone(&reached)));
    }
    let end = Instant::now() + HANGS;
    while reached.load(Ordering::Relaxed) < enough {
        assert!(
            Instant::now() < end,
            "{name}: reached {} times only",
            reached.load(Ordering::Relaxed)
        );
        sleep(AGAIN).await;
    }
    sleep(scale.time).await;
    over.store(true, Ordering::Relaxed);
    while !callers.iter().all(thread::JoinHandle::is_finished) {
        sleep(AGAIN).await;
    }
    let mut failed = Vec::new();
    for (caller, how) in callers.into_iter().zip(["kept", "new"]) {
        let seen = caller.join().unwrap();
        println!(
            "{name}: {} correct calls on {how} connections, {} dialled, {} repeated, slowest {:.0?}",
            seen.calls, seen.dialled, seen.repeated, seen.slowest
        );
        failed.extend(seen.failed.into_iter().map(|failed| format!("{how}: {failed}")));
    }
    abusers.shutdown().await;
    let metrics = webhook.webhook.metrics().await;
    let peak = webhook.peak();
    let figures = metrics.lines().filter(|line| {
        let names = [
            "popcell_connections",
            "popcell_request_memory",
            "popcell_requests_rejected",
        ];
        names.iter().any(|name| line.starts_with(name))
    });
    println!("{name}: peak {peak}; {} reached", reached.load(Ordering::Relaxed));
    println!("{}", figures.collect::<Vec<_>>().join("\n"));
    assert!(peak.bytes() < MEMORY, "{name}: {peak}");
    assert!(failed.is_empty(), "{name}: {failed:#?}");
}

/// A correct caller on a thread of its own: the abusers are others' processes. Probes come from there, too. It goes on
/// until all is over, and then round some times more.
fn calling(client: &Client, health: SocketAddr, keeps: bool, scale: Scale, over: &AtomicBool) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut seen = Seen::default();
        let mut kept = Kept::new(client.clone());
        let padding = "x".repeat(200_000);
        let (mut unanswered, mut rounds) = (0, 0);
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while rounds < ROUNDS {
            rounds += usize::from(over.load(Ordering::Relaxed));
            seconds.tick().await;
            let probed = timeout(scale.probe, get_plain(health, "/readyz")).await;
            unanswered = if probed.is_ok() { 0 } else { unanswered + 1 };
            if unanswered == PROBES {
                let limit = scale.probe;
                seen.failed
                    .push(format!("no answer to {PROBES} probes, each within {limit:?}"));
            }
            for size in [0, padding.len()] {
                let mut object = object("Misbehaving", "");
                object["spec"] = json!(padding[..size]);
                let body = request_about("InterpretHealth", "Misbehaving", &object);
                if !keeps {
                    kept.close();
                }
                let asked = Instant::now();
                let call = correctly(&mut kept, body.into(), !scale.full, &mut seen.repeated);
                let call = timeout(scale.patience, call).await;
                let outcome = call.unwrap_or_else(|_| Err(format!("no answer within {:?}", scale.patience)));
                if let Err(why) = outcome {
                    let call = seen.calls;
                    seen.failed.push(format!(
                        "call {call} of {size} bytes after {:.0?}: {why}",
                        asked.elapsed()
                    ));
                    kept.close();
                }
                seen.slowest = seen.slowest.max(asked.elapsed());
                seen.calls += 1;
            }
        }
        seen.dialled = kept.dialled();
        seen
    })
}

/// A call as Karmada's client makes it: sent away with `Retry-After`, it comes back. One that has not been let in may come
/// back too where it `dials_again`: on a machine whose cores are taken, its handshake is among those that take longest.
async fn correctly(kept: &mut Kept, body: Bytes, dials_again: bool, repeated: &mut usize) -> Result<(), String> {
    for _ in 0..=REPETITIONS {
        let reply = match kept.post("?timeout=10s", body.clone()).await {
            Err(why) if dials_again && why.starts_with(DIALLING) => {
                *repeated += 1;
                continue;
            }
            reply => reply?,
        };
        if reply.is_successful() {
            return Ok(());
        }
        if !reply.is_sent_away() {
            return Err(format!("{reply:?}"));
        }
        *repeated += 1;
        sleep(Duration::from_secs(1)).await;
    }
    Err(format!("sent away more than {REPETITIONS} times"))
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_callers_are_served_beside_unfinished_heads() {
    withstands(
        "2,000 unfinished heads of 400 KB",
        2000,
        500,
        |client, reached| async move {
            let head = [b"GET /interpret HTTP/1.1\r\nhost: x\r\nx: ".as_slice(), &[b'x'; 16_000]].concat();
            loop {
                if let Ok(mut stream) = client.dial("http/1.1").await {
                    let mut sent = 0;
                    while sent < 400_000 && stream.write_all(&head[..]).await.is_ok() {
                        sent += head.len();
                        reached.fetch_add(1, Ordering::Relaxed);
                    }
                    drop(stream.read(&mut [0; 1024]).await);
                }
                sleep(AGAIN).await;
            }
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_callers_are_served_beside_many_bodies_on_few_http2_connections() {
    let abuse = |client: Client, reached: Arc<AtomicUsize>| async move {
        loop {
            let Ok(stream) = client.dial("h2").await else {
                sleep(AGAIN).await;
                continue;
            };
            let io = TokioIo::new(stream);
            let Ok((mut sender, connection)) = http2::handshake(TokioExecutor::new(), io).await else {
                continue;
            };
            let mut streams = JoinSet::new();
            for _ in 0..200 {
                let piece = Frame::data(Bytes::from(vec![b'x'; 60_000]));
                let pieces = futures::stream::iter([Ok::<_, std::io::Error>(piece)]);
                let endless = futures::StreamExt::chain(pieces, futures::stream::pending());
                let body = StreamBody::new(endless);
                let request = Request::post(format!("https://{HOST}/interpret")).body(body).unwrap();
                if sender.ready().await.is_err() {
                    break;
                }
                reached.fetch_add(1, Ordering::Relaxed);
                streams.spawn(sender.send_request(request));
            }
            drop(connection.await);
            sleep(AGAIN).await;
        }
    };
    withstands("25 HTTP/2 connections with 200 bodies of 60 KB", 25 * 4, 256, abuse).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_over_http2_whose_bodies_do_not_come() {
    let abuse = |client: Client, reached: Arc<AtomicUsize>| async move {
        loop {
            if let Ok(stream) = client.dial("h2").await
                && let Ok((mut sender, connection)) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await
            {
                let mut streams = JoinSet::new();
                let connection = tokio::spawn(connection);
                while streams.len() < 32 && sender.ready().await.is_ok() {
                    let never = futures::stream::pending::<std::io::Result<Frame<Bytes>>>();
                    let request = Request::post(format!("https://{HOST}/interpret")).header("x", "x".repeat(7000));
                    streams.spawn(sender.send_request(request.body(StreamBody::new(never)).unwrap()));
                    reached.fetch_add(1, Ordering::Relaxed);
                }
                streams.join_all().await;
                connection.abort();
            }
            sleep(AGAIN).await;
        }
    };
    withstands("105 HTTP/2 connections with 32 heads without bodies", 105, 256, abuse).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_callers_are_served_beside_unread_answers() {
    unread("200 unread answers of 2.9 MB", 200, 2_100_000, 16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_that_the_kernel_might_keep() {
    unread("1,024 unread answers of 200 KB", 1024, 145_000, 128).await;
}

/// Of an answer that repeats a name of this length only the first piece is taken; so many of them are more than the listener
/// keeps of that size.
async fn unread(name: &str, number: usize, length: usize, enough: usize) {
    let cluster = "x".repeat(length);
    let body = format!(
        r#"{{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{{"uid":"{UID}","kind":{{"group":"tests.popcell.dev","version":"v1","kind":"Misbehaving"}},"name":"a","namespace":"ns","operation":"AggregateStatus","object":{},"aggregatedStatus":[{{"clusterName":"{cluster}","status":{{}}}}]}}}}"#,
        object("Misbehaving", "")
    );
    let head = format!(
        "POST /interpret?timeout=10s HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request: Bytes = (head + &body).into();
    withstands(name, number, enough, move |client, reached| {
        let (client, request) = (client.taking_little(), request.clone());
        async move {
            loop {
                if let Ok(mut stream) = client.dial("http/1.1").await {
                    let mut first = [0; 12];
                    let asked = async {
                        stream.write_all(&request).await?;
                        stream.flush().await?;
                        stream.read_exact(&mut first).await
                    };
                    if asked.await.is_ok() && first == *b"HTTP/1.1 200" {
                        reached.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_secs(40)).await;
                    }
                }
                sleep(AGAIN).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_callers_are_served_beside_idle_chunked_uploads() {
    withstands("idle chunked uploads", 32, 8, |client, reached| async move {
        loop {
            if let Ok(mut stream) = client.dial("http/1.1").await {
                let head = format!("POST /interpret HTTP/1.1\r\nhost: {HOST}\r\ntransfer-encoding: chunked\r\n\r\n");
                let chunk = format!("186a0\r\n{}\r\n", "x".repeat(100_000));
                if stream.write_all(head.as_bytes()).await.is_ok() && stream.write_all(chunk.as_bytes()).await.is_ok() {
                    reached.fetch_add(1, Ordering::Relaxed);
                }
                drop(stream.read(&mut [0; 1024]).await);
            }
            sleep(AGAIN).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_callers_are_served_beside_idle_http2_connections() {
    withstands("2,048 idle HTTP/2 connections", 2048, 8, |client, reached| async move {
        loop {
            if let Ok(stream) = client.dial("h2").await
                && let Ok((mut sender, connection)) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await
            {
                let connection = tokio::spawn(connection);
                let body = Full::new(Bytes::from(request("InterpretHealth", "")));
                let request = Request::post(format!("https://{HOST}/interpret")).body(body).unwrap();
                if sender.send_request(request).await.is_ok() {
                    reached.fetch_add(1, Ordering::Relaxed);
                }
                drop(connection.await);
            }
            sleep(AGAIN).await;
        }
    })
    .await;
}

/// A port that is free now.
pub(crate) fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}
