//! Servers that are away.

use popcell_api::kind;
use serde_json::json;
use tokio::time::advance;

use super::*;
use crate::apply::doors::REFUSED;
use crate::breaker::{FAILURES, PROBE, Server as Circuit};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_once_in_a_while() {
    let tried = Tried::new(&[]).await;
    for _ in 0..FAILURES {
        assert!(matches!(
            tried.carry_out(&plan(vec![create("a")])).await,
            Err(ApplyError::Failed(_))
        ));
    }
    tried.server.asked();
    let away = tried.carry_out(&plan(vec![create("a")])).await.unwrap_err();
    assert_eq!(away.verdict(), Verdict::Postponed(PROBE));
    assert!(tried.server.asked().is_empty());
    assert_eq!(tried.applier.open_circuits(), 1);
    advance(PROBE).await;
    tried.server.answers.lock().unwrap().push_back((201, stored("a", "u")));
    assert_eq!(tried.carry_out(&plan(vec![create("a")])).await, Ok(Done::Written));
    assert_eq!(tried.applier.open_circuits(), 0);
}

#[tokio::test(start_paused = true)]
async fn discovery_that_is_away_is_no_fault_of_the_projects() {
    let discovery = Server::default();
    let client = discovery.client(&Plane::Hub).unwrap();
    let tried = Tried::of(&[], |options| options.discovery = Some((client, kind::PROJECT))).await;
    let project = Plane::Project("p".to_owned());
    tried.applier.planes.engage(&project, None).await.unwrap();
    for _ in 0..FAILURES {
        let failed = tried.applier.project("p").await;
        assert!(matches!(failed, Err(ApplyError::Failed(_))));
    }
    assert!(tried.applier.client(&project).is_ok());
    assert_eq!(discovery.asked().len(), FAILURES as usize);
    let away = tried.applier.project("q").await.unwrap_err();
    assert_eq!(away.to_string(), "failed to reach the discovery server: it is away");
    assert_eq!(away.verdict(), Verdict::Postponed(PROBE));
    assert!(discovery.asked().is_empty());
    advance(PROBE).await;
    let answer = (200, json!({ "metadata": { "name": "p", "uid": "u" } }));
    discovery.answers.lock().unwrap().push_back(answer);
    assert_eq!(tried.applier.project("p").await, Ok(ProjectAnswer::Is("u".to_owned())));
    assert_eq!(tried.applier.open_circuits(), 0);
}

#[tokio::test]
async fn a_plane_that_has_left_leaves_no_circuit() {
    let tried = Tried::new(&[]).await;
    tried.applier.planes.disengage(&Plane::Hub).await;
    tried.applier.retire(&Plane::Hub);
    for _ in 0..FAILURES {
        // The answer to a request that was under way.
        let late = Err::<(), _>(Refusal::Silent("not within 4 s".to_owned()));
        tried.applier.settle(&Circuit::Of(Plane::Hub), late).unwrap_err();
    }
    assert_eq!(tried.applier.open_circuits(), 0);
    tried.applier.planes.engage(&Plane::Hub, None).await.unwrap();
    assert!(tried.applier.client(&Plane::Hub).is_ok());
}

#[tokio::test(start_paused = true)]
async fn c27_what_a_namespace_does_not_take_is_tried_once_in_a_while() {
    let tried = Tried::new(&vec![status(403, "being terminated"); 300]).await;
    for number in 0..300 {
        let failed = tried.carry_out(&plan(vec![create(&format!("c-{number}"))])).await;
        let verdict = failed.unwrap_err().verdict();
        let expected = if number < REFUSED {
            Verdict::Failed(crate::queue::Backoff::REFUSED)
        } else {
            Verdict::Postponed(PROBE)
        };
        assert_eq!(verdict, expected, "{number}");
    }
    assert_eq!(tried.server.asked().len(), REFUSED);
    let Action::Create { target, .. } = create("c-7") else {
        panic!("no creation");
    };
    let shut = tried.applier.may_create(&target).unwrap_err();
    assert!(matches!(&shut, ApplyError::Shut(..)) && shut.to_string().contains("being terminated"));
    advance(PROBE).await;
    assert_eq!(tried.applier.may_create(&target), Ok(()));
    // A plane that is listed anew may take it now, whatever it said.
    tried.carry_out(&plan(vec![create("c-7")])).await.unwrap_err();
    assert!(tried.applier.may_create(&target).is_err());
    tried.applier.relisted(&Plane::Hub, kind::INSTANCE);
    assert_eq!(tried.applier.may_create(&target), Ok(()));
}
