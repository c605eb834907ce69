//! Servers that are unreachable.

use popcell_api::kind;
use serde_json::json;
use tokio::time::advance;

use super::*;
use crate::memory::{AGAIN, FAILURES, PROBE, REFUSED};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_unreachable_is_asked_once_in_a_while() {
    let tried = Tried::new(&[]).await;
    for _ in 0..FAILURES {
        assert!(matches!(
            tried.execute(&plan(vec![create("a")])).await,
            Err(ApplyError::Failed(_))
        ));
    }
    // The fifth failure asks for a probe, which fails too.
    let asked = tried.server.asked();
    assert_eq!(asked.len(), FAILURES as usize + 1);
    assert_eq!(asked.last().unwrap(), "GET /version");
    let away = tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    assert_eq!(away.requeue(), Requeue::Postponed(PROBE));
    assert!(tried.server.asked().is_empty());
    assert_eq!(tried.open_circuits(), 1);
    advance(PROBE).await;
    // A probe that fails sends no write after it.
    let still = tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    assert_eq!(still.requeue(), Requeue::Postponed(PROBE));
    assert_eq!(tried.server.asked(), ["GET /version"]);
    advance(PROBE).await;
    tried.server.answer(&[(200, json!({})), (201, stored("a", "u"))]);
    assert_eq!(tried.execute(&plan(vec![create("a")])).await, Ok(Done::Written));
    assert_eq!(tried.server.asked(), ["GET /version".to_owned(), format!("POST {ALL}")]);
    assert_eq!(tried.open_circuits(), 0);
}

#[tokio::test(start_paused = true)]
async fn discovery_that_is_unreachable_is_no_fault_of_the_projects() {
    let discovery = Server::default();
    let client = discovery.client(&Plane::Hub).unwrap();
    let tried = Tried::of(&[], |options| options.discovery = Some((client, kind::PROJECT))).await;
    let project = Plane::Project("p".to_owned());
    tried.applier.planes.engage(&project, None).await.unwrap();
    for _ in 0..FAILURES {
        let failed = tried.applier.project("p").await;
        assert!(matches!(failed, Err(ApplyError::Failed(_))));
    }
    assert!(tried.applier.server(&project).unwrap().admit().await.is_ok());
    assert_eq!(discovery.asked().len(), FAILURES as usize + 1);
    let away = tried.applier.project("q").await.unwrap_err();
    assert_eq!(
        away.to_string(),
        "failed to reach the discovery server: it is unreachable"
    );
    assert_eq!(away.requeue(), Requeue::Postponed(PROBE));
    assert!(discovery.asked().is_empty());
    advance(PROBE).await;
    let answer = (200, json!({ "metadata": { "name": "p", "uid": "u" } }));
    discovery.answer(&[(200, json!({ "items": [] })), answer]);
    assert_eq!(tried.applier.project("p").await, Ok(ProjectAnswer::Is("u".to_owned())));
    assert_eq!(tried.open_circuits(), 0);
}

