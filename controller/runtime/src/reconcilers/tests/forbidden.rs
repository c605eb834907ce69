//! Reads for which a right is missing: they cost little, and its coming is seen soon.

use std::time::Duration;

use popcell_api::finalizers::FEDERATOR;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::reconcile::Runner;

/// WorkloadDeployments of project `p` that are being deleted, so many: before their finalizers go, the hub is asked what it has.
async fn going(script: &Arc<Script>, many: usize) -> Fixture {
    let fixture = fixture(script, &["p"]).await;
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project p GET /api/v1/namespaces/default", 200, namespace);
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    for number in 0..many {
        let name = format!("web{number}");
        let mut one = deployment("default", &name, &format!("uid-{name}"));
        one["metadata"]["finalizers"] = json!([FEDERATOR]);
        one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, one);
    }
    fixture
}

/// Finalizers that were taken away since the last call, and reads of the hub.
fn counted(script: &Script) -> (usize, usize) {
    let asked = script.asked();
    let ends = |line: &&String| line.starts_with("project p PATCH") && !line.ends_with("/status");
    let reads = asked
        .iter()
        .filter(|line| line.starts_with("hub GET") && line.contains("/workloaddeployments/"));
    (asked.iter().filter(ends).count(), reads.count())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_right_that_is_missing_is_seen_within_ten_seconds_and_costs_one_read_in_eight() {
    for many in [1, 3, 200] {
        let script = Arc::<Script>::default();
        let fixture = going(&script, many).await;
        let at = format!("hub GET {DEPLOYMENTS}/ns-n1/workloaddeployments/");
        script.say(&at, 403, refusal(403));
        let queued = fixture.queued("federation");
        for number in 0..many {
            queued
                .queue
                .add(Key::new(&project("p"), "default", &format!("web{number}")));
        }
        let runner = Arc::new(Runner::new(
            Arc::clone(&queued.reconciler),
            Arc::clone(&fixture.context),
        ));
        let stop = CancellationToken::new();
        let run = queued.queue.run(
            move |key: Arc<Key>| {
                let runner = Arc::clone(&runner);
                async move { runner.reconcile(&key).await }
            },
            stop.clone(),
        );
        let lifted = async {
            sleep(Duration::from_secs(1)).await;
            let (ended, reads) = counted(&script);
            assert!(ended == 0 && reads <= many, "{reads} reads of {many} at first");
            for minutes in [2, 20] {
                sleep(Duration::from_mins(minutes)).await;
                let (ended, reads) = counted(&script);
                let most = usize::try_from(minutes).unwrap() * 60 / 8 + 1;
                assert!(
                    ended == 0 && (most / 2..=most).contains(&reads),
                    "{reads} reads of {many} in {minutes} min"
                );
            }
            script.rules.lock().unwrap().retain(|(line, ..)| *line != at);
            let (from, mut ended) = (Instant::now(), 0);
            while ended < many {
                sleep(Duration::from_millis(500)).await;
                ended += counted(&script).0;
                assert!(from.elapsed() < Duration::from_secs(10), "{ended} of {many}");
            }
            stop.cancel();
        };
        tokio::join!(run, lifted);
    }
}
