//! Another writer who answers to each of our writes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cell::testing::cell;
use crate::queue::{RateLimit, WorkQueue, Workers};
use crate::reconcile::Runner;
use crate::reconcilers::cell as reconcilers;

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn every_key_of_a_cell_has_a_pace() {
    for reconciler in reconcilers(&Arc::new(cell(None))) {
        let rate_limit = reconciler.rate_limit();
        assert!(
            rate_limit.is_some_and(|rate_limit| bound(rate_limit) <= 2500),
            "{}: {rate_limit:?}",
            reconciler.name()
        );
    }
}

/// Reconciles that a pace allows in a minute.
fn bound(rate_limit: RateLimit) -> u128 {
    u128::from(rate_limit.burst) + MINUTE.as_millis() / rate_limit.every.as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_writer_who_fights_over_the_status_of_a_deployment_makes_no_storm() {
    let reconciles = Arc::<AtomicU32>::default();
    let all = reconcilers(&Arc::new(cell(None)));
    let deployments = Arc::clone(all.iter().find(|one| one.name() == "deployment").unwrap());
    let rate_limit = deployments.rate_limit();
    let script = Arc::<Script>::default();
    let fixture = Arc::new(Fixture::in_cell(all, &[], script.answer()).await);
    fixture.list(&Plane::Cell, INSTANCE, Vec::new());
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, Vec::new());
    let queue = WorkQueue::rate_limited(Workers { total: 1, share: 1 }, rate_limit);
    let key = Key::new(&Plane::Cell, "ns-1", "web");
    let stop = CancellationToken::new();
    let runner = Arc::new(Runner::new(deployments, Arc::clone(&fixture.context)));
    let count = Arc::clone(&reconciles);
    let reconcile = move |key: Arc<Key>| {
        let (runner, count) = (Arc::clone(&runner), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            runner.reconcile(&key).await
        }
    };
    let fight = async {
        for version in 2..6_000_u32 {
            let mut one = deployment("ns-1", "web", "wd");
            one["metadata"]["resourceVersion"] = json!(version.to_string());
            one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
            one["spec"]["scaleSettings"]["minReplicas"] = json!(0);
            one["status"] = json!({ "replicas": 7 });
            fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, one);
            queue.add(key.clone());
            sleep(MINUTE / 6_000).await;
        }
        stop.cancel();
    };
    tokio::join!(queue.run(reconcile, stop.clone()), fight);
    let reconciles = u128::from(reconciles.load(Ordering::Relaxed));
    let writes = script.writes().len();
    assert!(
        reconciles <= bound(rate_limit.unwrap()) + 1 && writes > 100,
        "{reconciles} reconciles, {writes} writes"
    );
}
