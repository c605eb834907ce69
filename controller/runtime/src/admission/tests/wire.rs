//! Requests that are not what they should be, and the mutating webhook.

use popcell_api::admission::MUTATE_WORKLOAD_PATH;
use popcell_core::metrics;

use super::*;
use crate::admission::Outcome;

async fn post(served: &Served, path: &str, body: impl Into<Body>) -> (StatusCode, String) {
    served.send(Request::post(path).body(body.into()).unwrap()).await
}

#[tokio::test]
async fn the_mutating_webhook_changes_nothing_and_sends_no_request() {
    let served = Served::good();
    for request in [
        create(json!({ "metadata": {} })),
        update(workload(), rolled()),
        request("DELETE", workload(), Value::Null),
    ] {
        let response = served.at(MUTATE_WORKLOAD_PATH, &request).await;
        assert_eq!(response, json!({ "uid": request["uid"], "allowed": true }));
    }
    assert_eq!(served.servers.clients(), []);
    assert!(
        served.servers.outcomes().is_empty(),
        "the other webhook is the one that reviews"
    );
}

#[tokio::test]
async fn what_has_a_uid_is_answered_with_it() {
    let served = Served::good();
    let ours = |change: fn(&mut Value)| {
        let mut request = create(workload());
        change(&mut request);
        request
    };
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let mut nested = create(workload());
    nested["object"]["spec"]["placements"] = deep;
    for (request, reported) in [
        (
            ours(|request| request["operation"] = json!("CONNECT")),
            "was sent \"CONNECT\": correct the rules",
        ),
        (
            ours(|request| request["operation"] = json!(null)),
            "failed to read the request of the AdmissionReview",
        ),
        (
            ours(|request| request["kind"]["kind"] = json!("Pod")),
            "was sent a Pod of compute.datumapis.com/v1alpha",
        ),
        (
            ours(|request| request["kind"]["version"] = json!("v2")),
            "was sent a Workload of compute.datumapis.com/v2",
        ),
        (
            ours(|request| request["object"] = json!(null)),
            "request.object of CREATE is not there",
        ),
        (
            ours(|request| request["object"] = json!([1])),
            "failed to read request.object",
        ),
        (
            ours(|request| request["object"]["metadata"]["name"] = json!(7)),
            "failed to read request.object",
        ),
        (
            ours(|request| request["operation"] = json!("UPDATE")),
            "request.oldObject of UPDATE is not there",
        ),
        (
            nested,
            "failed to read request.object: it nests 202 levels deep, the limit is 64",
        ),
    ] {
        let (code, reason, message) = served.refused(&request).await;
        assert_eq!((code, reason.as_str()), (400, "BadRequest"), "{message}");
        assert!(message.contains(reported), "{message}");
        assert_eq!(served.servers.outcomes(), ["error"]);
    }
    assert_eq!(served.servers.clients(), []);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_bad_request_in_words() {
    let served = Served::good();
    let whole = review(&create(workload())).to_string();
    let other = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind, "request": { "uid": "u" } });
    for (body, reported) in [
        (String::new(), "EOF while parsing"),
        (whole[..whole.len() / 2].to_owned(), "EOF while parsing"),
        ("<html>".to_owned(), "expected value"),
        ("[]".to_owned(), "failed to read the AdmissionReview"),
        ("{}".to_owned(), "not AdmissionReview of admission.k8s.io/v1"),
        (
            other("admission.k8s.io/v1beta1", "AdmissionReview").to_string(),
            "it is a AdmissionReview of admission.k8s.io/v1beta1",
        ),
        (
            other("admission.k8s.io/v1", "Pod").to_string(),
            "it is a Pod of admission.k8s.io/v1",
        ),
        (review(&json!(null)).to_string(), "it has no request"),
        (review(&json!({})).to_string(), "has no uid"),
        (review(&json!({ "uid": "" })).to_string(), "has no uid"),
        (review(&json!({ "uid": 7 })).to_string(), "has no uid"),
        (review(&json!("text")).to_string(), "has no uid"),
    ] {
        for path in [VALIDATE_WORKLOAD_PATH, MUTATE_WORKLOAD_PATH] {
            let (status, text) = post(&served, path, body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {text}");
            assert!(text.contains(reported), "{body}: {text}");
        }
        assert_eq!(served.servers.outcomes(), ["error"], "{body}");
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let served = Served::good();
    let mut large = create(workload());
    large["object"]["metadata"]["annotations"] = json!({ "a": "x".repeat(7 * 1024 * 1024) });
    let (_, _, message) = served.refused(&large).await;
    assert!(message.contains("the limit is 262144: make it smaller"), "{message}");
    for path in [VALIDATE_WORKLOAD_PATH, MUTATE_WORKLOAD_PATH] {
        let (status, text) = post(&served, path, " ".repeat(8 * 1024 * 1024 + 1)).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(text.contains("larger than 8388608 bytes"), "{text}");
    }
}

#[tokio::test]
async fn other_requests_are_reported_what_is_served() {
    let served = Served::good();
    let send = async |request: axum::http::request::Builder| served.send(request.body(Body::empty()).unwrap()).await;
    let (status, text) = send(Request::get(VALIDATE_WORKLOAD_PATH)).await;
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::METHOD_NOT_ALLOWED, "requests to webhooks are POST")
    );
    let (status, _) = send(Request::post("/interpret")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, text) = send(Request::post(VALIDATE_WORKLOAD_PATH).header("content-encoding", "gzip")).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(text.contains("gzip"), "{text}");
}

