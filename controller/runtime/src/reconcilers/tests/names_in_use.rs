//! A claim whose name another owner holds, and gives back.

use popcell_core::plan::Target;
use tokio::time::{Duration, timeout};

use super::*;
use crate::cell::Cell;
use crate::cell::testing::cell;
use crate::cell::watch_names;
use crate::reconcilers::InstanceClaim;

const CLAIMS: &str = "/apis/quota.miloapis.com/v1alpha1/namespaces/default/resourceclaims";

/// A claim of another client, as its metadata.
fn held() -> Value {
    json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": { "name": "instance-web-0",
        "namespace": "default", "uid": "theirs", "resourceVersion": "7", "managedFields": [{ "manager": "kubectl-create",
        "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z" }] } })
}

/// A cell whose project lists this of the name, and brings one event of it.
async fn waiting(listed: Vec<Value>, event: Option<&'static str>) -> (Arc<Cell>, Fixture, Arc<Mutex<Vec<String>>>) {
    let cell = Arc::new(cell(None));
    let claims = Arc::new(InstanceClaim {
        cell: Arc::clone(&cell),
    });
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let lines = Arc::clone(&asked);
    let answer: Arc<Answer> = Arc::new(move |asked: Asked| {
        if !asked.line.contains("fieldSelector=metadata.name%3Dinstance-web-0") {
            return None;
        }
        lines.lock().unwrap().push(asked.line.clone());
        if asked.line.contains("watch=true") {
            return event.map(|event| (200, json!({ "type": event, "object": held() })));
        }
        let list = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": { "resourceVersion": "9" }, "items": listed.clone() });
        Some((200, list))
    });
    let fixture = Fixture::in_cell(vec![claims], &["p"], answer).await;
    (cell, fixture, asked)
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_free_again_is_noticed_by_watch() {
    let key = Key::new(&project("p"), "ns-1", "web-0");
    let target = Target::namespaced(&project("p"), RESOURCE_CLAIM, "default", "instance-web-0");
    for (listed, event, enqueued) in [
        (vec![held()], Some("DELETED"), true),
        // It went before the watch began.
        (Vec::new(), None, true),
        (vec![held()], None, false),
    ] {
        let (cell, fixture, asked) = waiting(listed.clone(), event).await;
        let watched = timeout(Duration::from_secs(20), watch_names(&cell, &fixture.context));
        let set = async {
            assert!(asked.lock().unwrap().is_empty(), "nothing is watched before");
            cell.names_in_use.set(&key, Some(&target));
        };
        let (_, ()) = tokio::join!(watched, set);
        assert_eq!(
            fixture.depth("instance-claim"),
            usize::from(enqueued),
            "{listed:?}, {event:?}"
        );
        // Who wrote it is known by the watch only.
        let fixture = cell.refusal("ns-1", "web-0").map(|(_, message)| message);
        let named =
            fixture.is_some_and(|fixture| fixture.contains("(written by kubectl-create at 2026-01-01T00:00:00Z)"));
        assert_eq!(named, !listed.is_empty());
        let asked = asked.lock().unwrap().clone();
        assert!(asked[0].starts_with(&format!("GET {CLAIMS}?")), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_no_longer_waits_is_not_enqueued() {
    let key = Key::new(&project("p"), "ns-1", "web-0");
    let target = Target::namespaced(&project("p"), RESOURCE_CLAIM, "default", "instance-web-0");
    let (cell, fixture, _) = waiting(Vec::new(), None).await;
    cell.names_in_use.set(&key, Some(&target));
    cell.names_in_use.set(&key, None);
    let _ = timeout(Duration::from_secs(20), watch_names(&cell, &fixture.context)).await;
    assert_eq!(fixture.depth("instance-claim"), 0);
}
