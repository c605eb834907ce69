//! What a user deletes of what is shown in a project.

use popcell_core::object::Object;
use popcell_core::plan::{Action, Plan};

use super::*;
use crate::apply::Done;

fn instance(namespace: &str, uid: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "metadata": {
        "namespace": namespace, "name": "web-0", "uid": uid, "resourceVersion": "1", "generation": 1, "labels": {
            "compute.datumapis.com/managed-by": "popcell", "compute.datumapis.com/workload-deployment-name": "web",
            "compute.datumapis.com/workload-deployment-uid": "hub-web" } },
        "spec": { "runtime": {} } })
}

/// The metadata that is watched of a projection.
fn shown(uid: &str, version: &str) -> Value {
    let mut shown = instance("default", uid);
    shown.as_object_mut().unwrap().remove("spec");
    shown["metadata"]["resourceVersion"] = json!(version);
    shown
}

/// One projection is shown, and goes when it is written to.
async fn one_shown(script: &Arc<Script>) -> Fixture {
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project p GET /api/v1/namespaces/default", 200, namespace);
    let (answer, says) = (script.answer(), Arc::clone(script));
    let path = format!("{DEPLOYMENTS}/default/instances/web-0");
    let goes = move |asked: Asked| {
        if asked.line.starts_with(&format!("PATCH {path}")) {
            let (code, body) = absent(&path);
            says.say(&format!("project p GET {path}"), code, body.clone());
            says.say(&format!("project p PATCH {path}"), code, body);
        }
        answer(asked)
    };
    let fixture = Fixture::answering(management(true), &["p"], Arc::new(goes)).await;
    list_all(&fixture, &["p"]);
    fixture.event_router.lead();
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
    fixture.put(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    fixture.put(&project("p"), INSTANCE, shown("first", "1"));
    fixture
}

fn events(script: &Script) -> usize {
    script.writes().iter().filter(|line| line.ends_with("/events")).count()
}

#[tokio::test]
async fn an_event_shows_how_to_restart_also_where_a_read_knows_of_the_deletion_before_the_watch_does() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let created = instance("default", "second");
    script.say(&format!("project p POST {DEPLOYMENTS}/default/instances"), 201, created);
    script.asked();
    fixture
        .reconcile("projection", &Key::new(&Plane::Hub, "ns-n1", "web-0"))
        .await;
    let writes = script.writes();
    let events = writes.iter().filter(|line| line.ends_with("/events")).count();
    let made = writes.iter().filter(|line| line.ends_with("/instances")).count();
    assert_eq!((made, events), (1, 1), "{writes:?}");
}

#[tokio::test]
async fn an_event_shows_how_to_restart_also_where_a_write_knows_of_the_deletion_before_the_watch_does() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let path = format!("project p GET {DEPLOYMENTS}/default/instances/web-0");
    let mut edited = instance("default", "first");
    edited["spec"] = json!({ "runtime": { "edited": true } });
    script.say(&path, 200, edited);
    let mut again = instance("default", "second");
    again["metadata"]["resourceVersion"] = json!("3");
    script.say(
        &format!("project p POST {DEPLOYMENTS}/default/instances"),
        201,
        again.clone(),
    );
    let key = Key::new(&Plane::Hub, "ns-n1", "web-0");
    fixture.reconcile("projection", &key).await;
    let writes = script.writes();
    assert!(writes.iter().any(|line| line.ends_with("/instances")), "{writes:?}");
    assert!(!writes.iter().any(|line| line.ends_with("/events")), "{writes:?}");

    script.say(&path, 200, again);
    fixture.remove(&project("p"), INSTANCE, shown("first", "2"));
    fixture.put(&project("p"), INSTANCE, shown("second", "3"));
    fixture.reconcile("projection", &key).await;
    assert_eq!(events(&script), 1);
    fixture.reconcile("projection", &key).await;
    assert_eq!(events(&script), 0);
}

#[tokio::test]
async fn an_event_shows_how_to_restart_what_went_while_an_earlier_write_was_coming_to_its_end() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let key = Key::new(&Plane::Hub, "ns-n1", "web-0");
    fixture.remove(&project("p"), INSTANCE, shown("first", "2"));
    let earlier = Plan {
        actions: vec![Action::create(
            &project("p"),
            INSTANCE,
            Object::read(&instance("default", "first").to_string()).unwrap(),
        )],
        ..Plan::default()
    };
    let reconciler = &fixture.queued("projection").reconciler;
    reconciler.executed(&fixture.context, &key, &earlier, Done::Written);
    script.asked();
    let created = instance("default", "second");
    script.say(&format!("project p POST {DEPLOYMENTS}/default/instances"), 201, created);
    fixture.reconcile("projection", &key).await;
    assert_eq!(events(&script), 1);
}

