//! Limits of the pool, and calls that loop beside others.

use std::process::Command;

use crate::client::get_plain;
use crate::fixture::{LONG, object, request, request_about};
use crate::process::{Environment, Webhook, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_answered_or_turned_away_and_no_answer_names_the_allocator() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--slots", "2"]);
    let client = environment.client(&webhook);
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.post("?timeout=2s", request("InterpretHealth", LONG)).await })
        })
        .collect();
    let mut answered = 0;
    for call in calls {
        let reply = call.await.unwrap();
        assert!(reply.is_successful() || reply.is_sent_away(), "{reply:?}");
        answered += usize::from(reply.is_successful());
    }
    assert!(answered > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_little_address_space_it_works_within_its_limits_and_reports_the_allocator() {
    let environment = Environment::new(&["misbehaving"]);
    let inner = environment.command();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 2097152; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let webhook = Webhook::start(command);
    let mut connection = environment.client(&webhook).http1().await;
    for _ in 0..100 {
        let reply = connection.post("", request("InterpretHealth", "")).await;
        assert!(reply.is_successful(), "{reply:?}");
    }
    let reply = connection.post("", request("InterpretHealth", "allocate")).await;
    assert!(reply.refusal().contains("wanted more memory than 64 MiB"), "{reply:?}");
    let text = webhook.metrics().await;
    assert!(
        text.contains(r#"popcell_engine_allocator_info{allocator="pooling-compact"} 1"#),
        "{text}"
    );
    assert!(
        webhook.log().contains(r#""allocator":"pooling-compact""#),
        "{}",
        webhook.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_leave_probes_and_other_kinds_alone() {
    let environment = Environment::new(&["misbehaving", "other"]);
    let webhook = environment.start(&["--call-timeout", "10s"]);
    let client = environment.client(&webhook);
    let cores = std::thread::available_parallelism().unwrap().get();
    let loops: Vec<_> = (0..4 * cores)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.post("?timeout=30s", request("InterpretHealth", "loop")).await })
        })
        .collect();
    eventually("they loop", async || {
        webhook.metric("popcell_requests_in_flight").await >= cores as u64
    })
    .await;
    for _ in 0..20 {
        assert_eq!(get_plain(webhook.health, "/readyz").await.0, 200);
        let reply = client
            .post(
                "?timeout=10s",
                request_about("InterpretHealth", "Other", &object("Other", "")),
            )
            .await;
        assert!(reply.is_successful(), "{reply:?}");
    }
    loops.iter().for_each(tokio::task::JoinHandle::abort);
}
