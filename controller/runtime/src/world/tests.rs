//! What becomes of the memory of a process when what it is about goes.

use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_core::plan::{Note, Plan, Plane};
use serde_json::{Value, json};

use super::testing::{Told, project};
use super::*;
use crate::queue::Key;

const SENT: fn() -> Value = || json!({ "new": 1 });

fn remember(told: &Told, target: &Target) {
    let memory = told.world.memory(&target.plane).unwrap();
    memory.ledger.record(target, &SENT(), &json!({}));
}

fn is_remembered(told: &Told, target: &Target) -> bool {
    let ledger = told.world.applier.ledger();
    ledger.explains(target, &SENT(), Some(&json!({})))
}

#[tokio::test]
async fn what_a_watch_does_not_tell_any_more_is_forgotten() {
    let (plane, other) = (project("p"), project("q"));
    let told = Told::of(Vec::new(), &["p", "q"]).await;
    let deployment = json!({ "metadata": { "namespace": "n", "name": "d", "uid": "d", "resourceVersion": "1" } });
    told.list(&plane, WORKLOAD_DEPLOYMENT, vec![deployment.clone()]);
    // Its watch begins, and is not listed before it ends again.
    tokio::task::yield_now().await;
    let gone = Target::namespaced(&plane, INSTANCE, "n", "a");
    let kept = [
        Target::namespaced(&plane, WORKLOAD_DEPLOYMENT, "n", "d2"),
        Target::namespaced(&other, INSTANCE, "n", "a"),
    ];
    for target in kept.iter().chain([&gone]) {
        remember(&told, target);
    }
    told.remove(&plane, WORKLOAD_DEPLOYMENT, deployment);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!is_remembered(&told, &gone));
    assert!(kept.iter().all(|target| is_remembered(&told, target)));
}

#[tokio::test]
async fn an_object_that_was_unreadable_when_it_was_deleted_is_forgotten_too() {
    let told = Told::of(Vec::new(), &[]).await;
    let unreadable = json!({ "metadata": { "namespace": "n", "name": "d", "labels": 3 } });
    let target = Target::namespaced(&Plane::Hub, WORKLOAD_DEPLOYMENT, "n", "d");
    told.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, vec![unreadable]);
    remember(&told, &target);
    told.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, Vec::new());
    assert!(!is_remembered(&told, &target));
}

#[tokio::test]
async fn the_notes_of_a_project_go_with_it_on_the_hub_too() {
    let told = Told::of(Vec::new(), &["p", "q"]).await;
    let hub_namespace = |name: &str, id: &str| {
        let labels = json!({ "meta.datumapis.com/upstream-cluster-name": format!("cluster-{id}"),
            "meta.datumapis.com/upstream-namespace": "default" });
        json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": labels } })
    };
    let all = vec![hub_namespace("ns-1", "p"), hub_namespace("ns-2", "q")];
    told.list(&Plane::Hub, NAMESPACE, all);
    for (plane, namespace) in [
        (Plane::Hub, "ns-1"),
        (Plane::Hub, "ns-2"),
        (project("p"), "default"),
        (project("q"), "default"),
    ] {
        let foreign = Target::namespaced(&plane, INSTANCE, namespace, "a");
        let plan = Plan {
            notes: vec![Note::Foreign(foreign)],
            ..Plan::default()
        };
        let key = Key::new(&plane, namespace, "a");
        told.world.memory(&plane).unwrap().tally.put("r", &key, Some(&plan));
    }
    told.world.planes.disengage(&project("p")).await;
    let left = [(("hub", "Instance"), 1), (("project", "Instance"), 1)];
    assert_eq!(told.world.tallied().foreign, left.into());
}

fn rejected(target: &Target) -> [Rejection; 1] {
    [Rejection::new(target, "create", "no")]
}

#[tokio::test]
async fn what_is_remembered_of_a_plane_goes_with_it_and_with_no_other() {
    let told = Told::of(Vec::new(), &["p", "q"]).await;
    let targets = ["p", "q"].map(|id| Target::namespaced(&project(id), INSTANCE, "n", "web-0"));
    for target in &targets {
        remember(&told, target);
        let memory = told.world.memory(&target.plane).unwrap();
        let key = Key::new(&target.plane, "n", "web-0");
        memory.rejections.put("r", &key, &rejected(target));
        memory.wake("r", &key);
    }
    told.world.planes.disengage(&project("p")).await;
    told.world.planes.engage(&project("p"), None).await.unwrap();
    for (target, remembered) in targets.iter().zip([false, true]) {
        let key = Key::new(&target.plane, "n", "web-0");
        assert_eq!(is_remembered(&told, target), remembered);
        assert_eq!(!told.world.rejections_of("r", &key).is_empty(), remembered);
        let memory = told.world.memory(&target.plane).unwrap();
        assert_eq!(memory.begin("r", &key).is_some(), remembered);
    }
}

#[tokio::test]
async fn of_what_is_rejected_on_several_planes_the_first_name_is_shown() {
    let told = Told::of(Vec::new(), &["p", "q"]).await;
    for (id, name) in [("p", "web-1"), ("q", "web-0")] {
        let target = Target::namespaced(&project(id), INSTANCE, "n", name);
        let memory = told.world.memory(&target.plane).unwrap();
        memory
            .rejections
            .put("r", &Key::new(&target.plane, "n", name), &rejected(&target));
    }
    let first = |prefix| told.world.first_rejection("r", "n", prefix, |_| true);
    let expected = Target::namespaced(&project("q"), INSTANCE, "n", "web-0");
    assert_eq!(first("web-").as_ref(), rejected(&expected).first());
    assert_eq!(first("api-"), None);
}