#[tokio::test]
async fn a_swept_projection_enqueues_nothing() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    fixture.remove(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    script.asked();
    fixture
        .reconcile("projection-sweep", &Key::new(&Plane::Hub, "ns-n1", "ns-n1"))
        .await;
    fixture.put(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    fixture.remove(&project("p"), INSTANCE, shown("first", "2"));
    let created = instance("default", "second");
    script.say(&format!("project p POST {DEPLOYMENTS}/default/instances"), 201, created);
    fixture
        .reconcile("projection", &Key::new(&Plane::Hub, "ns-n1", "web-0"))
        .await;
    let writes = script.writes();
    assert!(writes.iter().any(|line| line.contains(" DELETE ")), "{writes:?}");
    assert!(!writes.iter().any(|line| line.ends_with("/events")), "{writes:?}");
}

#[tokio::test]
async fn one_copy_that_comes_and_goes_among_many_is_looked_at_alone() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let key = Key::new(&Plane::Hub, "ns-n1", "web-0");
    let goes = Change::Gone {
        namespace: "ns-n1".to_owned(),
        name: "web-0".to_owned(),
        last: None,
    };
    let enqueued = |reconciler| fixture.keys_for_event(reconciler, &Plane::Hub, INSTANCE, &goes);
    assert_eq!(enqueued("projection"), std::slice::from_ref(&key));
    assert_eq!(enqueued("projection-sweep"), []);
    fixture.remove(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    script.asked();
    fixture.reconcile("projection", &key).await;
    let asked = script.asked();
    let writes: Vec<&String> = asked.iter().filter(|line| !line.contains(" GET ")).collect();
    assert_eq!(
        writes,
        [&format!("project p DELETE {DEPLOYMENTS}/default/instances/web-0")],
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_change_of_scale_on_the_hub_enqueues_the_copies_of_that_deployment_only() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let mut other = instance("ns-n1", "other");
    other["metadata"]["name"] = json!("other-0");
    fixture.put(&Plane::Hub, INSTANCE, other);
    let state = |replicas: i64, status: Value| {
        let mut one = hub_deployment("ns-n1", "web", "wd");
        (one["spec"]["scaleSettings"]["minReplicas"], one["status"]) = (json!(replicas), status);
        Arc::new(Object::read(&one.to_string()).unwrap())
    };
    let enqueued = |now: Arc<Object>| {
        let before = Some(state(1, json!({})));
        let change = Change::Applied { before, now };
        fixture.keys_for_event("projection", &Plane::Hub, WORKLOAD_DEPLOYMENT, &change)
    };
    assert_eq!(enqueued(state(2, json!({}))), [Key::new(&Plane::Hub, "ns-n1", "web-0")]);
    assert_eq!(enqueued(state(1, json!({ "replicas": 1 }))), []);
}

/// The hub's store was restored, or is another one: each copy goes by an event of its own.
#[tokio::test]
async fn the_guard_counts_all_projections_of_a_project_where_single_copies_go() {
    let script = Arc::<Script>::default();
    let fixture = one_shown(&script).await;
    let of_slot = |mut one: Value, number: usize| {
        one["metadata"]["name"] = json!(format!("web-{number}"));
        one
    };
    let mut scaled = deployment("default", "web", "wd");
    scaled["metadata"]["resourceVersion"] = json!("2");
    scaled["spec"]["scaleSettings"]["minReplicas"] = json!(30);
    script.say(
        &format!("project p GET {DEPLOYMENTS}/default/workloaddeployments/web"),
        200,
        scaled.clone(),
    );
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, scaled);
    for number in 1..25 {
        fixture.put(
            &project("p"),
            INSTANCE,
            of_slot(shown(&format!("uid-{number}"), "1"), number),
        );
    }
    fixture.remove(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    script.asked();
    let is_held = || {
        fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&project("p"), INSTANCE)
    };
    let copy = Key::new(&Plane::Hub, "ns-n1", "web-0");
    fixture.reconcile("projection", &copy).await;
    assert_eq!((script.writes(), is_held()), (Vec::new(), true));
    // A release enqueues the sweep, which deletes what was held.
    let sweep = Key::new(&Plane::Hub, "ns-n1", "ns-n1");
    let of_project = |reconciler| {
        fixture
            .queued(reconciler)
            .reconciler
            .keys(&fixture.context, &project("p"))
    };
    assert_eq!(of_project("projection-sweep"), std::slice::from_ref(&sweep));
    fixture.reconcile("projection-sweep", &sweep).await;
    assert_eq!((script.writes(), is_held()), (Vec::new(), true));
    assert!(fixture.context.applier.release_deletion_guards("project p"));
    fixture.reconcile("projection-sweep", &sweep).await;
    assert_eq!(script.writes().len(), 25);
}
