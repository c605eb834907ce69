//! What becomes of the memory of a process when what it is about goes.

use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_core::plan::{Note, Plan, Plane};
use serde_json::{Value, json};

use super::testing::{Fixture, project};
use super::*;
use crate::queue::Key;

const SENT: fn() -> Value = || json!({ "new": 1 });

fn remember(fixture: &Fixture, target: &Target) {
    let memory = fixture.context.memory(&target.plane).unwrap();
    memory.spec_echoes.record(target, &SENT(), &json!({}));
}

fn is_remembered(fixture: &Fixture, target: &Target) -> bool {
    let spec_echoes = fixture.context.applier.spec_echoes();
    spec_echoes.explains(target, &SENT(), Some(&json!({})))
}

#[tokio::test]
async fn what_a_watch_does_not_tell_any_more_is_forgotten() {
    let (plane, other) = (project("p"), project("q"));
    let fixture = Fixture::of(Vec::new(), &["p", "q"]).await;
    let deployment = json!({ "metadata": { "namespace": "n", "name": "d", "uid": "d", "resourceVersion": "1" } });
    fixture.list(&plane, WORKLOAD_DEPLOYMENT, vec![deployment.clone()]);
    // Its watch begins, and is not listed before it ends again.
    tokio::task::yield_now().await;
    let gone = Target::namespaced(&plane, INSTANCE, "n", "a");
    let kept = [
        Target::namespaced(&plane, WORKLOAD_DEPLOYMENT, "n", "d2"),
        Target::namespaced(&other, INSTANCE, "n", "a"),
    ];
    for target in kept.iter().chain([&gone]) {
        remember(&fixture, target);
    }
    fixture.remove(&plane, WORKLOAD_DEPLOYMENT, deployment);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!is_remembered(&fixture, &gone));
    assert!(kept.iter().all(|target| is_remembered(&fixture, target)));
}

#[tokio::test]
async fn an_object_that_was_unreadable_when_it_was_deleted_is_forgotten_too() {
    let fixture = Fixture::of(Vec::new(), &[]).await;
    let unreadable = json!({ "metadata": { "namespace": "n", "name": "d", "labels": 3 } });
    let target = Target::namespaced(&Plane::Hub, WORKLOAD_DEPLOYMENT, "n", "d");
    fixture.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, vec![unreadable]);
    remember(&fixture, &target);
    fixture.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, Vec::new());
    assert!(!is_remembered(&fixture, &target));
}

#[tokio::test]
async fn the_notes_of_a_project_go_with_it_on_the_hub_too() {
    let fixture = Fixture::of(Vec::new(), &["p", "q"]).await;
    let hub_namespace = |name: &str, id: &str| {
        let labels = json!({ "meta.datumapis.com/upstream-cluster-name": format!("cluster-{id}"),
            "meta.datumapis.com/upstream-namespace": "default" });
        json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": labels } })
    };
    let all = vec![hub_namespace("ns-1", "p"), hub_namespace("ns-2", "q")];
    fixture.list(&Plane::Hub, NAMESPACE, all);
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
        fixture
            .context
            .memory(&plane)
            .unwrap()
            .note_gauges
            .put("r", &key, Some(&plan));
    }
    fixture.context.planes.disengage(&project("p")).await;
    let left = [(("hub", "Instance"), 1), (("project", "Instance"), 1)];
    assert_eq!(fixture.context.gauge_counts().foreign, left.into());
}

fn rejected(target: &Target) -> [Rejection; 1] {
    [Rejection::new(target, "create", "no")]
}

#[tokio::test]
async fn what_is_remembered_of_a_plane_goes_with_it_and_with_no_other() {
    let fixture = Fixture::of(Vec::new(), &["p", "q"]).await;
    let targets = ["p", "q"].map(|id| Target::namespaced(&project(id), INSTANCE, "n", "web-0"));
    for target in &targets {
        remember(&fixture, target);
        let memory = fixture.context.memory(&target.plane).unwrap();
        let key = Key::new(&target.plane, "n", "web-0");
        memory.rejections.put("r", &key, &rejected(target));
        memory.enqueue("r", &key);
    }
    fixture.context.planes.disengage(&project("p")).await;
    fixture.context.planes.engage(&project("p"), None).await.unwrap();
    for (target, remembered) in targets.iter().zip([false, true]) {
        let key = Key::new(&target.plane, "n", "web-0");
        assert_eq!(is_remembered(&fixture, target), remembered);
        assert_eq!(!fixture.context.rejections_of("r", &key).is_empty(), remembered);
        let memory = fixture.context.memory(&target.plane).unwrap();
        assert_eq!(memory.begin("r", &key).is_some(), remembered);
    }
}

#[tokio::test]
async fn of_what_is_rejected_on_several_planes_the_first_name_is_shown() {
    let fixture = Fixture::of(Vec::new(), &["p", "q"]).await;
    for (id, name) in [("p", "web-1"), ("q", "web-0")] {
        let target = Target::namespaced(&project(id), INSTANCE, "n", name);
        let memory = fixture.context.memory(&target.plane).unwrap();
        memory
            .rejections
            .put("r", &Key::new(&target.plane, "n", name), &rejected(&target));
    }
    let first = |prefix| fixture.context.first_rejection(&["r"], None, "n", prefix, |_| true);
    let expected = Target::namespaced(&project("q"), INSTANCE, "n", "web-0");
    assert_eq!(first("web-").as_ref(), rejected(&expected).first());
    assert_eq!(first("api-"), None);
}
