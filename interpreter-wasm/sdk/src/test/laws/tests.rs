use std::path::Path;

use super::*;
use crate::module::{Change, Input, Output};
use crate::test::cases::read;
use crate::types::{Implemented, PatchOp, Target};
use crate::{Error, Json, Replicas, Result};

/// A module with one kind, all operations and the given way to answer.
struct Module(fn(Operation, &Input) -> Result<Output>);

impl Run for Module {
    fn describe(&self) -> Description {
        let operations = Operation::ALL
            .iter()
            .map(|operation| Implemented {
                operation: *operation,
                register: true,
            })
            .collect();
        Description {
            name: "module".to_owned(),
            version: "0.1.0".to_owned(),
            targets: vec![Target {
                kind: Gvk::of("example.io/v1", "Widget"),
                operations,
            }],
        }
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output> {
        (self.0)(operation, input)
    }
}

const FILE: &str = "\
name: a
operation: InterpretHealth
observedObj: {apiVersion: example.io/v1, kind: Widget, metadata: {name: a, labels: {x: y}}, spec: {replicas: 2}, status: {ready: 1}}
---
name: b
operation: Retain
desiredObj: {apiVersion: example.io/v1, kind: Widget, spec: {replicas: 3}}
observedObj: {apiVersion: example.io/v1, kind: Widget, spec: {replicas: 4}}
---
name: c
operation: AggregateStatus
desiredObj: {apiVersion: example.io/v1, kind: Widget}
statusItems: [{clusterName: a, status: {ready: 1}}, {clusterName: b, status: {ready: 2}}]
";

fn check(law: &str, answers: fn(Operation, &Input) -> Result<Output>) -> Result<(), Broken> {
    let cases: Vec<_> = read(Path::new("tests/a.yaml"), FILE)
        .into_iter()
        .map(|case| case.unwrap())
        .collect();
    let module = Module(answers);
    let laws = of(&module.describe());
    let law = laws.iter().find(|known| known.name == law).unwrap();
    law.check(&module, &Seen::of(cases.iter()))
}

#[expect(clippy::unnecessary_wraps, reason = "an operation returns a result")]
fn put(path: &str, value: impl Into<Json>) -> Result<Output> {
    Ok(Output::Change(Change::Patch(vec![PatchOp::Add {
        path: path.to_owned(),
        value: value.into(),
    }])))
}

#[test]
fn a_panic_on_an_odd_object_is_found_and_made_small() {
    let broken = check("health_total", |_, input| {
        Ok(Output::Health(input.object.int("/spec/replicas").unwrap() > Some(0)))
    })
    .unwrap_err();
    assert_eq!(broken.origin, "tests/a.yaml:3");
    assert!(broken.message.starts_with("panicked"), "{}", broken.message);
    let lines: Vec<&str> = broken.document.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "name: \"breaks health_total\"",
            "operation: InterpretHealth",
            "observedObj:",
            "  apiVersion: example.io/v1"
        ]
    );
    assert!(
        lines.len() <= 7 && lines[5].starts_with("  spec:"),
        "{}",
        broken.document
    );
    let again = read(Path::new("x.yaml"), &broken.document).remove(0);
    assert!(again.is_ok(), "what is shown can be pasted: {again:?}");
}

#[test]
fn an_error_is_an_answer() {
    check("health_total", |_, input| {
        Ok(Output::Health(input.object.int("/spec/replicas")? > Some(0)))
    })
    .unwrap();
    check("health_total", |_, _| Err(Error::undecided("later"))).unwrap();
    assert!(check("health_total", |_, _| Err(Error::Unsupported)).is_err());
}

#[test]
fn an_answer_that_changes_by_itself_is_found() {
    use std::sync::atomic::{AtomicI64, Ordering};
    static CALLS: AtomicI64 = AtomicI64::new(0);
    let broken = check("status_total", |_, _| {
        Ok(Output::Status(Json::from(CALLS.fetch_add(1, Ordering::Relaxed))))
    });
    assert!(broken.unwrap_err().message.starts_with("first "));
}

#[test]
fn a_status_has_to_be_an_object() {
    check("status_is_an_object", |_, input| {
        Ok(Output::Status(
            input
                .object
                .get("/status")
                .filter(|status| status.is_object())
                .cloned()
                .unwrap_or_else(|| Json::object::<&str, Json>([])),
        ))
    })
    .unwrap();
    let whole = |_: Operation, input: &Input| {
        Ok(Output::Status(
            input.object.get("/status").cloned().unwrap_or_else(Json::null),
        ))
    };
    assert!(check("status_is_an_object", whole).is_err());
}

