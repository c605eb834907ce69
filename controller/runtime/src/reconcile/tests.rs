//! Reconciles of many keys whose deletes the deletion guard holds, and what a reconcile says of its end.

mod log;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use popcell_api::kind::INSTANCE;
use popcell_core::plan::DeletionGuard;
use serde_json::json;

use super::*;
use crate::context::testing::Fixture;

const OURS: usize = 50;

/// Deletes every Instance of the hub, one for each key, until the planes have recovered.
#[derive(Default)]
struct Doom {
    decided: AtomicUsize,
    recovered: AtomicBool,
}

impl Reconciler for Doom {
    fn name(&self) -> &'static str {
        "doom"
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        self.decided.fetch_add(1, Ordering::Relaxed);
        let found = snapshot
            .get(&Plane::Hub, INSTANCE, &key.namespace, &key.name)
            .known()??;
        let mut plan = Plan::default();
        if !self.recovered.load(Ordering::Relaxed) {
            let delete = Action::delete(&Plane::Hub, INSTANCE, &found, Vec::new(), DeletionGuard::Applies);
            plan.actions.push(delete);
        }
        Some(plan)
    }

    fn keys_for_event(&self, _: &Context, _: &Plane, _: Kind, _: &Change) -> Vec<Key> {
        Vec::new()
    }

    fn keys(&self, _: &Context, _: &Plane) -> Vec<Key> {
        (0..OURS).map(key).collect()
    }
}

fn key(number: usize) -> Key {
    Key::new(&Plane::Hub, "n", &format!("i-{number}"))
}

#[tokio::test(start_paused = true)]
async fn a_deletion_guard_that_holds_costs_each_reconcile_its_own_decision_only() {
    let doom = Arc::new(Doom::default());
    let fixture = Fixture::of(vec![doom.clone()], &[]).await;
    let instance = |number: usize| {
        json!({ "metadata": { "namespace": "n", "name": format!("i-{number}"), "uid": "u", "resourceVersion": "1",
            "labels": { "compute.datumapis.com/managed-by": "popcell" } } })
    };
    fixture.list(&Plane::Hub, INSTANCE, (0..OURS).map(instance).collect());
    let runner = Runner::new(doom.clone(), Arc::clone(&fixture.context));
    for number in 0..OURS {
        assert_eq!(runner.reconcile(&key(number)).await, Requeue::After(GUARD_RETRY));
    }
    assert_eq!(doom.decided.load(Ordering::Relaxed), 2 * OURS, "each key, and once all");
    let is_held = || fixture.context.applier.deletion_guards().is_held(&Plane::Hub, INSTANCE);
    assert!(is_held());

    // What recovers deletes nothing, so nobody asks.
    doom.recovered.store(true, Ordering::Relaxed);
    assert_eq!(runner.reconcile(&key(0)).await, Requeue::OnEvent);
    assert!(is_held());
    let stop = CancellationToken::new();
    let minutes = async {
        sleep(3 * GUARD_RETRY).await;
        stop.cancel();
    };
    tokio::join!(runner.review(&stop), minutes);
    assert!(!is_held());
    let decided = doom.decided.load(Ordering::Relaxed);
    assert_eq!(decided, 3 * OURS + 1, "and once more all when a minute was over");
}
