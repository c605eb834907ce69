//! A jump of the host's clock. Debian's libfaketime moves the wall clock of one process while it runs; the monotonic
//! one, by which deadlines have to count, stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fixture::request;
use crate::process::{Environment, Webhook, eventually};

const LIMIT: Duration = Duration::from_secs(2);
/// Far beyond what a call may take on a busy machine, and far below the jump.
const NEVER: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_the_hosts_clock_neither_ends_nor_prolongs_a_call() {
    let Some(library) = libfaketime() else {
        eprintln!("SKIPPED: libfaketime is not installed (apt-get install faketime)");
        return;
    };
    let environment = Environment::new(&["misbehaving"]);
    let offset = environment.path().join("offset");
    set(&offset, "+0");
    let mut command = environment.command();
    command
        .args(["--call-timeout", "2s"])
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &offset)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let webhook = Webhook::start(command);
    let mut client = environment.client(&webhook).http1().await;
    // The lines of refused calls show which hour the process believes in.
    assert!(
        !client
            .post("", request("InterpretHealth", "loop"))
            .await
            .is_successful()
    );
    let mut refused = 1;
    let mut hour = hour_of_refusal(&webhook, refused).await;
    for jump in ["+3600", "-3600"] {
        let asked = Instant::now();
        let looping = tokio::spawn(async move {
            let reply = client.post("", request("InterpretHealth", "loop")).await;
            (client, reply)
        });
        eventually("the call runs", async || {
            webhook.metric("popcell_requests_in_flight").await > 0
        })
        .await;
        set(&offset, jump);
        let (kept, reply) = tokio::time::timeout(NEVER, looping).await.expect("it ends").unwrap();
        client = kept;
        assert!(reply.refusal().contains("its deadline of 2s"), "{reply:?}");
        assert!(asked.elapsed() >= LIMIT, "ended after {:?}", asked.elapsed());
        refused += 1;
        let jumped = hour_of_refusal(&webhook, refused).await;
        assert_ne!(jumped, hour, "the clock of the process did not jump");
        hour = jumped;
        let reply = client.post("", request("InterpretHealth", "")).await;
        assert!(reply.is_successful(), "{reply:?}");
    }
}

/// Where Debian puts the library for programs with threads.
fn libfaketime() -> Option<PathBuf> {
    fs::read_dir("/usr/lib")
        .ok()?
        .filter_map(Result::ok)
        .map(|machine| machine.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists())
}

/// Replaces the file, so that the process never reads half of it.
fn set(offset: &Path, seconds: &str) {
    let new = offset.with_extension("new");
    fs::write(&new, seconds).unwrap();
    fs::rename(new, offset).unwrap();
}

/// Date and hour of the `number`th call that was refused, counted from 1; others are not in the log. The line may be
/// written after the answer was read.
async fn hour_of_refusal(webhook: &Webhook, number: usize) -> String {
    let mut hour = None;
    eventually("the refusal is in the log", async || {
        let log = webhook.log();
        let line = log
            .lines()
            .filter(|line| line.contains("InterpretHealth"))
            .nth(number - 1);
        hour = line.map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["timestamp"].as_str().unwrap()[.."2026-11-28T06".len()].to_owned()
        });
        hour.is_some()
    })
    .await;
    hour.unwrap()
}