#[test]
fn revise_has_to_reach_replicas() {
    fn right(operation: Operation, input: &Input) -> Result<Output> {
        match operation {
            Operation::InterpretReplica => Ok(Output::Replicas(Replicas::from(input.object.int("/n")?.unwrap_or(1)))),
            _ => put("/n", input.replicas),
        }
    }
    check("revise_then_replicas", right).unwrap();
    let capped = |operation: Operation, input: &Input| match operation {
        Operation::ReviseReplica => put("/n", input.replicas.min(500)),
        operation => right(operation, input),
    };
    assert!(
        check("revise_then_replicas", capped)
            .unwrap_err()
            .message
            .contains("after ReviseReplica(1000), InterpretReplica answers 500")
    );
}

#[test]
fn retain_has_to_settle() {
    let unchanged = |_: Operation, _: &Input| Ok(Output::Change(Change::Unchanged));
    check("retain_idempotent", unchanged).unwrap();
    check("retain_identity", unchanged).unwrap();
    let grows = |_: Operation, input: &Input| put("/n", input.object.int("/n")?.unwrap_or(0) + 1);
    assert!(
        check("retain_idempotent", grows)
            .unwrap_err()
            .message
            .contains("the second Retain still changes /n")
    );
    assert!(
        check("retain_identity", grows)
            .unwrap_err()
            .message
            .contains("changes /n")
    );
}

#[test]
fn aggregation_has_to_settle_in_any_order() {
    let first = |_: Operation, input: &Input| {
        let name = input.items.first().map_or("none", |item| item.cluster_name.as_str());
        put("/status", Json::object([("first", name)]))
    };
    let broken = check("aggregate_any_order", first).unwrap_err();
    assert!(
        broken.message.contains("with the items in the order"),
        "{}",
        broken.message
    );
    assert!(broken.document.contains("statusItems:"), "{}", broken.document);
    let grows = |_: Operation, input: &Input| {
        put(
            "/status",
            Json::object([("n", input.object.int("/status/n").ok().flatten().unwrap_or(0) + 1)]),
        )
    };
    assert!(check("aggregate_idempotent", grows).is_err());
}

#[test]
fn only_allowed_paths_may_be_touched() {
    check("aggregate_allowed", |_, _| put("/status", Json::null())).unwrap();
    assert!(check("aggregate_allowed", |_, _| put("/statuses", Json::null())).is_err());
    assert!(check("aggregate_allowed", |_, _| put("/spec/n", 1)).is_err());
    check("retain_allowed", |_, _| put("/metadata/labels/example.io~1x", "y")).unwrap();
    for path in [
        "/status",
        "/kind",
        "",
        "/metadata/name",
        "/metadata/labels/work.karmada.io~1name",
        "/metadata",
    ] {
        assert!(!rules::may_touch(Operation::Retain, path), "{path}");
    }
}

#[test]
fn answers_that_karmada_refuses_are_found() {
    use crate::{Component, Dependency};
    assert!(check("replicas_valid", |_, _| Ok(Output::Replicas(Replicas::from(-1)))).is_err());
    assert!(
        check("replicas_valid", |_, _| Ok(Output::Replicas(Replicas::from(
            i64::from(i32::MAX) + 1
        ))))
        .is_err()
    );
    let nameless = |_: Operation, _: &Input| {
        Ok(Output::Dependencies(vec![Dependency {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            ..Dependency::default()
        }]))
    };
    assert!(
        check("dependencies_valid", nameless)
            .unwrap_err()
            .message
            .contains("neither name nor labelSelector")
    );
    let selected = |_: Operation, _: &Input| {
        let label_selector = Some(Json::parse(
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}"#,
        )?);
        Ok(Output::Dependencies(vec![Dependency {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            label_selector,
            ..Dependency::default()
        }]))
    };
    check("dependencies_valid", selected).unwrap();
    let twins = |_: Operation, _: &Input| {
        Ok(Output::Components(vec![
            Component {
                name: "a".to_owned(),
                ..Component::default()
            };
            2
        ]))
    };
    assert!(
        check("components_valid", twins)
            .unwrap_err()
            .message
            .contains("two components")
    );
}

#[test]
fn laws_follow_the_operations() {
    let description = Description {
        targets: vec![Target {
            kind: Gvk::of("example.io/v1", "Widget"),
            operations: vec![Implemented {
                operation: Operation::InterpretHealth,
                register: true,
            }],
        }],
        ..Module(|_, _| Err(Error::Unsupported)).describe()
    };
    assert_eq!(
        of(&description).iter().map(|law| law.name.as_str()).collect::<Vec<_>>(),
        ["health_total"]
    );
}
