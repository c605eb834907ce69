//! Reconciles of many keys whose deletes the deletion guard holds, and what a reconcile says of its end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use popcell_api::kind::INSTANCE;
use popcell_core::plan::DeletionGuard;
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber;

use super::*;
use crate::context::testing::{Fixture, Log};

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

fn instance(number: usize) -> Value {
    json!({ "metadata": { "namespace": "n", "name": format!("i-{number}"), "uid": "u", "resourceVersion": "1",
        "labels": { "compute.datumapis.com/managed-by": "popcell" } } })
}

fn key(number: usize) -> Key {
    Key::new(&Plane::Hub, "n", &format!("i-{number}"))
}

#[tokio::test(start_paused = true)]
async fn a_deletion_guard_that_holds_costs_each_reconcile_its_own_decision_only() {
    let doom = Arc::new(Doom::default());
    let fixture = Fixture::of(vec![doom.clone()], &[]).await;
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

/// Asks for this look, and nothing else.
struct Patient(Option<Duration>);

impl Reconciler for Patient {
    fn name(&self) -> &'static str {
        "patient"
    }

    fn decide(&self, _: &Snapshot<'_>, _: &Key, _: Timestamp) -> Option<Plan> {
        Some(Plan {
            requeue: self.0,
            ..Plan::default()
        })
    }

    fn keys_for_event(&self, _: &Context, _: &Plane, _: Kind, _: &Change) -> Vec<Key> {
        Vec::new()
    }

    fn keys(&self, _: &Context, _: &Plane) -> Vec<Key> {
        Vec::new()
    }
}

/// The lines that a reconcile of `i-7` logs.
async fn lines(reconciler: Arc<dyn Reconciler>, fixture: &Fixture) -> Vec<String> {
    let log = Log::default();
    let runner = Runner::new(reconciler, Arc::clone(&fixture.context));
    runner.reconcile(&key(7)).with_subscriber(log.subscriber()).await;
    log.text().lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_requeue_is_logged_with_key_and_delay() {
    let fixture = Fixture::of(Vec::new(), &[]).await;
    for (asked, said) in [
        (Some(Duration::from_secs(15)), Some("delay=15s")),
        (Some(Duration::from_mins(5)), Some("delay=300s")),
        (None, None),
    ] {
        let lines = lines(Arc::new(Patient(asked)), &fixture).await;
        let again: Vec<&String> = lines.iter().filter(|line| line.contains("requeued")).collect();
        assert_eq!(again.len(), usize::from(said.is_some()), "{lines:?}");
        for part in said.iter().copied().chain(["reconciler=\"patient\"", "n/i-7"]) {
            assert!(again.iter().all(|line| line.contains(part)), "{part}: {again:?}");
        }
    }
    // Deletes that the deletion guard holds are looked at again although the plan asks for nothing.
    fixture.list(&Plane::Hub, INSTANCE, (0..OURS).map(instance).collect());
    let lines = lines(Arc::new(Doom::default()), &fixture).await;
    assert!(
        lines
            .iter()
            .any(|line| line.contains("requeued") && line.contains("delay=60s")),
        "{lines:?}"
    );
}

#[test]
fn a_requeue_is_logged_at_info_once_for_a_change() {
    let log = Log::default();
    let plan = Plan {
        requeue: Some(Duration::from_secs(15)),
        ..Plan::default()
    };
    tracing::subscriber::with_default(log.subscriber(), || {
        for done in [Done::Written, Done::Unchanged, Done::Unchanged] {
            ended(&plan, done);
        }
    });
    let text = log.text();
    let levels: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(levels, ["INFO", "DEBUG", "DEBUG"], "{text}");
}
