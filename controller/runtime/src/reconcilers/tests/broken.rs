//! One project with a broken connection among others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;

/// Of a kind, as a server lists it.
fn list(items: &[Value]) -> Value {
    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "7" }, "items": items })
}

fn workload() -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "metadata": { "name": "web",
        "namespace": "default", "uid": "w", "resourceVersion": "1", "generation": 1, "finalizers": [WORKLOAD_CONTROLLER] },
        "spec": { "template": { "spec": {} }, "placements": [{ "name": "us", "cityCodes": ["DFW"],
            "scaleSettings": { "minReplicas": 1 } }] } })
}

/// What the server of a project says: lists that watches begin with, and nothing of the watches themselves.
fn listed(asked: &Asked) -> Option<(u16, Value)> {
    if asked.line.contains("watch=") {
        return None;
    }
    let items = match asked.line.as_str() {
        line if line.contains("/workloads?") => vec![workload()],
        line if line.contains("/locationbindings?") => {
            vec![json!({ "metadata": { "name": "b", "resourceVersion": "1" },
            "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } })]
        }
        _ => Vec::new(),
    };
    Some((200, list(&items)))
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_retried_seldom_and_delays_no_other_project() {
    let broken = Arc::new(AtomicBool::new(true));
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let (is_broken, log) = (Arc::clone(&broken), Arc::clone(&asked));
    let answer: Arc<Answer> = Arc::new(move |request: Asked| {
        log.lock().unwrap().push(format!("{} {}", request.plane, request.line));
        if request.plane == project("broken") && is_broken.load(Ordering::Relaxed) {
            // No connection at all, as after a handshake that failed.
            return Some((0, Value::Null));
        }
        listed(&request)
    });
    let others: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let mut projects: Vec<&str> = others.iter().map(String::as_str).collect();
    projects.push("broken");
    let fixture = Fixture::answering(management(false), &projects, answer).await;
    fixture.event_router.lead();
    let stop = CancellationToken::new();
    let queue = fixture.queued("workload").queue.clone();
    let reconciles = tokio::spawn(fixture.runner("workload").run(queue, stop.clone()));
    let made = |id: &str| {
        let start = format!("project {id} POST {DEPLOYMENTS}/default/workloaddeployments");
        let asked = asked.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(&start)).count()
    };
    let is_made = async |id: &str, times: usize| {
        while made(id) < times {
            sleep(Duration::from_millis(100)).await;
        }
    };
    for id in &others {
        timeout(Duration::from_secs(2), is_made(id, 1)).await.unwrap();
    }
    sleep(Duration::from_mins(9)).await;
    asked.lock().unwrap().clear();
    sleep(Duration::from_mins(1)).await;
    let tries = asked
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.starts_with("project broken"))
        .count();
    // Two streams, each at least every 30 s and seldom more.
    assert!((2..=6).contains(&tries), "{tries} in the last minute");

    // Of another project something goes, with no other event.
    let gone = deployment("default", "web-us-dfw", "wd");
    fixture.put(&project("p3"), WORKLOAD_DEPLOYMENT, gone.clone());
    asked.lock().unwrap().clear();
    fixture.remove(&project("p3"), WORKLOAD_DEPLOYMENT, gone);
    timeout(Duration::from_secs(2), is_made("p3", 1)).await.unwrap();

    assert_eq!(made("broken"), 0);
    broken.store(false, Ordering::Relaxed);
    timeout(Duration::from_secs(31), is_made("broken", 1)).await.unwrap();
    stop.cancel();
    reconciles.await.unwrap();
}
