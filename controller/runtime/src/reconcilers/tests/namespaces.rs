//! Namespaces of projects, which are read and not watched.

use std::sync::OnceLock;

use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::reconcile::{LiveReads, Snapshot};

const LINE: &str = "project p GET /api/v1/namespaces/default";

fn namespace(uid: &str) -> Value {
    json!({ "metadata": { "name": "default", "uid": uid, "resourceVersion": "1" } })
}

/// The uid that later reconciles take for the Namespace's.
fn remembered(fixture: &Fixture) -> Option<String> {
    use popcell_core::object::Fields;
    let found = fixture.context.namespace(&project("p"), "default").known();
    found.flatten().map(|one| one.uid().to_owned())
}

#[tokio::test]
async fn a_namespace_that_was_read_before_an_event_is_not_remembered() {
    let script = Arc::<Script>::default();
    script.say(LINE, 200, namespace("old"));
    let (meanwhile, answer) = (Arc::<OnceLock<Arc<Fixture>>>::default(), script.answer());
    let (late, calls) = (Arc::clone(&meanwhile), Mutex::new(0));
    // While the first answer is on its way, the namespace is recreated with a WorkloadDeployment in it.
    let answer: Arc<Answer> = Arc::new(move |asked: Asked| {
        let is_read = format!("{} {}", asked.plane, asked.line).starts_with(LINE);
        let answered = answer(asked);
        if is_read {
            *calls.lock().unwrap() += 1;
            if let (1, Some(fixture)) = (*calls.lock().unwrap(), late.get()) {
                fixture.put(
                    &project("p"),
                    WORKLOAD_DEPLOYMENT,
                    deployment("default", "next", "wd-2"),
                );
            }
        }
        answered
    });
    let fixture = Arc::new(Fixture::answering(management(true), &["p"], answer).await);
    list_all(&fixture, &["p"]);
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    let _ = meanwhile.set(Arc::clone(&fixture));
    let key = Key::new(&project("p"), "default", "web");
    fixture.reconcile("federation", &key).await;
    assert_eq!(remembered(&fixture), None);
    script.say(LINE, 200, namespace("new"));
    fixture.reconcile("federation", &key).await;
    assert_eq!(remembered(&fixture).as_deref(), Some("new"));
    // Nor is one of a project that has left.
    fixture.context.planes.disengage(&project("p")).await;
    assert_eq!(remembered(&fixture), None);
}

#[tokio::test]
async fn a_namespace_is_decided_on_as_it_was_observed_whatever_comes_meanwhile() {
    let script = Arc::<Script>::default();
    script.say(LINE, 200, namespace("n1"));
    let fixture = fixture(&script, &["p"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    let mut web = deployment("default", "web", "wd");
    web["metadata"]["finalizers"] = json!([popcell_api::finalizers::FEDERATOR]);
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, web);
    let (context, plane) = (&fixture.context, project("p"));
    let mut live = LiveReads::default();
    let read = context.read_namespace(&mut live, &plane, "default");
    read.await.unwrap();
    // An earlier reconcile has read it; between the two halves of this one another WorkloadDeployment comes, which enqueues
    // itself only.
    let (federation, key) = (
        &fixture.queued("federation").reconciler,
        Key::new(&plane, "default", "web"),
    );
    let mut live = LiveReads::default();
    federation.prepare(context, &mut live, &key).await.unwrap();
    fixture.put(&plane, WORKLOAD_DEPLOYMENT, deployment("default", "next", "wd-2"));
    assert_eq!(remembered(&fixture), None);
    let plan = federation.decide(&Snapshot::new(context, &live), &key, Timestamp::UNIX_EPOCH);
    let written = plan.unwrap().writes().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(written, ["create WorkloadDeployment ns-n1/web in hub"]);
}

#[tokio::test]
async fn a_namespace_that_is_another_one_or_gone_enqueues_what_depends_on_it() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["p"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    let copy = json!({ "metadata": { "namespace": "ns-n1", "name": "web-0", "uid": "copy", "resourceVersion": "1" } });
    fixture.put(&Plane::Hub, INSTANCE, copy);
    fixture.event_router.lead();
    let queued_reconcilers = fixture.event_router.queued_reconcilers().iter();
    let of = ["federation", "policy", "projection", "projection-sweep", "orphans"];
    let queues: Vec<_> = queued_reconcilers
        .filter(|queued| of.contains(&queued.reconciler.name()))
        .collect();
    assert_eq!(queues.len(), of.len());
    let enqueued = || {
        let mut names = Vec::new();
        for queued in &queues {
            let stats = queued.queue.stats();
            queued.queue.retire(&Plane::Hub);
            queued.queue.retire(&project("p"));
            if stats.depth > 0 {
                names.push(queued.reconciler.name());
            }
        }
        names
    };
    enqueued();
    let mut going = namespace("n2");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let gone = absent("GET /api/v1/namespaces/default");
    for (code, found, expected) in [
        (200, namespace("n1"), &[] as &[&str]),
        (200, namespace("n1"), &[]),
        (200, namespace("n2"), &of),
        (200, going, &of),
        (gone.0, gone.1, &of),
        (200, namespace("n3"), &of),
    ] {
        script.say(LINE, code, found.clone());
        let mut live = LiveReads::default();
        let plane = project("p");
        let read = fixture.context.reread_namespace(&mut live, &plane, "default");
        read.await.unwrap();
        assert_eq!(enqueued(), expected, "{found}");
    }
}

#[tokio::test]
async fn a_cell_forgets_what_it_read_of_a_namespace_that_is_deleted() {
    let script = Arc::<Script>::default();
    let cell = Arc::new(crate::cell::testing::cell(None));
    let copies = crate::reconcilers::InstanceCopy {
        cell: Arc::clone(&cell),
    };
    let fixture = Fixture::answering(vec![Arc::new(copies)], &[], script.answer()).await;
    script.say("hub GET /api/v1/namespaces/ns-1", 200, hub_namespace("ns-1", "p"));
    let read = async || {
        cell.identity_cache
            .read_namespace(&fixture.context.applier, "ns-1")
            .await
            .unwrap()
    };
    assert!(read().await.is_some() && read().await.is_some());
    assert_eq!(script.asked().len(), 1);
    let gone = crate::planes::Change::Gone {
        namespace: String::new(),
        name: "ns-1".to_owned(),
        last: None,
    };
    fixture.context.planes.notify(&Plane::Cell, NAMESPACE, &gone);
    assert!(read().await.is_some());
    assert_eq!(script.asked().len(), 1);
}
