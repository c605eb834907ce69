//! What is logged of the decision to look again.

use std::time::Duration;

use tracing::instrument::WithSubscriber;

use super::*;
use crate::context::testing::Log;

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
    let instance = |number: usize| {
        json!({ "metadata": { "namespace": "n", "name": format!("i-{number}"), "uid": "u", "resourceVersion": "1",
            "labels": { "compute.datumapis.com/managed-by": "popcell" } } })
    };
    fixture.list(&Plane::Hub, INSTANCE, (0..OURS).map(instance).collect());
    let lines = lines(Arc::new(Doom::default()), &fixture).await;
    assert!(
        lines
            .iter()
            .any(|line| line.contains("requeued") && line.contains("delay=60s")),
        "{lines:?}"
    );
}