#[tokio::test]
async fn a_plane_that_has_left_leaves_no_circuit() {
    let tried = Tried::new(&[]).await;
    let server = tried.applier.server(&Plane::Hub).unwrap();
    tried.applier.planes.disengage(&Plane::Hub).await;
    for _ in 0..FAILURES {
        // The answer to a request that was under way.
        let late = Refusal::Silent("not within 4 s".to_owned());
        server.answered(Some(&late)).await;
    }
    assert_eq!(tried.open_circuits(), 0);
    tried.applier.planes.engage(&Plane::Hub, None).await.unwrap();
    assert!(tried.applier.server(&Plane::Hub).unwrap().admit().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn writes_that_a_namespace_refuses_are_probed_at_intervals() {
    let tried = Tried::new(&vec![status(403, "being terminated"); 300]).await;
    for number in 0..300 {
        let failed = tried.execute(&plan(vec![create(&format!("c-{number}"))])).await;
        let requeue = failed.unwrap_err().requeue();
        let expected = if number < REFUSED {
            Requeue::WithBackoff(crate::queue::Backoff::ADMISSION)
        } else {
            Requeue::Postponed(AGAIN)
        };
        assert_eq!(requeue, expected, "{number}");
    }
    assert_eq!(tried.server.asked().len(), REFUSED);
    let Action::Create { target, .. } = create("c-7") else {
        panic!("no creation");
    };
    let shut = tried.applier.may_create(&target).unwrap_err();
    assert!(matches!(&shut, ApplyError::CircuitOpen(failed, _) if failed.reported().contains("being terminated")));
    advance(AGAIN).await;
    assert_eq!(tried.applier.may_create(&target), Ok(()));
    // A plane that is relisted may take it now, whatever it said.
    tried.execute(&plan(vec![create("c-7")])).await.unwrap_err();
    assert!(tried.applier.may_create(&target).is_err());
    let memory = tried.applier.planes.memory(&Plane::Hub).unwrap();
    memory.relisted();
    assert_eq!(tried.applier.may_create(&target), Ok(()));
}

/// A webhook that answers 500 to what is written, as an API server tells it.
fn webhook_fails() -> (u16, Value) {
    status(
        500,
        "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: the server is currently unable",
    )
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_or_the_store_refuses_of_one_namespace_holds_up_no_other() {
    let too_large = status(500, "etcdserver: request is too large");
    let quota = status(
        403,
        "x is forbidden: exceeded quota: q, requested: 1, used: 5, limited: 5",
    );
    for refusal in [webhook_fails(), too_large, quota] {
        let tried = Tried::new(&vec![refusal; 300]).await;
        for number in 0..300 {
            tried
                .execute(&plan(vec![create(&format!("a-{number}"))]))
                .await
                .unwrap_err();
        }
        assert_eq!(tried.open_circuits(), 0);
        assert!(
            tried.server.asked().iter().all(|line| line.starts_with("POST")),
            "no probe"
        );
        tried.server.answers.lock().unwrap().clear();
        tried.server.answer(&[(201, stored("b", "u"))]);
        let other = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
            "metadata": { "name": "b", "namespace": "ns-2" } });
        let other = Action::create(
            &Plane::Hub,
            kind::WORKLOAD_DEPLOYMENT,
            serde_json::from_value(other).unwrap(),
        );
        assert_eq!(tried.execute(&plan(vec![other])).await, Ok(Done::Written));
    }
}

#[tokio::test]
async fn each_kind_of_refusal_has_its_backoff() {
    use crate::queue::Backoff;
    for (refusal, backoff) in [
        (webhook_fails(), Backoff::ADMISSION),
        (
            status(413, "Request entity too large: limit is 3145728"),
            Backoff::TOO_LARGE,
        ),
        (status(500, "etcdserver: request is too large"), Backoff::TOO_LARGE),
        (status(500, "etcdserver: request timed out"), Backoff::TRANSIENT),
        (status(403, "no"), Backoff::ADMISSION),
    ] {
        let tried = Tried::new(std::slice::from_ref(&refusal)).await;
        let failed = tried.execute(&plan(vec![create("a")])).await.unwrap_err();
        assert_eq!(failed.requeue(), Requeue::WithBackoff(backoff), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_webhook_is_distinguished_from_a_slow_server_by_a_probe() {
    // A webhook that does not answer in time: the server says so, with words that leave open what was slow.
    let late = status(504, "Timeout: request did not complete within requested timeout");
    let mut answers = vec![late.clone(); FAILURES as usize];
    answers.push((200, json!({ "major": "1" })));
    let tried = Tried::new(&answers).await;
    for number in 0..FAILURES {
        tried
            .execute(&plan(vec![create(&format!("a-{number}"))]))
            .await
            .unwrap_err();
    }
    assert_eq!(tried.open_circuits(), 0);
    assert_eq!(tried.server.asked().last().unwrap(), "GET /version");
    // It is not probed again at once, and each object backs off by itself.
    tried.server.answer(&vec![late; FAILURES as usize + 1]);
    for number in 0..FAILURES {
        let failed = tried.execute(&plan(vec![create(&format!("b-{number}"))])).await;
        let requeue = failed.unwrap_err().requeue();
        assert_eq!(requeue, Requeue::WithBackoff(crate::queue::Backoff::TRANSIENT));
    }
    assert!(tried.server.asked().iter().all(|line| line.starts_with("POST")));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_rest_is_kept_so_long() {
    let resting =
        json!({ "kind": "Status", "code": 503, "message": "starting", "details": { "retryAfterSeconds": 5 } });
    let tried = Tried::new(&[(503, resting), (201, stored("b", "u"))]).await;
    tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    let seconds = std::time::Duration::from_secs;
    let waits = tried.execute(&plan(vec![create("b")])).await.unwrap_err();
    assert_eq!(waits.requeue(), Requeue::Postponed(seconds(5)));
    assert_eq!(tried.server.asked().len(), 1);
    advance(seconds(5)).await;
    assert_eq!(tried.execute(&plan(vec![create("b")])).await, Ok(Done::Written));
}

#[tokio::test(start_paused = true)]
async fn an_object_with_retry_after_waits_whatever_enqueues_it() {
    let denied = json!({ "kind": "Status", "code": 429, "message": "admission webhook \"a.b.c\" denied the request: slowly",
        "details": { "retryAfterSeconds": 30 } });
    let tried = Tried::new(&[(429, denied), (201, stored("b", "u")), (201, stored("a", "u"))]).await;
    tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    let seconds = std::time::Duration::from_secs;
    let waits = tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    assert_eq!(waits.requeue(), Requeue::Postponed(seconds(30)));
    assert_eq!(tried.execute(&plan(vec![create("b")])).await, Ok(Done::Written));
    advance(seconds(30)).await;
    assert_eq!(tried.execute(&plan(vec![create("a")])).await, Ok(Done::Written));
}
