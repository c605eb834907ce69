//! Requests as Karmada sends them, and bodies that are none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

use popcell_protocol::{Gvk, Health, MAX_DEPTH, Operation, decode, extract_uid};

/// A body with these fields in the request, after a sound beginning.
fn body(fields: &str) -> String {
    format!(
        r#"{{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{{"uid":"u-1","kind":{{"group":"g.io","version":"v1","kind":"K"}},"name":"n"{fields}}}}}"#
    )
}

#[track_caller]
fn refused(body: &str, part: &str) {
    let message = decode(body.as_bytes()).unwrap_err().to_string();
    assert!(message.contains(part), "{message:?} does not say {part:?}");
}

#[test]
fn a_whole_request() {
    let body = body(
        r#","namespace":"ns","operation":"AggregateStatus","object":{"a":9007199254740993,"b":1.50},"replicas":0,"aggregatedStatus":[{"clusterName":"dfw","status":{"x":1e2},"applied":true,"health":"Healthy"},{"clusterName":"\u006frd","appliedMessage":"no","health":"Odd"},{"clusterName":"iad","status":null,"health":""}]"#,
    );
    let request = decode(body.as_bytes()).unwrap();
    assert_eq!(request.uid, "u-1");
    assert_eq!(request.kind, Gvk::new("g.io", "v1", "K"));
    assert_eq!((&*request.name, request.namespace.as_deref()), ("n", Some("ns")));
    assert_eq!(request.operation, Operation::AggregateStatus);
    assert_eq!(request.object.get(), r#"{"a":9007199254740993,"b":1.50}"#);
    assert_eq!(request.replicas, Some(0));
    let [dfw, ord, iad] = &request.aggregated_status[..] else {
        panic!("{request:?}")
    };
    assert_eq!((&*dfw.cluster_name, dfw.status.unwrap().get()), ("dfw", r#"{"x":1e2}"#));
    assert_eq!(
        (dfw.applied, &*dfw.applied_message, dfw.health),
        (true, "", Some(Health::Healthy))
    );
    assert_eq!(
        (&*ord.cluster_name, ord.applied, ord.health),
        ("ord", false, Some(Health::Unknown))
    );
    assert_eq!(ord.applied_message, "no");
    assert!(iad.status.is_none() && iad.health.is_none());
}

#[test]
fn optional_fields_may_be_absent() {
    let body = r#"{"request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"InterpretHealth","object":{},"aggregatedStatus":null,"new":[1]}}"#;
    let request = decode(body.as_bytes()).unwrap();
    assert_eq!(request.kind.to_string(), "v1 Pod");
    assert!(request.namespace.is_none() && request.aggregated_status.is_empty() && request.observed_object.is_none());
}

#[test]
fn unknown_fields_are_ignored_even_twice() {
    let body = body(r#","operation":"InterpretHealth","object":{},"x":{"deep":[{}]},"x":2"#);
    assert!(decode(body.as_bytes()).is_ok());
}

#[test]
fn duplicate_keys_are_refused_in_the_envelope_only() {
    refused(
        &body(r#","operation":"Retain","operation":"InterpretHealth","object":{}"#),
        "duplicate field `operation`",
    );
    refused(
        &body(r#","uid":"u-2","operation":"InterpretHealth","object":{}"#),
        "duplicate field `uid`",
    );
    refused(r#"{"request":null,"request":{}}"#, "duplicate field `request`");
    let twice =
        r#","operation":"AggregateStatus","object":{},"aggregatedStatus":[{"clusterName":"a","clusterName":"b"}]"#;
    refused(
        &body(twice),
        "/request/aggregatedStatus/0: duplicate field `clusterName`",
    );
    let body = body(r#","operation":"InterpretHealth","object":{"a":1,"a":2}"#);
    assert_eq!(decode(body.as_bytes()).unwrap().object.get(), r#"{"a":1,"a":2}"#);
}

#[test]
fn errors_name_the_place() {
    let health = |fields: &str| body(&format!(r#","operation":"InterpretHealth"{fields}"#));
    refused(&health(""), "missing field `object`");
    refused(
        &health(r#","object":null"#),
        "/request/object: expected an object, found null",
    );
    refused(
        &health(r#","object":[]"#),
        "/request/object: expected an object, found an array",
    );
    refused(
        &health(r#","object":{},"observedObject":3"#),
        "/request/observedObject: expected an object, found a number",
    );
    refused(&health(r#","object":{},"replicas":2.0"#), "/request/replicas: ");
    refused(&health(r#","object":{},"replicas":4294967296"#), "/request/replicas: ");
    refused(&health(r#","object":{},"namespace":5"#), "/request/namespace: ");
    refused(
        &health(r#","object":{},"aggregatedStatus":{}"#),
        "/request/aggregatedStatus: ",
    );
    refused(
        &health(r#","object":{},"aggregatedStatus":[{"clusterName":"a"},{}]"#),
        "/request/aggregatedStatus/1: ",
    );
    refused(
        &body(r#","operation":"Prune","object":{}"#),
        "/request/operation: unknown operation \"Prune\"",
    );
    refused(
        &body(r#","operation":"interprethealth","object":{}"#),
        "/request/operation",
    );
    refused(
        &body(r#","operation":"Retain","object":{}"#),
        "/request/observedObject: missing: Retain needs it",
    );
    refused(
        &body(r#","operation":"ReviseReplica","object":{}"#),
        "/request/replicas: missing",
    );
    refused(
        &body(r#","operation":"ReviseReplica","object":{},"replicas":-1"#),
        "/request/replicas: expected 0 or more",
    );
    refused(
        r#"{"request":{"uid":"u","kind":{"version":"","kind":"K"},"operation":"Retain","object":{}}}"#,
        "kind/version",
    );
    refused(
        r#"{"request":{"uid":"u","kind":[],"operation":"Retain","object":{}}}"#,
        "/request/kind",
    );
}

#[test]
fn a_uid_that_a_refusal_cannot_carry_is_refused() {
    let with = |uid: &str| {
        format!(
            r#"{{"request":{{"uid":"{uid}","kind":{{"version":"v1","kind":"K"}},"operation":"InterpretHealth","object":{{}}}}}}"#
        )
    };
    assert!(decode(with(&"u".repeat(256)).as_bytes()).is_ok());
    refused(&with(&"u".repeat(257)), "/request/uid: has 257 bytes, the limit is 256");
}

#[test]
fn bodies_that_are_no_context() {
    refused("", "EOF");
    refused("{}", "/request: missing");
    refused(r#"{"request":null}"#, "/request: missing");
    refused("[]", "invalid length 0");
    refused(
        r#"{"apiVersion":"v1","request":null}"#,
        "/apiVersion: expected \"config.karmada.io/v1alpha1\"",
    );
    refused(
        r#"{"kind":"Pod","request":null}"#,
        "/kind: expected \"ResourceInterpreterContext\"",
    );
    refused(
        &(body(r#","operation":"InterpretHealth","object":{}"#) + "x"),
        "trailing characters",
    );
    refused(
        &body(r#","operation":"InterpretHealth","object":{"a":tru"#),
        "expected ident",
    );
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn nesting_is_bounded_and_does_not_end_the_process() {
    for levels in [MAX_DEPTH, 1_000_000] {
        let deep = nested(levels);
        refused(
            &body(&format!(r#","operation":"InterpretHealth","object":{{"a":{deep}}}"#)),
            "/request/object nests deeper than 64 levels at /a/0/0/0",
        );
        let message = decode(deep.as_bytes()).unwrap_err().to_string();
        assert!(!message.is_empty());
    }
    let cut = body(&format!(
        r#","operation":"InterpretHealth","object":{{"a":{}"#,
        "[".repeat(1_000_000)
    ));
    assert!(decode(cut.as_bytes()).is_err());
    assert_eq!(extract_uid(cut.as_bytes()).as_deref(), Some("u-1"));
}

#[test]
fn each_object_and_status_has_the_whole_depth() {
    let fits = nested(MAX_DEPTH - 1);
    let retain = |object: &str, observed: &str| {
        body(&format!(
            r#","operation":"Retain","object":{{"a":{object}}},"observedObject":{{"b":{observed}}}"#
        ))
    };
    let aggregate = |status: &str| {
        body(&format!(
            r#","operation":"AggregateStatus","object":{{}},"aggregatedStatus":[{{"clusterName":"a"}},{{"clusterName":"b","status":{{"c":{status}}}}}]"#
        ))
    };
    assert!(decode(retain(&fits, &fits).as_bytes()).is_ok());
    assert!(decode(aggregate(&fits).as_bytes()).is_ok());
    let deeper = nested(MAX_DEPTH);
    refused(
        &retain("1", &deeper),
        "/request/observedObject nests deeper than 64 levels at /b/0",
    );
    refused(
        &aggregate(&deeper),
        "/request/aggregatedStatus/1/status nests deeper than 64 levels at /c/0",
    );
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let mut body = body(r#","operation":"InterpretHealth","object":{"a":"!"}"#).into_bytes();
    let at = body.iter().position(|byte| *byte == b'!').unwrap();
    body[at] = 0xff;
    assert!(decode(&body).is_err());
}
