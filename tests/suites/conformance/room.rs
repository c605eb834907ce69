//! More calls than there is room for.

use anyhow::{Result, ensure};
use popcell_suites::wire::{Answer, WireClient};
use serde_json::json;

use crate::environment::Environment;
use crate::objects::{misbehaving, row, workload};

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
