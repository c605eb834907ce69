//! The routes without TLS and without a module: what is answered to what.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request as HttpRequest, StatusCode};
use popcell_engine::{CallResult, Cause};
use popcell_protocol::{Answer, Change, Gvk, Operation};
use serde_json::json;

use crate::stub::{CAP, assert_refused, context, error, healthy, post, send, serve, serve_queued, split, wire};

#[tokio::test]
async fn a_request_is_answered_with_its_uid() {
    let served = serve(healthy);
    let (response, body) = post(&served, "/interpret", context("InterpretHealth").to_string()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        body,
        json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
               "response": {"uid": "u-1", "successful": true, "healthy": true}})
    );
}

#[tokio::test]
async fn content_type_and_unknown_parameters_are_not_insisted_upon() {
    let served = serve(healthy);
    for content_type in ["text/plain", "application/json; charset=utf-8", "nonsense"] {
        let request = HttpRequest::post("/interpret?x=y&timeout=3s&z")
            .header("content-type", content_type)
            .header("content-encoding", "identity")
            .body(Body::from(context("InterpretHealth").to_string()))
            .unwrap();
        assert_eq!(send(&served, request).await.status(), StatusCode::OK, "{content_type}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_4xx_with_a_json_body() {
    let served = serve(healthy);
    let whole = wire();
    let truncated = whole[..whole.len() / 2].to_owned();
    for (body, status, uid) in [
        (truncated, StatusCode::BAD_REQUEST, "u-1"),
        (String::new(), StatusCode::BAD_REQUEST, ""),
        ("[1,".to_owned(), StatusCode::BAD_REQUEST, ""),
        ("{}".to_owned(), StatusCode::BAD_REQUEST, ""),
        (
            format!("{}{}", " ".repeat(100_000), whole),
            StatusCode::PAYLOAD_TOO_LARGE,
            "",
        ),
        (
            whole.replace("not-this-one", &"x".repeat(100_000)),
            StatusCode::PAYLOAD_TOO_LARGE,
            "u-1",
        ),
    ] {
        let (response, answer) = post(&served, "/interpret", body.clone()).await;
        assert_eq!(response.status(), status, "{body:.100}");
        assert_eq!(answer["response"]["uid"], uid, "{body:.100}");
        assert_eq!(answer["response"]["successful"], false);
        assert_eq!(answer["response"]["status"]["code"], status.as_u16());
    }
    let text = served.metrics.text().unwrap();
    assert!(
        text.contains(r#"popcell_requests_rejected_total{reason="malformed"} 4"#),
        "{text}"
    );
    assert!(
        text.contains(r#"popcell_requests_rejected_total{reason="too-large"} 2"#),
        "{text}"
    );
}

#[tokio::test]
async fn paths_methods_and_encodings_that_are_not_served_say_so() {
    let served = serve(healthy);
    let (response, _) = post(&served, "/other", "{}").await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let (response, _) = split(send(&served, HttpRequest::get("/interpret").body(Body::empty()).unwrap()).await).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "POST");
    let gzip = HttpRequest::post("/interpret")
        .header("content-encoding", "gzip")
        .body(Body::from("x"))
        .unwrap();
    let (response, body) = split(send(&served, gzip).await).await;
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(body["response"]["status"]["message"].as_str().unwrap().contains("gzip"));
}

#[tokio::test]
async fn what_can_be_read_but_not_answered_is_200_and_names_the_place() {
    let served = serve(healthy);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let mut no_object = context("InterpretHealth");
    no_object["request"].as_object_mut().unwrap().remove("object");
    let mut scalar = context("InterpretHealth");
    scalar["request"]["object"] = json!(5);
    let mut foreign = context("InterpretHealth");
    foreign["kind"] = json!("AdmissionReview");
    for (body, expected) in [
        (context("Prune").to_string(), "operation"),
        (context("Retain").to_string(), "/request/observedObject"),
        (no_object.to_string(), "object"),
        (
            scalar.to_string(),
            "/request/object: expected an object, found a number",
        ),
        (foreign.to_string(), "ResourceInterpreterContext"),
        (
            context("InterpretHealth")
                .to_string()
                .replace("\"not-this-one\"", &deep),
            "nests deeper",
        ),
    ] {
        let (response, answer) = post(&served, "/interpret", body).await;
        assert_refused(&response, &answer, expected);
    }
}

#[tokio::test]
async fn a_refusal_without_a_module_names_kind_operation_and_what_is_loaded() {
    let served = serve(error(Cause::NoModule { kind_is_served: false }));
    let (response, body) = post(&served, "/interpret", context("InterpretHealth").to_string()).await;
    assert_refused(&response, &body, "InterpretHealth Widget");
    assert_refused(&response, &body, "loaded: example.io/v1 Widget");
}

#[tokio::test]
async fn each_cause_has_its_own_text_and_label() {
    let trapped = Cause::Trapped {
        reason: "unreachable".into(),
        function: Some("status".into()),
        frames: Vec::new(),
    };
    let causes = [
        (
            Cause::Deadline { limit: CAP, ran: CAP },
            "ran longer than its deadline",
            "deadline",
        ),
        (trapped, "trapped in status", "trapped"),
        (
            Cause::Memory {
                limit: 64 << 20,
                asked: 80 << 20,
            },
            "wanted more memory than 64 MiB (--max-memory): 80.0 MiB",
            "memory",
        ),
        (Cause::Stack, "stack overflow", "stack"),
        (Cause::Failed("no such size".into()), "no such size", "failed"),
    ];
    for (cause, expected, label) in causes {
        let served = serve(error(cause));
        let (response, body) = post(&served, "/interpret?timeout=5s", context("InterpretStatus").to_string()).await;
        assert_refused(&response, &body, expected);
        assert_refused(&response, &body, "widget@1.0.0 InterpretStatus Widget ns/a: ");
        let expected = format!(
            r#"popcell_calls_total{{module="other",kind="other",operation="InterpretStatus",outcome="{label}"}} 1"#
        );
        let text = served.metrics.text().unwrap();
        assert!(text.contains(&expected), "{text}");
    }
}

#[tokio::test]
async fn no_free_slot_is_429_with_retry_after_a_second() {
    let served = serve_queued(|_| CallResult::Overloaded, Duration::from_millis(400));
    let (response, body) = post(&served, "/interpret?timeout=2s", context("InterpretHealth").to_string()).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(body["response"]["uid"], "u-1");
    let message = body["response"]["status"]["message"].as_str().unwrap();
    assert!(message.contains("400.0ms waiting"), "{message}");
}

#[tokio::test]
async fn a_module_that_got_too_little_time_is_not_blamed() {
    // The client waits 2 s, so a module has up to 1.8 s. It got 0.5 s: the rest went into the upload and the queue.
    let short = error(Cause::Deadline {
        limit: Duration::from_millis(500),
        ran: Duration::from_millis(500),
    });
    let served = serve_queued(short, Duration::from_millis(300));
    let (response, body) = post(&served, "/interpret?timeout=2s", context("InterpretHealth").to_string()).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
    let message = body["response"]["status"]["message"].as_str().unwrap();
    assert!(
        !message.contains("deadline") && !message.contains("widget@1.0.0"),
        "{message}"
    );
    let text = served.metrics.text().unwrap();
    assert!(
        text.contains(r#"outcome="late"} 1"#) && !text.contains(r#"outcome="deadline""#),
        "{text}"
    );
}

#[tokio::test]
async fn the_deadline_follows_the_parameter_up_to_the_cap() {
    let served = serve(healthy);
    for (target, expected) in [
        ("/interpret?timeout=1s", Duration::from_millis(900)),
        ("/interpret?timeout=500ms", Duration::from_millis(450)),
        ("/interpret?timeout=30s", CAP + CAP / 3),
        ("/interpret?timeout=0s", CAP + CAP / 3),
        ("/interpret?timeout=abc", CAP + CAP / 3),
        ("/interpret", CAP + CAP / 3),
    ] {
        let before = Instant::now();
        let (response, _) = post(&served, target, context("InterpretHealth").to_string()).await;
        assert_eq!(response.status(), StatusCode::OK, "{target}");
        let deadline = served.deadline.lock().unwrap().take().unwrap();
        assert!(
            deadline >= before + expected && deadline <= Instant::now() + expected,
            "{target}"
        );
    }
}

#[tokio::test]
async fn half_a_body_is_408_with_the_uid_that_was_seen() {
    let served = serve(healthy);
    let whole = wire();
    let first = whole[..whole.len() / 2].to_owned();
    let pieces = futures::StreamExt::chain(
        futures::stream::iter([Ok::<_, std::io::Error>(first)]),
        futures::stream::pending(),
    );
    let (response, body) = post(&served, "/interpret?timeout=200ms", Body::from_stream(pieces)).await;
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(body["response"]["uid"], "u-1");
}

#[tokio::test]
async fn a_panic_in_the_host_is_an_answer_with_the_uid() {
    let served = serve(|_| panic!("on purpose"));
    let (response, body) = post(&served, "/interpret", context("InterpretHealth").to_string()).await;
    assert_refused(&response, &body, "a bug in popcell");
    assert!(served.metrics.text().unwrap().contains(r#"outcome="panic"} 1"#));
}

#[tokio::test]
async fn strangers_cannot_make_series() {
    let served = serve(error(Cause::NoModule { kind_is_served: false }));
    for number in 0..100 {
        let mut body = context("InterpretHealth");
        body["request"]["kind"]["kind"] = json!(format!("Stranger{number}"));
        post(&served, "/interpret", body.to_string()).await;
    }
    let text = served.metrics.text().unwrap();
    let series = text
        .lines()
        .filter(|line| line.starts_with("popcell_calls_total"))
        .count();
    assert_eq!(series, 1, "{text}");
    assert!(text.contains(r#"outcome="no-module"} 100"#), "{text}");
}

#[tokio::test]
async fn every_operation_reaches_the_interpreter_as_itself() {
    let seen: Arc<Mutex<Vec<(Operation, Gvk)>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let served = serve(move |request| {
        noted.lock().unwrap().push((request.operation, request.kind.clone()));
        CallResult::Answer(Answer::Change(Change::Unchanged))
    });
    for operation in Operation::ALL {
        let mut body = context(operation.as_str());
        body["request"]["observedObject"] = json!({});
        let (response, body) = post(&served, "/interpret", body.to_string()).await;
        assert_eq!(
            (response.status(), &body["response"]["successful"]),
            (StatusCode::OK, &json!(true)),
            "{operation}"
        );
    }
    let kind = Gvk::new("example.io", "v1", "Widget");
    assert_eq!(
        *seen.lock().unwrap(),
        Operation::ALL.map(|operation| (operation, kind.clone()))
    );
}
