//! What a replica queues before it leads, and what when it begins to.

use std::collections::BTreeSet;
use std::sync::{Mutex, Weak};

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{
    CLUSTER, INSTANCE, NETWORK, PROPAGATION_POLICY, RESOURCE_BINDING, WORKLOAD, WORKLOAD_DEPLOYMENT,
};
use popcell_core::plan::{NAMESPACE, Plan, RESOURCE_QUOTA};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::context::testing::{Fixture, project};
use crate::queue::{Key, Requeue};
use crate::reconcile::{LiveReads, Snapshot};
use crate::reconcilers::management;

/// Enqueues one key for each event, and has one key of its own.
#[derive(Default)]
struct Counting {
    noted: Mutex<usize>,
    enqueued: Mutex<usize>,
    /// Notified of an event while its keys are read.
    meanwhile: OnceLock<Weak<EventRouter>>,
}

impl Reconciler for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn decide(&self, _: &Snapshot<'_>, _: &Key, _: Timestamp) -> Option<Plan> {
        None
    }

    fn observe_event(&self, _: &Plane, _: Kind, _: &Change) {
        *self.noted.lock().unwrap() += 1;
    }

    fn keys_for_event(&self, _: &Context, plane: &Plane, _: Kind, _: &Change) -> Vec<Key> {
        *self.enqueued.lock().unwrap() += 1;
        vec![Key::new(plane, "n", "enqueued")]
    }

    fn keys_on_disengage(&self, _: &Context, _: &Plane) -> Vec<Key> {
        vec![Key::new(&Plane::Hub, "n", "left")]
    }

    fn keys(&self, _: &Context, _: &Plane) -> Vec<Key> {
        Vec::new()
    }

    fn initial_keys(&self, _: &Context) -> Vec<Key> {
        let found = vec![Key::new(&Plane::Hub, "n", "found")];
        if let Some(event_router) = self.meanwhile.get().and_then(Weak::upgrade) {
            event_router.changed(&Plane::Hub, WORKLOAD, &Change::Listed);
        }
        found
    }
}

#[tokio::test]
async fn a_replica_that_does_not_lead_observes_events_but_enqueues_nothing() {
    let counting = Arc::new(Counting::default());
    let fixture = Fixture::of(vec![counting.clone()], &["p"]).await;
    fixture.list(&Plane::Hub, INSTANCE, vec![named("n", "a", "1")]);
    fixture.put(&Plane::Hub, INSTANCE, named("n", "a", "2"));
    fixture.remove(&Plane::Hub, INSTANCE, named("n", "a", "3"));
    fixture.context.planes.disengage(&project("p")).await;
    // The list of one, its end, a change and a deletion are taken in all the same.
    assert_eq!(*counting.noted.lock().unwrap(), 4);
    assert_eq!((*counting.enqueued.lock().unwrap(), fixture.depth("counting")), (0, 0));

    fixture.event_router.lead();
    assert_eq!((*counting.enqueued.lock().unwrap(), fixture.depth("counting")), (0, 1));
    fixture.put(&Plane::Hub, INSTANCE, named("n", "a", "4"));
    assert_eq!((*counting.enqueued.lock().unwrap(), fixture.depth("counting")), (1, 2));
}

#[tokio::test]
async fn no_event_is_lost_while_a_replica_becomes_the_leader() {
    let counting = Arc::new(Counting::default());
    let fixture = Fixture::of(vec![counting.clone()], &[]).await;
    counting.meanwhile.set(Arc::downgrade(&fixture.event_router)).unwrap();
    fixture.event_router.lead();
    assert_eq!(
        fixture.depth("counting"),
        2,
        "what was found, and what an event woke meanwhile"
    );
}

