//! What goes wrong arrives at Karmada as one line that names the thing, the place and the cause.

use anyhow::{Result, ensure};
use popcell_suites::environment::SOON;
use popcell_suites::wire::{Answer, WireClient};
use popcell_test_support::eventually;
use serde_json::json;

use crate::environment::Environment;
use crate::objects::{OPERATIONS, misbehaving, row, workload};

/// The text after Karmada's own words names module, operation and what the module says.
pub(crate) async fn refusals(environment: &Environment, _: &str) -> Result<()> {
    let invalid = ["Misbehaving ns/a", "/spec/replicas: expected an integer"];
    for operation in OPERATIONS {
        for (behaviour, words) in [
            ("invalid", &invalid[..]),
            ("undecided", &["the image cannot be pulled"]),
            ("failed-at-length", &[]),
        ] {
            for answer in environment.both(&row(operation, misbehaving(behaviour))).await? {
                let text = answer.refusal()?;
                let karmadas = "webhook call failed, get status code: ";
                for part in [karmadas, "misbehaving@0.1.0", operation].iter().chain(words) {
                    ensure!(text.contains(part), "{behaviour}: {part:?} is not in {text:?}");
                }
                ensure!(!text.contains('\n'), "{behaviour}: more than one line: {text:?}");
            }
        }
    }
    Ok(())
}

/// Karmada would say "context deadline exceeded" if our answer came after its own timeout.
pub(crate) async fn loops(environment: &Environment, _: &str) -> Result<()> {
    // On a machine that has too much to do an answer may come too late; one without a deadline never comes.
    let looping = row("InterpretHealth", misbehaving("loop"));
    eventually("a loop is ended", SOON, async || {
        for answer in environment.both(&looping).await? {
            let text = answer.refusal()?;
            ensure!(
                text.contains("misbehaving@0.1.0") && text.contains("deadline"),
                "{text}"
            );
        }
        Ok(())
    })
    .await?;
    let healthy = environment
        .call(&row("InterpretHealth", workload(2, 2)))
        .await?
        .value()?;
    ensure!(healthy["healthy"] == json!(true), "{healthy}");
    Ok(())
}

const CALLERS: u32 = 8;

/// Looping calls fill the slow slots; Karmada's client repeats what is turned away with 429, and other kinds are served.
pub(crate) async fn overload(environment: &Environment, _: &str) -> Result<()> {
    let looping = environment.addressed_h1(&row("InterpretHealth", misbehaving("loop")));
    let before = asked(environment, &[]).await?;
    let turned_away_before = asked(environment, &["outcome=\"overloaded\""]).await?;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let looping = looping.clone();
        callers.push(std::thread::spawn(move || WireClient::start()?.call(&looping)));
    }
    for _ in 0..20 {
        let healthy = environment
            .call(&row("InterpretHealth", workload(2, 2)))
            .await?
            .value()?;
        ensure!(healthy["healthy"] == json!(true), "{healthy}");
        let (code, _) = environment.webhook.health("/readyz").await?;
        ensure!(code == 200, "/readyz answers {code} under load");
    }
    for caller in callers {
        let answer: Answer = caller.join().map_err(|_| anyhow::anyhow!("a caller panicked"))??;
        let text = answer.refusal()?;
        ensure!(!text.contains("alloc") && !text.contains("pool"), "{text}");
    }
    let turned_away = asked(environment, &["outcome=\"overloaded\""]).await? - turned_away_before;
    let requests = asked(environment, &[]).await? - before;
    ensure!(turned_away > 0.0, "nothing was turned away");
    ensure!(
        requests > f64::from(CALLERS),
        "{requests} requests of {CALLERS} callers: the client did not repeat what was turned away"
    );
    Ok(())
}

/// Calls of the looping operation so far.
async fn asked(environment: &Environment, labels: &[&str]) -> Result<f64> {
    let mut all = vec![
        r#"kind="tests.popcell.dev/v1 Misbehaving""#,
        r#"operation="InterpretHealth""#,
    ];
    all.extend(labels);
    environment.webhook.metric("popcell_calls_total", &all).await
}
