//! What goes wrong arrives at Karmada as one line that names the thing, the place and the cause.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::environment::Environment;
use crate::objects::{OPERATIONS, misbehaving, row, workload};

/// The text after Karmada's own words has to have all of `parts`.
async fn refused(environment: &Environment, operation: &str, behaviour: &str, parts: &[&str]) -> Result<()> {
    for answer in environment.both(&row(operation, misbehaving(behaviour))).await? {
        let text = answer.refusal()?;
        ensure!(
            text.contains("webhook call failed, get status code: "),
            "{behaviour}: {text}"
        );
        for part in ["misbehaving@0.1.0", operation].iter().chain(parts) {
            ensure!(text.contains(part), "{behaviour}: {part:?} is not in {text:?}");
        }
        ensure!(!text.contains('\n'), "{behaviour}: more than one line: {text:?}");
    }
    Ok(())
}

pub(crate) async fn refusals(environment: &Environment, _: &str) -> Result<()> {
    for operation in OPERATIONS {
        refused(
            environment,
            operation,
            "invalid",
            &["Misbehaving ns/a", "/spec/replicas: expected an integer"],
        )
        .await?;
        refused(environment, operation, "undecided", &["the image cannot be pulled"]).await?;
        refused(environment, operation, "failed-at-length", &[]).await?;
    }
    Ok(())
}

/// Each of these would make Karmada fail to decode, loop forever or write where it must not.
pub(crate) async fn lies(environment: &Environment, _: &str) -> Result<()> {
    let lies = [
        ("InterpretStatus", "lie-scalar", "object"),
        ("InterpretStatus", "lie-json", ""),
        ("InterpretStatus", "lie-utf8", ""),
        ("InterpretStatus", "lie-huge", ""),
        ("InterpretReplica", "lie-negative", "-1"),
        ("InterpretReplica", "lie-large", "2147483648"),
        ("InterpretReplica", "lie-quantity", "lots"),
        ("InterpretComponent", "lie-twice", "a"),
        ("ReviseReplica", "lie-parent", "/spec/none"),
        ("ReviseReplica", "lie-status", "/status/replicas"),
        ("Retain", "lie-karmada", "work.karmada.io"),
        ("Retain", "lie-name", "/metadata/name"),
        ("Retain", "lie-json", ""),
        ("AggregateStatus", "lie-spec", "/spec"),
        ("InterpretDependency", "lie-nameless", ""),
    ];
    for (operation, lie, part) in lies {
        refused(environment, operation, lie, &[part]).await?;
    }
    // And the module goes on being served.
    let row = row("InterpretHealth", misbehaving(""));
    ensure!(environment.call(&row).await?.value()?["healthy"] == json!(true));
    Ok(())
}

pub(crate) async fn unknown_kind(environment: &Environment, _: &str) -> Result<()> {
    let object = json!({ "apiVersion": "nobody.example/v1", "kind": "Nothing", "metadata": { "name": "a" } });
    for answer in environment.both(&row("InterpretHealth", object)).await? {
        let text = answer.refusal()?;
        ensure!(text.contains("InterpretHealth") && text.contains("Nothing"), "{text}");
    }
    Ok(())
}

pub(crate) async fn causes(environment: &Environment, _: &str) -> Result<()> {
    let causes = [
        ("loop", "deadline"),
        ("trap", "trap"),
        ("allocate", "memory"),
        ("recurse", "stack"),
        ("failed", "no such size"),
    ];
    for (behaviour, word) in causes {
        refused(environment, "InterpretHealth", behaviour, &[word]).await?;
    }
    let mut labels = Vec::new();
    for outcome in ["deadline", "trapped", "memory", "stack", "failed"] {
        let count = environment
            .webhook
            .metric("popcell_calls_total", &[&format!("outcome=\"{outcome}\"")])
            .await?;
        labels.push((outcome, count));
    }
    ensure!(
        labels.iter().all(|(_, count)| *count > 0.0),
        "outcomes are {labels:?}\n{}",
        environment.webhook.metrics().await?
    );
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
