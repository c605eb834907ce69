//! What goes wrong arrives at Karmada as one line that names the thing, the place and the cause.

use anyhow::{Result, ensure};
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
    let row = row("InterpretHealth", misbehaving("loop"));
    for answer in environment.both(&row).await? {
        let text = answer.refusal()?;
        ensure!(
            text.contains("misbehaving@0.1.0") && text.contains("deadline"),
            "{text}"
        );
    }
    let healthy = environment
        .call(&crate::objects::row("InterpretHealth", workload(2, 2)))
        .await?
        .value()?;
    ensure!(healthy["healthy"] == json!(true), "{healthy}");
    Ok(())
}
