//! Karmada's own client and a replica that stops while its connections are kept alive.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_suites::wire::{Callers, Row, outer_address, relay_to, text};
use popcell_test_support::{Webhook, WebhookSpec};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{interval, sleep};

use crate::environment::{Environment, TIMEOUT};
use crate::objects::{row, workload};

/// As many idle connections as Karmada's client keeps, and calls under way at once.
const CONNECTIONS: u32 = 25;
/// 100 calls a second.
const PACE: Duration = Duration::from_millis(10);
/// How long the news of an endpoint takes.
const NEWS: Duration = Duration::from_secs(1);

/// Over HTTP/1.1 and over HTTP/2.
pub(crate) async fn one_of_two(_: &Environment, _: &str) -> Result<()> {
    for from in [outer_address()?, Ipv4Addr::LOCALHOST] {
        let spec = WebhookSpec::with_modules(&["karmada-example"])?.san(&from.to_string());
        let leaving = Webhook::start(spec.clone()).await?;
        let mut staying = Webhook::start(spec).await?;
        drain(from, leaving, &staying)
            .await
            .with_context(|| format!("calls to {from}"))?;
        let status = staying.stop()?;
        ensure!(status.success(), "the one that stayed ended with {status}");
    }
    Ok(())
}

async fn drain(from: Ipv4Addr, mut leaving: Webhook, staying: &Webhook) -> Result<()> {
    // Each replica has an authority of its own, and the client trusts both.
    let dir = tempfile::tempdir().context("failed to make a directory")?;
    let bundle = dir.path().join("ca.crt");
    let authority = |webhook: &Webhook| std::fs::read_to_string(webhook.ca_file()).context("no authority");
    std::fs::write(&bundle, authority(&leaving)? + &authority(staying)?).context("failed to write the bundle")?;
    let (endpoint, seen) = watch::channel(leaving.endpoint());
    let port = relay_to(from, seen).await?;
    let row = Row {
        url: format!("https://{from}:{port}/interpret"),
        ca_file: text(&bundle),
        timeout_seconds: TIMEOUT,
        ..row("InterpretHealth", workload(2, 2))
    };

    let mut callers = Callers::start(CONNECTIONS)?;
    for _ in 0..CONNECTIONS {
        callers.send(&row)?;
    }
    let news = async {
        sleep(NEWS / 2).await;
        let stopping = tokio::task::spawn_blocking(move || (leaving.stop(), leaving));
        sleep(NEWS).await;
        endpoint.send_replace(staying.endpoint());
        let (status, leaving) = stopping.await.context("the stopping thread panicked")?;
        let status = status?;
        ensure!(status.success(), "it ended with {status}:\n{}", leaving.log());
        ensure!(
            leaving.log().contains("every call was answered"),
            "it left calls without an answer:\n{}",
            leaving.log()
        );
        sleep(NEWS / 2).await;
        anyhow::Ok(())
    };
    tokio::pin!(news);
    let mut pace = interval(PACE);
    loop {
        tokio::select! {
            done = &mut news => break done?,
            _ = pace.tick() => callers.send(&row)?,
        }
    }
    let answers = tokio::task::spawn_blocking(move || callers.finish());
    let answers = answers.await.context("the waiting thread panicked")??;
    for answer in &answers {
        ensure!(answer.value()?["healthy"] == json!(true), "{answer:?}");
    }
    ensure!(answers.len() > 100, "only {} calls were made", answers.len());
    // Whoever came to the one that stays did so on a new connection.
    let after = staying.metric("popcell_calls_total", &[]).await?;
    ensure!(after > 0.0, "nobody came to the one that stays");
    Ok(())
}
