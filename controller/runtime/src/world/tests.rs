//! What becomes of the memory of a process when what it is about goes.

use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_core::plan::Plane;
use serde_json::{Value, json};

use super::testing::{Told, project};
use super::*;

const SENT: fn() -> Value = || json!({ "new": 1 });

fn remember(told: &Told, target: &Target) {
    told.world.applier.ledger().record(target, &SENT(), &json!({}));
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
async fn c02_what_could_not_be_read_at_last_is_forgotten_too() {
    let told = Told::of(Vec::new(), &[]).await;
    let unreadable = json!({ "metadata": { "namespace": "n", "name": "d", "labels": 3 } });
    let target = Target::namespaced(&Plane::Hub, WORKLOAD_DEPLOYMENT, "n", "d");
    told.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, vec![unreadable]);
    remember(&told, &target);
    told.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, Vec::new());
    assert!(!is_remembered(&told, &target));
}
