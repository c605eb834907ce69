//! What connections over HTTP/2 take of the process, which this test has for itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot abuse the server ends")]

mod harness;

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use harness::http2::{Frames, field, get_kept, post};
use harness::{A_MILLION_EACH, Client, Running, eventually, hold_all};
use popcell_https::{Limits, PER_HTTP2};

const CONNECTIONS: usize = 16;
const STREAMS: u32 = 32;

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_over_http2_takes_no_more_than_is_counted_for_it() {
    let limits = Limits {
        body: 1_000_000,
        http2_connections: CONNECTIONS,
        bodies: A_MILLION_EACH,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let kept = hold_all(&running, &client).await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Frames::open(&client).await);
    }
    each(&mut connections, async |_| ()).await;
    let before = resident();
    each(&mut connections, fills_the_table).await;
    each(&mut connections, begins_large_heads).await;
    let calls = CONNECTIONS * STREAMS as usize + kept.len();
    eventually("all heads are there", async || {
        running.status.in_flight.load(Relaxed) == calls
    })
    .await;
    each(&mut connections, sends_small_pieces).await;
    let of_one = resident().saturating_sub(before) / CONNECTIONS;
    assert_eq!(running.status.in_flight.load(Relaxed), calls, "the abuse was none");
    assert!(of_one <= PER_HTTP2, "{of_one} of {PER_HTTP2}");
    assert!(of_one > PER_HTTP2 / 2, "{of_one} of {PER_HTTP2}: less would do");
}

/// Has all of them abuse the server, and gives it time for what they sent.
async fn each(connections: &mut [Frames], abuse: impl AsyncFn(&mut Frames)) {
    for connection in connections {
        abuse(connection).await;
        connection.flush().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Each path in the table keeps a buffer that was filled with something else.
async fn fills_the_table(connection: &mut Frames) {
    for number in 0..110 {
        let mut head = get_kept(&format!("/{number:03}"));
        head.extend(field("z", &"x".repeat(16_000)));
        connection.ask(2 * number + 1, &head).await;
    }
}

async fn begins_large_heads(connection: &mut Frames) {
    let names = (b'a'..=b'z').flat_map(|first| (b'a'..=b'z').map(move |second| [first, second]));
    let fields: Vec<u8> = names
        .take(230)
        .flat_map(|name| field(str::from_utf8(&name).unwrap(), ""))
        .collect();
    for stream in streams() {
        connection.fill(8000).await;
        connection
            .begin(stream, &[post("/length"), fields.clone()].concat())
            .await;
    }
}

/// Each keeps a buffer, too.
async fn sends_small_pieces(connection: &mut Frames) {
    // With the first piece of each the server begins to wait for memory.
    for stream in streams() {
        connection.send(stream, b"x").await;
    }
    connection.flush().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let small = [&b"x"[..]; 90];
    let larger = [&[b'x'; 256][..]; 250];
    for (piece, stream) in small.iter().chain(&larger).zip(streams().cycle()) {
        connection.fill(8000).await;
        connection.send(stream, piece).await;
    }
}

fn streams() -> impl Iterator<Item = u32> + Clone {
    (0..STREAMS).map(|number| 2 * number + 301)
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
}