#[test]
fn outcomes_are_those_that_the_metric_documents() {
    let outcomes = [Outcome::Allowed, Outcome::Unread, Outcome::Denied, Outcome::Error];
    let listed = outcomes.map(Outcome::as_str).join(", ");
    assert_eq!(metrics::ADMISSION.0.help, format!("Reviews at admission: {listed}."));
}

/// As an API server sends an object whose spec nests 70 levels deep.
fn deep(leaf: u64, finalizers: &[&str]) -> Value {
    let mut whole = workload();
    whole["metadata"]["finalizers"] = json!(finalizers);
    whole["spec"]["more"] = (0..70).fold(json!(leaf), |deep, _| json!([deep]));
    whole
}

#[tokio::test]
async fn what_nests_too_deeply_is_refused_with_its_spec_and_loses_its_finalizers() {
    let served = Served::good();
    let finalizer = "compute.datumapis.com/workload-controller";
    for (old, new) in [
        (deep(1, &[finalizer]), deep(1, &[])),
        (deep(1, &[finalizer]), {
            let mut going = deep(2, &[]);
            going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            going
        }),
        (deep(1, &[]), workload()),
    ] {
        assert_eq!(served.validate(&update(old, new)).await["allowed"], json!(true));
    }
    for request in [
        create(deep(1, &[])),
        update(deep(1, &[]), deep(2, &[])),
        update(workload(), deep(1, &[])),
    ] {
        let (code, _, message) = served.refused(&request).await;
        assert_eq!(code, 400);
        assert!(
            message.contains("nests 72 levels deep, the limit is 64: make it smaller"),
            "{message}"
        );
    }
    // A key is refused whatever the spec is.
    let mut marked = deep(1, &[]);
    marked["metadata"]["labels"] = json!({ "karmada.io/managed": "x" });
    let (code, _, message) = served.refused(&update(deep(1, &[]), marked)).await;
    assert_eq!(code, 422);
    assert!(
        message.contains("metadata.labels[karmada.io/managed]: Forbidden"),
        "{message}"
    );
}

/// An object of some bytes whose values would take many times as much.
fn large(leaf: u64, finalizers: &[&str], secrets: usize) -> Value {
    let mut whole = workload();
    whole["metadata"]["finalizers"] = json!(finalizers);
    let secrets: Vec<Value> = (0..secrets).map(|_| json!({ "name": "" })).collect();
    whole["spec"]["template"]["spec"]["runtime"]["sandbox"]["imagePullSecrets"] = json!(secrets);
    whole["spec"]["more"] = json!(leaf);
    whole
}

#[tokio::test]
async fn what_is_larger_than_the_limit_is_refused_with_its_spec_and_loses_its_finalizers() {
    const MANY: usize = 60_000;
    let served = Served::good();
    let finalizer = "compute.datumapis.com/workload-controller";
    let mut going = large(2, &[], MANY);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (old, new) in [
        (large(1, &[finalizer], MANY), large(1, &[], MANY)),
        (large(1, &[finalizer], MANY), going),
        (large(1, &[], MANY), workload()),
    ] {
        assert_eq!(served.validate(&update(old, new)).await["allowed"], json!(true));
    }
    served.servers.asked();
    for request in [
        create(large(1, &[], MANY)),
        update(large(1, &[], MANY), large(2, &[], MANY)),
        update(workload(), large(1, &[], MANY)),
    ] {
        let (code, _, message) = served.refused(&request).await;
        assert_eq!(code, 400);
        assert!(message.contains("the limit is 262144: make it smaller"), "{message}");
    }
    assert!(served.servers.asked().is_empty());
    // A key is refused whatever the spec is.
    let mut marked = large(1, &[], MANY);
    marked["metadata"]["labels"] = json!({ "karmada.io/managed": "x" });
    let (code, ..) = served.refused(&update(large(1, &[], MANY), marked)).await;
    assert_eq!(code, 422);
}
