//! Servers of projects that do not answer, or with something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join;
use kube::Client;
use popcell_core::plan::Plane;
use tokio::time::Instant;

use super::*;
use crate::planes::Transport;
use popcell_client::ConnectError;

const HTML: &str = "<html>\n<body><h1>502 Bad Gateway</h1>internal.example.com</body></html>";

fn cities_unknown(why: &str) -> String {
    format!(
        "Workload.compute.datumapis.com \"web\" is invalid: spec.placements: Internal error: failed to list \
         LocationBindings: the project's API server {why}"
    )
}

fn access_unknown(why: &str) -> String {
    format!(
        "Workload.compute.datumapis.com \"web\" is invalid: {NETWORK}: Internal error: failed to review access to network \
         \"default\": the project's API server {why}"
    )
}

/// What a server does, and how it is told.
type Row = (fn() -> Reply, &'static str);

/// All that is no answer, and how it is told. None of it is a rule that is broken, so it is 500, and nothing of a body or
/// an address is told.
fn rows() -> Vec<Row> {
    vec![
        (
            || Reply::Text(StatusCode::INTERNAL_SERVER_ERROR, "{}"),
            "answered 500 Internal Server Error",
        ),
        (
            || Reply::Text(StatusCode::BAD_GATEWAY, HTML),
            "answered 502 Bad Gateway",
        ),
        (
            || Reply::Text(StatusCode::NOT_FOUND, "404 page not found"),
            "answered 404 Not Found",
        ),
        (
            || Reply::Text(StatusCode::TOO_MANY_REQUESTS, ""),
            "answered 429 Too Many Requests",
        ),
        (
            || Reply::Text(StatusCode::FORBIDDEN, r#"{"kind":"Status","code":403}"#),
            "answered 403 Forbidden",
        ),
        (|| Reply::Text(StatusCode::FOUND, ""), "answered 302 Found"),
        (
            || Reply::Text(StatusCode::OK, HTML),
            "gave an answer that cannot be read",
        ),
        (|| Reply::Text(StatusCode::OK, ""), "gave an answer that cannot be read"),
        (
            || Reply::Text(StatusCode::OK, "{}"),
            "gave an answer that cannot be read",
        ),
        (|| Reply::Away, "cannot be reached"),
        (|| Reply::Never, "did not answer in time"),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_a_refusal_that_says_so_and_never_an_approval() {
    for (reply, why) in rows() {
        let servers = Servers::new(move |asked| if asked == LIST { reply() } else { access(true) });
        let served = Served::new(Mode::Milo, servers);
        let reported = served.refused(&create(workload())).await;
        assert_eq!(reported, (500, "InternalError".to_owned(), cities_unknown(why)));

        let servers = Servers::new(move |asked| if asked == ACCESS { reply() } else { good(asked) });
        let access = Served::new(Mode::Milo, servers);
        let reported = access.refused(&create(workload())).await;
        assert_eq!(reported, (500, "InternalError".to_owned(), access_unknown(why)));
        for served in [served, access] {
            assert_eq!(served.servers.outcomes(), ["error"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_certainly_broken_makes_it_invalid_also_in_an_outage() {
    let served = Served::new(Mode::Milo, Servers::new(|_| Reply::Away));
    let mut new = workload();
    new["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(0);
    let status = served.validate(&create(new)).await["status"].take();
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let reasons: Vec<&Value> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| &cause["reason"])
        .collect();
    assert_eq!(reasons, ["FieldValueInvalid", "InternalError", "InternalError"]);
    assert_eq!(served.servers.outcomes(), ["denied"]);
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_answer_passes_in_an_outage() {
    let served = Served::new(Mode::Milo, Servers::new(|_| Reply::Never));
    let response = served.validate(&update(workload(), rolled())).await;
    assert_eq!(response["allowed"], json!(true));
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_there_before_the_client_gives_up() {
    for (query, limit) in [
        ("?timeout=10s", 9.0),
        ("?timeout=2s", 1.8),
        ("?timeout=30s", 9.0),
        ("?timeout=0s", 9.0),
        ("?timeout=soon", 9.0),
        ("", 9.0),
    ] {
        let served = Served::new(Mode::Milo, Servers::new(|_| Reply::Never));
        let begun = Instant::now();
        let response = served
            .at(&format!("{VALIDATE_WORKLOAD_PATH}{query}"), &create(workload()))
            .await;
        assert_eq!(response["status"]["code"], json!(500));
        let took = begun.elapsed().as_secs_f64();
        assert!((took - limit).abs() < 0.01, "{query}: {took} s");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_at_once_and_not_without_bound() {
    let late = |value: Reply| match value {
        Reply::Json(value) => Reply::Late(Duration::from_secs(1), value),
        other => other,
    };
    let networks: Vec<Value> = (0..50).map(|number| json!({ "name": format!("n{number}") })).collect();
    for (count, seconds) in [(3, 1), (15, 1), (50, 4)] {
        let served = Served::new(Mode::Milo, Servers::new(move |asked| late(good(asked))));
        let begun = Instant::now();
        let response = served.validate(&create(with_networks(&networks[..count]))).await;
        assert_eq!(response["allowed"], json!(true));
        assert_eq!(begun.elapsed().as_secs(), seconds, "{count} networks");
        assert_eq!(served.servers.asked().len(), count + 1);
        assert_eq!(served.servers.most_at_once(), (count + 1).min(16));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_project_does_not_hold_up_another() {
    let served = Served::new(
        Mode::Milo,
        Servers::seeing(|asked| match &asked.plane {
            Plane::Project(id) if id == "p1" => Reply::Never,
            _ => good(&asked.what),
        }),
    );
    let away = create(workload());
    let mut other = create(workload());
    other["userInfo"] = user("p2");
    let begun = Instant::now();
    let healthy = async {
        let mut response = served.validate(&other).await;
        (response["allowed"].take(), begun.elapsed())
    };
    let (away, (allowed, took)) = join(served.validate(&away), healthy).await;
    assert_eq!(away["status"]["code"], json!(500));
    assert_eq!(allowed, json!(true));
    assert!(took < Duration::from_millis(10), "{took:?}");
}

#[tokio::test]
async fn an_access_review_counts_only_when_it_says_allowed() {
    for (status, code) in [
        (json!({ "allowed": true, "evaluationError": "one of two failed" }), 200),
        (json!({ "allowed": false, "evaluationError": "who knows" }), 422),
        (json!({ "denied": true, "allowed": false }), 422),
        (json!({}), 500),
        (json!({ "allowed": "true" }), 500),
    ] {
        let answer = json!({ "kind": "SubjectAccessReview", "status": status });
        let servers = Servers::new(move |asked| match asked {
            LIST => good(asked),
            _ => Reply::Json(answer.clone()),
        });
        let response = Served::new(Mode::Milo, servers).validate(&create(workload())).await;
        assert_eq!(response["status"]["code"].as_u64().unwrap_or(200), code, "{status}");
    }
}

#[tokio::test]
async fn a_review_of_access_that_is_large_is_not_read() {
    let large = json!({ "status": { "allowed": true }, "spec": { "extra": "x".repeat(64 * 1024) } });
    let servers = Servers::new(move |asked| match asked {
        LIST => good(asked),
        _ => Reply::Json(large.clone()),
    });
    let (code, _, message) = Served::new(Mode::Milo, servers).refused(&create(workload())).await;
    assert_eq!(
        (code, message),
        (500, access_unknown("gave an answer that cannot be read"))
    );
}

/// Makes no client at first.
struct Locked {
    open: AtomicBool,
    servers: Servers,
}

impl Transport for Locked {
    fn client(&self, plane: &Plane) -> Result<Client, ConnectError> {
        if self.open.load(Ordering::SeqCst) {
            self.servers.client(plane)
        } else {
            Err(ConnectError::NotConfigured(plane.clone()))
        }
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_made_is_an_outage_and_tried_again() {
    let servers = Servers::new(good);
    let locked = Arc::new(Locked {
        open: AtomicBool::new(false),
        servers: servers.clone(),
    });
    let admission = Admission::new(
        Mode::Milo,
        Arc::clone(&locked) as Arc<dyn Transport>,
        servers.record(),
        LARGEST,
    );
    let served = Served {
        router: router(admission),
        servers,
    };
    let (code, _, message) = served.refused(&create(workload())).await;
    assert_eq!(code, 500);
    assert_eq!(
        message
            .matches("no client can be made for the project's API server")
            .count(),
        2,
        "{message}"
    );
    locked.open.store(true, Ordering::SeqCst);
    assert_eq!(served.validate(&create(workload())).await["allowed"], json!(true));
    assert_eq!(served.servers.outcomes(), ["error", "allowed"]);
}

/// Has a bug.
struct Buggy;

impl Transport for Buggy {
    fn client(&self, _: &Plane) -> Result<Client, ConnectError> {
        panic!("a bug")
    }
}

#[tokio::test]
async fn a_bug_of_ours_is_a_refusal_too() {
    let servers = Servers::new(good);
    let served = Served {
        router: router(Admission::new(Mode::Milo, Arc::new(Buggy), servers.record(), LARGEST)),
        servers,
    };
    for _ in 0..2 {
        let (code, _, message) = served.refused(&create(workload())).await;
        assert_eq!(code, 500);
        assert!(message.contains("a bug in popcell"), "{message}");
        assert_eq!(served.servers.outcomes(), ["error"]);
    }
}
