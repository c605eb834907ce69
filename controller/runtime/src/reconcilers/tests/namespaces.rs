//! Namespaces of projects, which are read and not watched.

use std::sync::OnceLock;

use super::*;

const LINE: &str = "project p GET /api/v1/namespaces/default";

fn namespace(uid: &str) -> Value {
    json!({ "metadata": { "name": "default", "uid": uid, "resourceVersion": "1" } })
}

/// The uid that later passes will take for the Namespace's.
fn remembered(told: &Told) -> Option<String> {
    use popcell_core::object::Fields;
    let found = told.world.namespace(&project("p"), "default").known();
    found.flatten().map(|one| one.uid().to_owned())
}

#[tokio::test]
async fn a_namespace_that_was_read_before_an_event_is_not_remembered() {
    let script = Arc::<Script>::default();
    script.say(LINE, 200, namespace("old"));
    let (meanwhile, answer) = (Arc::<OnceLock<Arc<Told>>>::default(), script.answer());
    let (late, calls) = (Arc::clone(&meanwhile), Mutex::new(0));
    // While the first answer is on its way, the namespace is made anew with a WorkloadDeployment in it.
    let answer: Arc<Answer> = Arc::new(move |asked: Asked| {
        let is_read = format!("{} {}", asked.plane, asked.line).starts_with(LINE);
        let answered = answer(asked);
        if is_read {
            *calls.lock().unwrap() += 1;
            if let (1, Some(told)) = (*calls.lock().unwrap(), late.get()) {
                told.put(
                    &project("p"),
                    WORKLOAD_DEPLOYMENT,
                    deployment("default", "next", "wd-2"),
                );
            }
        }
        answered
    });
    let told = Arc::new(Told::answering(management(true), &["p"], answer).await);
    list_all(&told, &["p"]);
    told.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    let _ = meanwhile.set(Arc::clone(&told));
    let key = Key::new(&project("p"), "default", "web");
    told.pass("federation", &key).await;
    assert_eq!(remembered(&told), None);
    script.say(LINE, 200, namespace("new"));
    told.pass("federation", &key).await;
    assert_eq!(remembered(&told).as_deref(), Some("new"));
    // Nor is one of a project that has left.
    told.world.planes.disengage(&project("p")).await;
    assert_eq!(remembered(&told), None);
}

#[tokio::test]
async fn a_namespace_that_is_another_one_or_gone_enqueues_what_depends_on_it() {
    let script = Arc::<Script>::default();
    let told = told(&script, &["p"]).await;
    told.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    told.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    told.dispatch.lead();
    let lanes = told.dispatch.lanes().iter();
    let of = ["federation", "policy", "projection", "orphans"];
    let queues: Vec<_> = lanes.filter(|lane| of.contains(&lane.reconciler.name())).collect();
    assert_eq!(queues.len(), of.len());
    let woken = || {
        let mut names = Vec::new();
        for lane in &queues {
            let stats = lane.queue.stats();
            lane.queue.retire(&Plane::Hub);
            lane.queue.retire(&project("p"));
            if stats.depth > 0 {
                names.push(lane.reconciler.name());
            }
        }
        names
    };
    woken();
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
        let mut live = crate::pass::Live::default();
        let plane = project("p");
        let read = told.world.read_namespace_anew(&mut live, &plane, "default");
        read.await.unwrap();
        assert_eq!(woken(), expected, "{found}");
    }
}

#[tokio::test]
async fn a_cell_forgets_what_it_read_of_a_namespace_that_is_deleted() {
    let script = Arc::<Script>::default();
    let cell = Arc::new(crate::cell::testing::cell(None));
    let remote = crate::reconcilers::Remote {
        cell: Arc::clone(&cell),
    };
    let told = Told::answering(vec![Arc::new(remote)], &[], script.answer()).await;
    script.say("hub GET /api/v1/namespaces/ns-1", 200, hub_namespace("ns-1", "p"));
    let read = async || cell.facts.read_namespace(&told.world.applier, "ns-1").await.unwrap();
    assert!(read().await.is_some() && read().await.is_some());
    assert_eq!(script.asked().len(), 1);
    let gone = crate::planes::Change::Gone {
        namespace: String::new(),
        name: "ns-1".to_owned(),
        last: None,
    };
    told.world.planes.tell(&Plane::Cell, NAMESPACE, &gone);
    assert!(read().await.is_some());
    assert_eq!(script.asked().len(), 1);
}
