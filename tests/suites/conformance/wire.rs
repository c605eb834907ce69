//! What the wire format asks of an answer.

use anyhow::{Result, ensure};
use popcell_suites::wire::Row;
use serde_json::{Value, json};

use crate::environment::{Environment, TIMEOUT};
use crate::objects::{OPERATIONS, item, misbehaving, row, workload};

/// Uid, status, patch type and base64, required fields: Karmada's client checks them all.
pub(crate) async fn every_operation(environment: &Environment, _: &str) -> Result<()> {
    for operation in OPERATIONS {
        let mut row = row(operation, misbehaving(""));
        row.aggregated_status = vec![item("dfw", &json!({ "readyReplicas": 1 })), item("ord", &json!({}))];
        let [h1, h2] = environment.both(&row).await?;
        let (h1, h2) = (h1.value()?, h2.value()?);
        ensure!(h1 == h2, "{operation}: {h1} over HTTP/1.1, {h2} over HTTP/2");
        let (pointer, expected) = match operation {
            "InterpretReplica" => ("/replicas", json!(3)),
            "InterpretComponent" => ("/components/1/name", json!("b")),
            "ReviseReplica" => ("/object/spec/replicas", json!(7)),
            // No change is neither a patch nor a patch type: an empty patch with a type is an error for Karmada.
            "Retain" => ("/object", misbehaving("")),
            "AggregateStatus" => ("/object/status/clusters", json!(["dfw", "ord"])),
            "InterpretStatus" => ("/status/exact", json!(1.1)),
            "InterpretHealth" => ("/healthy", json!(true)),
            _ => ("/dependencies/0/name", json!("a")),
        };
        ensure!(
            h1.pointer(pointer) == Some(&expected),
            "{operation}: expected {expected} at {pointer} of {h1}"
        );
    }
    Ok(())
}

/// A later Karmada may send more than is known today, and every Karmada offers to read compressed answers. What it reads
/// is the same.
pub(crate) async fn amended(environment: &Environment, _: &str) -> Result<()> {
    for operation in OPERATIONS {
        let mut plain = row(operation, misbehaving(""));
        plain.aggregated_status = vec![item("dfw", &json!({ "readyReplicas": 1 }))];
        let more = Row {
            amend: true,
            ..plain.clone()
        };
        for (plain, more) in environment
            .both(&plain)
            .await?
            .into_iter()
            .zip(environment.both(&more).await?)
        {
            let (plain, mut more) = (plain.value()?, more.value()?);
            let sent = more["sent"].take();
            ensure!(sent["acceptEncoding"] == json!("gzip"), "{operation}: {sent}");
            ensure!(sent["contentEncoding"] == json!(""), "{operation}: {sent}");
            ensure!(
                sent["query"] == json!(format!("nobody=knows&timeout={TIMEOUT}s&pretty=true")),
                "{operation}: {sent}"
            );
            // In the envelope, the request, its kind and the aggregated status, which this row has for every operation.
            ensure!(sent["unknownFields"] == json!(4), "{operation}: {sent}");
            if let Some(fields) = more.as_object_mut() {
                fields.remove("sent");
            }
            ensure!(plain == more, "{operation}: {plain} became {more}");
        }
    }
    Ok(())
}

/// Retain, where nothing but `paused` differs.
fn paused_in_the_member(object: Value) -> Row {
    let mut observed = object.clone();
    observed["spec"]["paused"] = json!(true);
    Row {
        operation: "Retain".into(),
        object,
        observed: Some(observed),
        ..Row::default()
    }
}

/// 9007199254740993 is the first integer that a float cannot hold.
pub(crate) async fn exact_numbers(environment: &Environment, _: &str) -> Result<()> {
    let status = environment.call(&row("InterpretStatus", misbehaving(""))).await?;
    let text = status.result.as_ref().map_or("", |result| result.get());
    ensure!(text.contains("9007199254740993"), "the status came as {text}");

    let mut desired = workload(2, 0);
    desired["spec"]["big"] = json!(9_007_199_254_740_993_i64);
    let retained = environment.call(&paused_in_the_member(desired)).await?;
    retained.value()?;
    let text = retained.result.as_ref().map_or("", |result| result.get());
    ensure!(
        text.contains("9007199254740993") && text.contains("\"paused\":true"),
        "the object came as {text}"
    );
    Ok(())
}

/// An object may have 1.5 MiB in etcd, and Retain carries two.
pub(crate) async fn large(environment: &Environment, _: &str) -> Result<()> {
    let mut object = workload(2, 0);
    object["metadata"]["annotations"] = json!({ "popcell.dev/large": "x".repeat(1_500_000) });
    for answer in environment.both(&paused_in_the_member(object)).await? {
        ensure!(answer.value()?.pointer("/object/spec/paused") == Some(&json!(true)));
    }
    Ok(())
}
