//! The routes with a stub in place of the modules, and requests for them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request as HttpRequest, Response, StatusCode};
use http_body_util::BodyExt;
use popcell_engine::{Allocator, CallError, CallResult, Cause, Modules, Outcome, Path, Subject};
use popcell_https::Limits;
use popcell_protocol::{Answer, Request};
use popcell_webhook::{Interpret, Metrics, Webhook, router};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const CAP: Duration = Duration::from_secs(2);

type SeenDeadline = Arc<Mutex<Option<Instant>>>;

/// Answers what it is told to, and notes the deadline that it was given.
struct Stub<F> {
    result: F,
    queued: Duration,
    deadline: SeenDeadline,
}

impl<F: Fn(&Request<'_>) -> CallResult + Send + Sync + 'static> Interpret for Stub<F> {
    async fn interpret(&self, request: &Request<'_>, deadline: Instant) -> Outcome {
        *self.deadline.lock().unwrap() = Some(deadline);
        Outcome {
            result: (self.result)(request),
            module: None,
            path: Path::Fast,
            queued: self.queued,
            ran: Duration::from_millis(5),
        }
    }
}

pub(crate) struct Served {
    pub(crate) router: Router,
    pub(crate) metrics: Metrics,
    pub(crate) deadline: SeenDeadline,
}

pub(crate) fn serve(result: impl Fn(&Request<'_>) -> CallResult + Send + Sync + 'static) -> Served {
    serve_queued(result, Duration::ZERO)
}

pub(crate) fn serve_queued(
    result: impl Fn(&Request<'_>) -> CallResult + Send + Sync + 'static,
    queued: Duration,
) -> Served {
    let metrics = Metrics::new(&Modules::default(), Allocator::Pooling);
    let deadline = SeenDeadline::default();
    let webhook = Webhook {
        interpreter: Stub {
            result,
            queued,
            deadline: Arc::clone(&deadline),
        },
        calls: metrics.calls(),
        limits: Limits {
            body: 100_000,
            upload: Duration::from_millis(300),
            ..Limits::default()
        },
        call_timeout: CAP,
        loaded: "example.io/v1 Widget".to_owned(),
    };
    Served {
        router: router(webhook),
        metrics,
        deadline,
    }
}

pub(crate) fn healthy(_: &Request<'_>) -> CallResult {
    CallResult::Answer(Answer::Health(true))
}

pub(crate) fn error(cause: Cause) -> impl Fn(&Request<'_>) -> CallResult {
    move |request| {
        let subject = Subject {
            module: Some("widget@1.0.0".to_owned()),
            operation: request.operation,
            kind: request.kind.clone(),
            object: "ns/a".to_owned(),
        };
        CallResult::Error(CallError {
            subject: Box::new(subject),
            cause: cause.clone(),
        })
    }
}

pub(crate) fn context(operation: &str) -> Value {
    json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext", "request": {
        "uid": "u-1", "kind": {"group": "example.io", "version": "v1", "kind": "Widget"}, "name": "a", "namespace": "ns",
        "operation": operation, "replicas": 0,
        "object": {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "a", "uid": "not-this-one"}},
    }})
}

/// The same with its fields in Karmada's order: the uid comes early.
pub(crate) fn wire() -> String {
    let mut rest = context("InterpretHealth");
    rest["request"].as_object_mut().unwrap().remove("uid");
    let rest = rest["request"].to_string();
    format!(
        r#"{{"kind":"ResourceInterpreterContext","request":{{"uid":"u-1",{}}}"#,
        &rest[1..]
    )
}

pub(crate) async fn send(served: &Served, request: HttpRequest<Body>) -> Response<Body> {
    served.router.clone().oneshot(request).await.unwrap()
}

pub(crate) async fn post(served: &Served, target: &str, body: impl Into<Body>) -> (Response<()>, Value) {
    split(send(served, HttpRequest::post(target).body(body.into()).unwrap()).await).await
}

pub(crate) async fn split(response: Response<Body>) -> (Response<()>, Value) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    assert_eq!(parts.headers["content-type"], "application/json");
    (Response::from_parts(parts, ()), serde_json::from_slice(&bytes).unwrap())
}

/// The answer of which Karmada shows its users the text.
pub(crate) fn assert_refused(response: &Response<()>, body: &Value, expected: &str) {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(body["response"]["uid"], "u-1");
    assert_eq!(body["response"]["successful"], false);
    let message = body["response"]["status"]["message"].as_str().unwrap();
    assert!(message.contains(expected), "{message}");
    assert!(message.len() <= 256, "{message}");
}