/// All planes with something for every reconciler, some of it in a hub namespace that has lost its labels.
fn context() -> Vec<(Plane, Kind, Vec<Value>)> {
    let labels = json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-p", "meta.datumapis.com/upstream-namespace":
        "default", "compute.datumapis.com/managed-by": "popcell" });
    let mut hub_namespace = named("", "ns-1", "1");
    hub_namespace["metadata"]["labels"] = labels;
    let deployment = |namespace: &str| {
        let mut one = named(namespace, "a-dfw", "1");
        one["spec"] = json!({ "cityCode": "DFW", "workloadRef": { "name": "a" } });
        one
    };
    let copy = |namespace: &str, name: &str| {
        let mut one = named(namespace, name, "1");
        one["metadata"]["labels"] = json!({ "compute.datumapis.com/source-cluster": "dfw-1" });
        one["metadata"]["annotations"] = json!({ "compute.datumapis.com/source-uid": "cell" });
        one
    };
    let policy = |namespace: &str, name: &str| {
        let mut one = named(namespace, name, "1");
        one["metadata"]["labels"] = json!({ "compute.datumapis.com/managed-by": "popcell" });
        one["spec"] = json!({});
        one
    };
    let hub = [
        (NAMESPACE, vec![hub_namespace]),
        (WORKLOAD_DEPLOYMENT, vec![deployment("ns-1"), deployment("ns-bare")]),
        (
            PROPAGATION_POLICY,
            vec![policy("ns-1", "city-old"), policy("ns-bare", "city-dfw")],
        ),
        (INSTANCE, vec![copy("ns-1", "a-dfw-0"), copy("ns-bare", "b-0")]),
        (CLUSTER, vec![named("", "dfw-1", "1"), named("", "ord-1", "1")]),
        (RESOURCE_BINDING, Vec::new()),
        (RESOURCE_QUOTA, Vec::new()),
        (NETWORK, vec![policy("ns-1", "default"), policy("ns-bare", "other")]),
    ];
    let project_kinds = [
        (WORKLOAD, vec![named("default", "a", "1")]),
        (WORKLOAD_DEPLOYMENT, vec![deployment("default")]),
        (
            INSTANCE,
            vec![named("default", "a-dfw-0", "1"), named("default", "a-dfw-1", "1")],
        ),
    ];
    let hub = hub.into_iter().map(|(kind, objects)| (Plane::Hub, kind, objects));
    let projects = project_kinds
        .into_iter()
        .map(|(kind, objects)| (project("p"), kind, objects));
    hub.chain(projects).collect()
}

#[tokio::test]
async fn a_takeover_enqueues_what_the_first_list_would_have_enqueued() {
    let (first, second) = (
        Fixture::of(management(true), &["p"]).await,
        Fixture::of(management(true), &["p"]).await,
    );
    first.event_router.lead();
    for fixture in [&first, &second] {
        for (plane, kind, objects) in context() {
            fixture.list(&plane, kind, objects);
        }
    }
    second.event_router.lead();
    for (led, taken) in first
        .event_router
        .queued_reconcilers()
        .iter()
        .zip(second.event_router.queued_reconcilers())
    {
        let reconciler = &taken.reconciler;
        let (led, taken) = (drain(&led.queue).await, drain(&taken.queue).await);
        assert!(!taken.is_empty(), "{}", reconciler.name());
        // Lists name objects too that nothing is to be decided about.
        for key in led.difference(&taken) {
            let live = LiveReads::default();
            let plan = reconciler.decide(&Snapshot::new(&second.context, &live), key, Timestamp::now());
            let nothing = |plan: &Plan| Plan {
                order: plan.order,
                ..Plan::default()
            };
            assert!(
                plan.as_ref().is_none_or(|plan| *plan == nothing(plan)),
                "{} has not found {key}: {plan:?}",
                reconciler.name()
            );
        }
    }
}

async fn drain(queue: &WorkQueue) -> BTreeSet<Key> {
    let (seen, stop) = (Arc::new(Mutex::new(BTreeSet::new())), CancellationToken::new());
    let log = Arc::clone(&seen);
    let reconcile = move |key: Arc<Key>| {
        log.lock().unwrap().insert(Key::clone(&key));
        async { Requeue::OnEvent }
    };
    let idle = async {
        while queue.stats().depth + queue.stats().running > 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    tokio::join!(queue.run(reconcile, stop.clone()), idle);
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn named(namespace: &str, name: &str, version: &str) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name, "uid": name, "resourceVersion": version } })
}
