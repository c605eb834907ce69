//! What may not be sent.

use popcell_api::kind;
use popcell_core::edit::Edit;
use serde_json::json;

use super::*;

#[tokio::test]
async fn without_the_permit_and_in_a_dry_run_nothing_is_sent() {
    let tried = Tried::new(&[]).await;
    tried.permit.store(false, Ordering::Relaxed);
    let refused = tried.execute(&plan(vec![create("a")])).await;
    assert_eq!(refused, Err(ApplyError::NotAllowed));
    let dry = Tried::with(&[], true).await;
    let proof = Proof::Gone {
        source: create("a").target().clone(),
        uid: None,
    };
    let to_delete = delete("a", vec![proof], DeletionGuard::Exempt);
    assert_eq!(
        dry.execute(&plan(vec![create("a"), to_delete])).await,
        Ok(Done::Planned)
    );
    assert!(tried.server.asked().is_empty() && dry.server.asked().is_empty());
}

#[tokio::test]
async fn after_a_stop_a_plan_ends_with_the_request_under_way() {
    let gone = Proof::Gone {
        source: create("source").target().clone(),
        uid: None,
    };
    let object = object("a", "u");
    for (actions, answer) in [
        (vec![create("a"), create("b")], (201, stored("a", "u"))),
        (
            vec![delete("a", vec![gone], DeletionGuard::Exempt), create("b")],
            no_source(),
        ),
    ] {
        // The stop comes while the first request is answered.
        let asks = AtomicBool::new(true);
        let until_asked = Arc::new(move || asks.swap(false, Ordering::Relaxed));
        let tried = Tried::of(&[answer], |options| options.may_write = until_asked).await;
        let plan = Plan {
            actions,
            status: Edit::status(
                &Plane::Hub,
                kind::WORKLOAD_DEPLOYMENT,
                &object,
                json!({ "replicas": 0 }),
            ),
            events: vec![Event::warning(
                &Plane::Hub,
                kind::WORKLOAD_DEPLOYMENT,
                &object,
                "R",
                "n",
            )],
            ..Plan::default()
        };
        assert_eq!(tried.execute(&plan).await, Err(ApplyError::NotAllowed));
        assert_eq!(tried.server.asked().len(), 1);
        let target = create("b").target().clone();
        assert_eq!(tried.applier.read(&target).await, Err(ApplyError::NotAllowed));
        let listed = tried.applier.list(&Plane::Hub, kind::INSTANCE, None, "").await;
        assert_eq!(listed.err(), Some(ApplyError::NotAllowed));
        assert!(tried.server.asked().is_empty());
        // Who a cell is its replicas learn before they lead.
        tried.server.answers.lock().unwrap().push_back((200, stored("b", "u")));
        assert!(matches!(tried.applier.look(&target).await, Ok(Some(_))));
    }
    assert_eq!(ApplyError::NotAllowed.requeue(), Requeue::OnEvent);
}

#[tokio::test]
async fn a_dry_run_counts_what_it_would_send() {
    let dry = Tried::with(&[], true).await;
    let object = object("a", "u");
    let plan = Plan {
        actions: vec![create("a"), labelled(), delete("a", Vec::new(), DeletionGuard::Applies)],
        status: Edit::status(&Plane::Hub, kind::WORKLOAD, &object, json!({ "replicas": 0 })),
        events: vec![Event::warning(&Plane::Hub, kind::WORKLOAD, &object, "R", "n")],
        ..Plan::default()
    };
    assert_eq!(dry.execute(&plan).await, Ok(Done::Planned));
    assert_eq!(dry.execute(&Plan::default()).await, Ok(Done::Unchanged));
    let counted = [
        "planned create WorkloadDeployment",
        "planned patch WorkloadDeployment",
        "planned delete WorkloadDeployment",
        "planned patch Workload",
        "planned create Event",
    ];
    assert_eq!(*dry.meter.0.lock().unwrap(), counted);
}
