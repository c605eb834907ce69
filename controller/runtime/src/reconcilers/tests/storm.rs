//! Another writer who answers to each of our writes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cell::testing::cell;
use crate::pass::Runner;
use crate::queue::{Pace, WorkQueue, Workers};
use crate::reconcilers::cell as reconcilers;

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn every_key_of_a_cell_has_a_pace() {
    for reconciler in reconcilers(&Arc::new(cell(None))) {
        let pace = reconciler.pace();
        assert!(
            pace.is_some_and(|pace| bound(pace) <= 2500),
            "{}: {pace:?}",
            reconciler.name()
        );
    }
}

/// Passes that a pace allows in a minute.
fn bound(pace: Pace) -> u128 {
    u128::from(pace.burst) + MINUTE.as_millis() / pace.every.as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_writer_who_fights_over_the_status_of_a_deployment_makes_no_storm() {
    let passes = Arc::<AtomicU32>::default();
    let all = reconcilers(&Arc::new(cell(None)));
    let deployments = Arc::clone(all.iter().find(|one| one.name() == "deployment").unwrap());
    let pace = deployments.pace();
    let script = Arc::<Script>::default();
    let told = Arc::new(Told::in_cell(all, &[], script.answer()).await);
    told.list(&Plane::Cell, INSTANCE, Vec::new());
    told.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, Vec::new());
    let queue = WorkQueue::paced(Workers { total: 1, share: 1 }, pace);
    let key = Key::new(&Plane::Cell, "ns-1", "web");
    let stop = CancellationToken::new();
    let runner = Arc::new(Runner::new(deployments, Arc::clone(&told.world)));
    let count = Arc::clone(&passes);
    let pass = move |key: Arc<Key>| {
        let (runner, count) = (Arc::clone(&runner), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            runner.pass(&key).await
        }
    };
    let fight = async {
        for version in 2..6_000_u32 {
            let mut one = deployment("ns-1", "web", "wd");
            one["metadata"]["resourceVersion"] = json!(version.to_string());
            one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
            one["spec"]["scaleSettings"]["minReplicas"] = json!(0);
            one["status"] = json!({ "replicas": 7 });
            told.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, one);
            queue.add(key.clone());
            sleep(MINUTE / 6_000).await;
        }
        stop.cancel();
    };
    tokio::join!(queue.run(pass, stop.clone()), fight);
    let passes = u128::from(passes.load(Ordering::Relaxed));
    let writes = script.writes().len();
    assert!(
        passes <= bound(pace.unwrap()) + 1 && writes > 100,
        "{passes} passes, {writes} writes"
    );
}
