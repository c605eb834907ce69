//! What one failure leaves of a plan.

use popcell_core::plan::Order;

use super::*;

fn gone() -> Vec<Proof> {
    let source = create("source").target().clone();
    vec![Proof::Gone { source, uid: None }]
}

fn independent(actions: Vec<Action>) -> Plan {
    Plan {
        order: Order::Independent,
        ..plan(actions)
    }
}

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

/// A plan that writes to the hub and then the status of an object in a plane, and tells of it.
fn with_status(plane: &Plane) -> Plan {
    let object = object("own", "u");
    Plan {
        status: Edit::status(plane, kind::WORKLOAD_DEPLOYMENT, &object, json!({ "replicas": 0 })),
        events: vec![Event::warning(
            plane,
            kind::WORKLOAD_DEPLOYMENT,
            &object,
            "Reason",
            "note",
        )],
        ..plan(vec![labelled(), create("b")])
    }
}

const TOLD: &str = "POST /apis/events.k8s.io/v1/namespaces/ns-1/events";

#[tokio::test]
async fn a_delete_without_proof_holds_up_no_other() {
    let deletes = || {
        ["a", "b", "c", "d"]
            .map(|name| delete(name, gone(), DeletionGuard::Exempt))
            .to_vec()
    };
    let answers = [
        // One that cannot be read, one that is there, one whose delete is refused, and one that goes.
        (200, json!("<html>welcome</html>")),
        (200, stored("source", "u")),
        no_source(),
        status(403, "no"),
        no_source(),
        (200, json!({})),
    ];
    let tried = Tried::new(&answers).await;
    let failed = tried.execute(&independent(deletes())).await.unwrap_err();
    assert_eq!(
        failed.requeue(),
        Requeue::WithBackoff(crate::queue::Backoff::TRANSIENT),
        "{failed}"
    );
    let read = format!("GET {ALL}/source");
    assert_eq!(
        tried.server.asked(),
        [
            read.clone(),
            read.clone(),
            read.clone(),
            format!("DELETE {ALL}/c"),
            read,
            format!("DELETE {ALL}/d")
        ]
    );
    let counted = tried.meter.0.lock().unwrap().clone();
    assert_eq!(
        counted,
        [
            "WorkloadDeployment unproven",
            "WorkloadDeployment unproven",
            "delete WorkloadDeployment 403",
            "delete WorkloadDeployment 200"
        ]
    );
    // Where they may rest on each other, the first ends the reconcile.
    let tried = Tried::new(&answers).await;
    assert!(tried.execute(&plan(deletes())).await.is_err());
    assert_eq!(tried.server.asked().len(), 1);
}

#[tokio::test]
async fn the_worst_of_several_failures_is_the_verdict() {
    let creates = || ["a", "b", "c"].map(create).to_vec();
    for (answers, expected) in [
        ([status(403, "no"), status(500, "oh"), status(403, "no")], "(500)"),
        (
            [status(403, "no"), status(500, "oh"), status(409, "exists")],
            "has changed",
        ),
        (
            [status(403, "no"), (201, stored("b", "u")), (201, stored("c", "u"))],
            "(403)",
        ),
    ] {
        let tried = Tried::new(&answers).await;
        let failed = tried.execute(&independent(creates())).await.unwrap_err();
        assert!(failed.to_string().contains(expected), "{failed}");
        assert_eq!(tried.server.asked().len(), 3);
    }
    // Without the permit nothing more is tried.
    let tried = Tried::new(&[]).await;
    tried.permit.store(false, Ordering::Relaxed);
    assert_eq!(
        tried.execute(&independent(creates())).await,
        Err(ApplyError::NotAllowed)
    );
    assert!(tried.server.asked().is_empty());
}

#[tokio::test]
async fn a_hub_that_refuses_does_not_hide_the_status_of_the_project() {
    for refused in [
        status(403, "no"),
        status(500, "oh"),
        (
            422,
            json!({ "kind": "Status", "code": 422, "message": "invalid", "details": { "causes": [{ "reason": "x" }] } }),
        ),
    ] {
        let tried = Tried::new(&[refused.clone(), (200, stored("own", "u")), (201, json!({}))]).await;
        tried.applier.planes.engage(&project(), None).await.unwrap();
        assert!(tried.carry_out_and_report(&with_status(&project())).await.is_err());
        // What follows on the hub is not sent; the status is, and the event that belongs to it.
        let expected = [
            format!("PATCH {ALL}/a"),
            format!("PATCH {ALL}/own/status"),
            TOLD.to_owned(),
        ];
        assert_eq!(tried.server.asked(), expected, "{refused:?}");
    }
}

#[tokio::test]
async fn a_status_that_a_failure_may_contradict_is_not_written() {
    // It was decided on what has changed since, or it is on the plane where something is missing now.
    for (answer, plane) in [(status(409, "changed"), project()), (status(403, "no"), Plane::Hub)] {
        let tried = Tried::new(&[answer]).await;
        tried.applier.planes.engage(&project(), None).await.unwrap();
        assert!(tried.execute(&with_status(&plane)).await.is_err());
        assert_eq!(tried.server.asked(), [format!("PATCH {ALL}/a")]);
    }
    // Where it is not decided again, it would never be written.
    let tried = Tried::new(&[status(409, "changed"), (200, stored("own", "u")), (201, json!({}))]).await;
    tried.applier.planes.engage(&project(), None).await.unwrap();
    let plan = with_status(&project());
    let (mut responses, difference) = (WriteResponses::default(), |_: &Plane, _| Difference::default());
    let last = tried.applier.execute(&plan, &difference, true, &mut responses).await;
    assert!(last.unwrap_err().stale().is_some());
    assert_eq!(
        tried.server.asked()[1..],
        [format!("PATCH {ALL}/own/status"), TOLD.to_owned()]
    );
    // A status that is not taken is not told of either.
    let tried = Tried::new(&[status(403, "no"), status(500, "oh")]).await;
    tried.applier.planes.engage(&project(), None).await.unwrap();
    let failed = tried.carry_out_and_report(&with_status(&project())).await.unwrap_err();
    assert!(failed.to_string().contains("(500)"), "{failed}");
    assert_eq!(tried.server.asked().len(), 2);
}
