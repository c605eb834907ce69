//! AggregateStatus where YAML cannot say it: many calls, long texts.

#![expect(
    clippy::expect_used,
    reason = "clippy exempts test functions only, not what they share"
)]

use compute_interpreter::WorkloadDeployment;
use popcell_sdk::prelude::*;

fn hub_object() -> Object {
    Object::parse(r#"{"apiVersion":"compute.datumapis.com/v1alpha","kind":"WorkloadDeployment","metadata":{"name":"web-us-dfw","generation":2}}"#)
        .expect("an object")
}

fn condition(kind: &str, status: &str, message: &str, second: usize) -> String {
    format!(
        r#"{{"type":"{kind}","status":"{status}","reason":"R","message":"{message}","lastTransitionTime":"2026-11-28T10:00:{second:02}Z","observedGeneration":1}}"#
    )
}

fn item(cluster: &str, conditions: &[String]) -> StatusItem {
    let status = format!(
        r#"{{"replicas":1,"readyReplicas":1,"observedGeneration":1,"generation":1,"resourceTemplateGeneration":2,"conditions":[{}]}}"#,
        conditions.join(",")
    );
    StatusItem {
        cluster_name: cluster.to_owned(),
        status: Some(Json::parse(status).expect("a status")),
        applied: true,
        applied_message: String::new(),
        health: Some(Health::Healthy),
    }
}

fn aggregated(items: &[StatusItem]) -> Object {
    let mut object = hub_object();
    WorkloadDeployment::aggregate(&mut object, items).expect("an aggregated object");
    object
}

#[test]
fn fifty_calls_in_every_order_give_the_same_bytes() {
    let kinds = [
        "Available",
        "ReplicasReady",
        "Paused",
        "Drained",
        "Zoned",
        "example.io/Ready",
    ];
    let mut items: Vec<_> = ["dfw-1", "dfw-2", "dfw-3"]
        .iter()
        .enumerate()
        .map(|(cluster, name)| {
            let conditions: Vec<_> = kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| {
                    let status = ["True", "False", "Unknown"][(cluster + index) % 3];
                    condition(kind, status, name, cluster * 10 + index)
                })
                .collect();
            item(name, &conditions)
        })
        .collect();
    let first = aggregated(&items).to_text();
    for call in 0..50 {
        items.rotate_left(1);
        if call % 2 == 0 {
            items.swap(0, 1);
        }
        assert_eq!(aggregated(&items).to_text(), first, "call {call}");
    }

    let mut fed_back = aggregated(&items);
    WorkloadDeployment::aggregate(&mut fed_back, &items).expect("an aggregated object");
    assert_eq!(fed_back.to_text(), first);
    let times: Vec<_> = items
        .iter()
        .map(|item| item.status.as_ref().map(Json::to_text))
        .collect();
    for condition in fed_back
        .items("/status/conditions")
        .expect("a list")
        .expect("conditions")
    {
        let time = condition
            .text("/lastTransitionTime")
            .expect("text")
            .expect("a time")
            .to_owned();
        assert!(
            times.iter().flatten().any(|status| status.contains(&time)),
            "{time} is no member's"
        );
    }
}

#[test]
fn messages_are_cut_at_1024_bytes_between_characters() {
    // (message, what goes upward)
    let table = [
        ("m".repeat(1024), "m".repeat(1024)),
        ("m".repeat(1025), "m".repeat(1024)),
        // Three bytes each: the 342nd would end at 1,026.
        ("€".repeat(342), "€".repeat(341)),
        (format!("m{}", "€".repeat(400)), format!("m{}", "€".repeat(341))),
        ("𝄞".repeat(300), "𝄞".repeat(256)),
    ];
    for (message, upward) in table {
        let answer = aggregated(&[item("dfw-1", &[condition("Available", "True", &message, 0)])]);
        let found = answer
            .text("/status/conditions/0/message")
            .expect("text")
            .expect("a message");
        assert_eq!(found, upward);
    }
}
