//! What a claim enqueues, and one whose name another owner holds and gives back.

use popcell_api::kind::NETWORK_BINDING;
use popcell_core::plan::Target;
use tokio::time::{Duration, timeout};

use super::*;
use crate::cell::testing::cell;
use crate::cell::{Cell, watch_names};
use crate::reconcilers::InstanceClaim;
use crate::reconcilers::cell as reconcilers;

fn cell_namespace(name: &str, project: &str, namespace: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": {
        "meta.datumapis.com/upstream-cluster-name": format!("cluster-{project}"),
        "meta.datumapis.com/upstream-namespace": namespace } } })
}

/// A claim in `default`, with the label that names a cell namespace or without.
fn claim(name: &str, version: u32, of: Option<&str>) -> Value {
    let mut labels = json!({ "compute.datumapis.com/source-cluster": "dfw-01" });
    if let Some(of) = of {
        labels["compute.datumapis.com/instance-namespace"] = json!(of);
    }
    json!({ "metadata": { "namespace": "default", "name": name, "uid": name, "resourceVersion": version.to_string(),
        "labels": labels } })
}

fn names(keys: &[Key]) -> Vec<String> {
    let mut names: Vec<String> = keys
        .iter()
        .map(|key| format!("{}/{}/{}", key.plane, key.namespace, key.name))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn a_claim_enqueues_its_instance_also_without_the_label_that_names_it() {
    // What is of a single cluster is in the namespace of its name.
    for (single, within) in [(None, "ns-1"), (Some("p"), "default")] {
        let all = reconcilers(&Arc::new(cell(single)));
        let script = Arc::<Script>::default();
        let fixture = Fixture::in_cell(all.clone(), &["p"], script.answer()).await;
        let namespaces = [
            ("ns-1", "p", "default"),
            ("ns-2", "p", "other"),
            ("ns-3", "q", "default"),
        ];
        let namespaces = namespaces.map(|(name, project, namespace)| cell_namespace(name, project, namespace));
        fixture.list(&Plane::Cell, NAMESPACE, namespaces.into());
        fixture.list(&project("p"), RESOURCE_CLAIM, Vec::new());
        for (claim, enqueued) in [
            (claim("instance-web-0", 1, Some("ns-2")), vec!["ns-2/web-0".to_owned()]),
            (claim("instance-web-0", 1, None), vec![format!("{within}/web-0")]),
            (claim("instance-web-0", 1, Some("")), vec![format!("{within}/web-0")]),
            (claim("instance-", 1, None), Vec::new()),
            (claim("web-0", 1, None), Vec::new()),
        ] {
            let change = came(claim.clone());
            for reconciler in &all {
                let keys = reconciler.keys_for_event(&fixture.context, &project("p"), RESOURCE_CLAIM, &change);
                let plane = match reconciler.name() {
                    "instance-claim" => "project p",
                    "instance" => "cell",
                    _ => {
                        assert!(keys.is_empty());
                        continue;
                    }
                };
                let enqueued: Vec<String> = enqueued.iter().map(|name| format!("{plane}/{name}")).collect();
                assert_eq!(names(&keys), enqueued, "{} by {claim}", reconciler.name());
            }
        }
        // The deletion guard counts its plan too, and a first list that brings it enqueues it.
        fixture.put(&project("p"), RESOURCE_CLAIM, claim("instance-web-0", 2, None));
        let claims = all.iter().find(|one| one.name() == "instance-claim").unwrap();
        let expected = [format!("project p/{within}/web-0")];
        assert_eq!(names(&claims.keys(&fixture.context, &project("p"))), expected);
    }
}

#[tokio::test]
async fn network_bindings_that_are_served_again_enqueue_what_waits_for_them() {
    let all = reconcilers(&Arc::new(cell(None)));
    let fixture = Fixture::in_cell(all, &[], Arc::<Script>::default().answer()).await;
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![deployment("ns-1", "web", "wd")]);
    let one = json!({ "metadata": { "namespace": "ns-1", "name": "web-0", "uid": "i", "resourceVersion": "1" } });
    fixture.list(&Plane::Cell, INSTANCE, vec![one]);
    for (reconciler, name) in [("deployment", "web"), ("instance", "web-0")] {
        let enqueued = fixture.keys_for_event(reconciler, &Plane::Cell, NETWORK_BINDING, &Change::Listed);
        assert_eq!(enqueued, [Key::new(&Plane::Cell, "ns-1", name)], "{reconciler}");
    }
}

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
        let message = cell.refusal("ns-1", "web-0").map(|(_, message)| message);
        let named =
            message.is_some_and(|message| message.contains("(written by kubectl-create at 2026-01-01T00:00:00Z)"));
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
