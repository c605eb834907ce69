//! Status from the hub to the project, while the context moves.

use std::sync::OnceLock;

use popcell_api::finalizers::FEDERATOR;

use super::*;

fn hub_says(ready: i64, version: &str) -> Value {
    let mut one = hub_deployment("ns-n1", "web", "wd");
    one["metadata"]["resourceVersion"] = json!(version);
    one["status"] = json!({ "replicas": 3, "currentReplicas": 3, "updatedReplicas": 3, "desiredReplicas": 3,
        "readyReplicas": ready, "observedGeneration": 1, "conditions": [] });
    one
}

fn in_project() -> Value {
    let mut one = deployment("default", "web", "wd");
    one["metadata"]["finalizers"] = json!([FEDERATOR]);
    one
}

fn say_what_is_there(script: &Script) {
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project p GET /api/v1/namespaces/default", 200, namespace);
    let line = format!("project p GET {DEPLOYMENTS}/default/workloaddeployments/web");
    script.say(&line, 200, in_project());
}

/// Ready replicas in a patch of the status.
fn ready(patch: &Value) -> Option<&Value> {
    let operations = patch.as_array().into_iter().flatten();
    let mut values = operations.filter_map(|one| one.pointer("/value/readyReplicas"));
    values.next()
}

#[tokio::test]
async fn a_retry_after_a_conflict_reads_again() {
    let script = Arc::<Script>::default();
    say_what_is_there(&script);
    let (meanwhile, answer) = (Arc::<OnceLock<Arc<Fixture>>>::default(), script.answer());
    let (moving, refusals) = (Arc::clone(&meanwhile), Mutex::new(vec![2, 3]));
    let answer: Arc<Answer> = Arc::new(move |asked: Asked| {
        let is_status = asked.line.starts_with("PATCH ") && asked.line.contains("/status");
        let answered = answer(asked);
        if !is_status {
            return answered;
        }
        match (refusals.lock().unwrap().pop(), moving.get()) {
            (Some(ready), Some(fixture)) => {
                // The source goes on while the write is on its way.
                fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_says(ready, &format!("v{ready}")));
                Some((409, refusal(409)))
            }
            _ => Some((200, in_project())),
        }
    });
    let fixture = Arc::new(Fixture::answering(management(true), &["p"], answer).await);
    list_all(&fixture, &["p"]);
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_says(1, "v1"));
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, in_project());
    fixture
        .context
        .read_namespace(&mut crate::reconcile::LiveReads::default(), &project("p"), "default")
        .await
        .unwrap();
    script.sent();
    let _ = meanwhile.set(Arc::clone(&fixture));
    fixture
        .reconcile("federation", &Key::new(&project("p"), "default", "web"))
        .await;
    // One write for each look: what was seen first is not written again after something newer was seen.
    let sent = script.sent();
    let status = |line: &str| line.contains(" PATCH ") && line.contains("/status");
    let written: Vec<_> = sent
        .iter()
        .filter(|(line, _)| status(line))
        .filter_map(|(_, body)| ready(body))
        .collect();
    assert_eq!(written, [1, 3, 2], "{sent:#?}");
    let verbs: Vec<_> = sent
        .iter()
        .filter_map(|(line, _)| line.split(' ').find(|word| word.chars().all(char::is_uppercase)))
        .collect();
    let verbs: Vec<_> = verbs
        .into_iter()
        .filter(|verb| *verb == "PATCH" || *verb == "GET")
        .collect();
    assert!(verbs.ends_with(&["PATCH", "GET", "PATCH", "GET", "PATCH"]), "{sent:?}");
}

#[tokio::test]
async fn a_hub_event_of_a_project_that_is_not_engaged_enqueues_nothing_until_it_is() {
    let script = Arc::<Script>::default();
    say_what_is_there(&script);
    let fixture = fixture(&script, &[]).await;
    fixture.event_router.lead();
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_says(1, "v1"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_says(2, "v2"));
    assert_eq!(fixture.depth("federation"), 0);
    fixture.context.planes.engage(&project("p"), None).await.unwrap();
    fixture.list(&project("p"), WORKLOAD, Vec::new());
    fixture.list(&project("p"), WORKLOAD_DEPLOYMENT, vec![in_project()]);
    assert_eq!(fixture.depth("federation"), 1);
    fixture
        .reconcile("federation", &Key::new(&project("p"), "default", "web"))
        .await;
    let sent = script.sent();
    let written: Vec<_> = sent.iter().filter_map(|(_, body)| ready(body)).collect();
    assert_eq!(written, [2], "{sent:?}");
}
