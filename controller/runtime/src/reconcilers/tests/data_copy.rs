//! Copies on the hub of ConfigMaps and Secrets that WorkloadDeployments name.

use std::time::Duration;

use super::*;
use crate::context::Rules;
use crate::context::testing::Log;
use crate::planes::SINGLE;

const SECRETS: &str = "/api/v1/namespaces/ns-n1/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/ns-n1/configmaps";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns-n1/rolebindings";
const SOURCE: &str = "project single GET /api/v1/namespaces/default/secrets/db";

/// A project with a WorkloadDeployment that names Secret `db`, as the hub has it.
async fn bench(script: &Arc<Script>) -> Fixture {
    project_answers(script);
    let fixture = fixture(script, &[SINGLE]).await;
    fill(script, &fixture);
    fixture
}

fn project_answers(script: &Script) {
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let system = json!({ "metadata": { "name": "kube-system", "uid": "s1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/kube-system", 200, system);
}

fn fill(script: &Script, fixture: &Fixture) {
    let mut namespace = hub_namespace("ns-n1", SINGLE);
    namespace["metadata"]["annotations"] = json!({ "compute.datumapis.com/upstream-server-uid": "s1" });
    fixture.put(&Plane::Hub, NAMESPACE, namespace);
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, on_hub("pending"));
    script.say(&format!("hub GET {CONFIG_MAPS}"), 200, list("ConfigMap", &json!([])));
    script.say(&format!("hub GET {SECRETS}"), 200, list("Secret", &json!([])));
    script.say(SOURCE, 200, secret("default", "1", "s3cr3t", &json!({})));
}

fn on_hub(expected: &str) -> Value {
    let mut one = hub_deployment("ns-n1", "web", "uid-web");
    let containers = json!([{ "envFrom": [{ "secretRef": { "name": "db" } }] }]);
    one["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"] = containers;
    one["metadata"]["annotations"]["compute.datumapis.com/expected-referenced-data"] = json!(expected);
    one
}

fn list(kind: &str, items: &Value) -> Value {
    json!({ "kind": format!("{kind}List"), "apiVersion": "v1", "metadata": { "resourceVersion": "9" }, "items": items })
}

fn secret(namespace: &str, version: &str, value: &str, annotations: &Value) -> Value {
    let labels =
        json!({ "compute.datumapis.com/managed-by": "popcell", "compute.datumapis.com/referenced-data": "true" });
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": { "password": value }, "metadata": {
        "name": "db", "namespace": namespace, "uid": format!("uid-{namespace}"), "resourceVersion": version,
        "labels": if namespace == "default" { json!({}) } else { labels }, "annotations": annotations } })
}

fn key() -> Key {
    Key::new(&Plane::Hub, "ns-n1", "ns-n1")
}

/// The copy as the hub has it after it was created with this body.
fn made(body: &Value) -> Value {
    let mut copy = secret("ns-n1", "2", "s3cr3t", &body["metadata"]["annotations"]);
    copy["data"] = body["data"].clone();
    copy
}

#[tokio::test]
async fn a_secret_is_carried_by_name_and_read_again_but_not_written_while_it_stays() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    script.asked();
    let requeue = fixture.reconcile("data-copy", &key()).await;
    assert_eq!(requeue, Requeue::After(Duration::from_mins(10)));
    let mut sent = script.sent();
    sent.retain(|(line, _)| !line.contains(" GET "));
    let lines: Vec<&str> = sent.iter().map(|(line, _)| line.split('?').next().unwrap()).collect();
    let deployment = format!("hub PATCH {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    assert_eq!(
        lines,
        [
            "hub PATCH /api/v1/namespaces/ns-n1",
            &format!("hub POST {SECRETS}"),
            &deployment
        ]
    );
    let copy = made(&sent[1].1);
    assert_eq!(copy["data"]["password"], "s3cr3t");
    let expected = sent[2]
        .1
        .as_array()
        .unwrap()
        .iter()
        .rfind(|one| one["op"] != "test")
        .unwrap()["value"]
        .clone();
    let expected = expected.as_str().unwrap().to_owned();

    // What the hub has now is read once, and nothing is written.
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, on_hub(&expected));
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    is_on_hub(&script, &copy);
    let rest = [
        format!("hub GET {CONFIG_MAPS}"),
        format!("hub GET {SECRETS}"),
        SOURCE.to_owned(),
    ];
    let with_copy = [&rest[..], &[format!("hub GET {SECRETS}/db")]].concat();
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.asked(), with_copy);
    // From then on its metadata are enough: two lists and one read.
    for _ in 0..2 {
        let requeue = fixture.reconcile("data-copy", &key()).await;
        assert_eq!(requeue, Requeue::After(Duration::from_mins(10)));
        assert_eq!(script.asked(), rest);
    }

    // Another client writes it and keeps the version: it is read, and made to hold what its source holds.
    let mut changed = copy.clone();
    changed["metadata"]["resourceVersion"] = json!("3");
    changed["data"] = json!({ "password": "theirs", "more": "theirs" });
    is_on_hub(&script, &changed);
    fixture.reconcile("data-copy", &key()).await;
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.starts_with(&format!("hub PATCH {SECRETS}/db")), "{line}");
    let data = json!({ "op": "replace", "path": "/data", "value": { "password": "s3cr3t" } });
    assert!(body.as_array().unwrap().contains(&data), "{body}");
    script.asked();
    // One that gets a label only is read, and not written.
    let mut labelled = copy.clone();
    labelled["metadata"]["resourceVersion"] = json!("5");
    is_on_hub(&script, &labelled);
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.asked(), with_copy);

    // A change is read whole where it is to be written.
    script.say(SOURCE, 200, secret("default", "3", "other", &json!({})));
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.writes(), [format!("hub PATCH {SECRETS}/db"), deployment]);
    // Where the hub refuses it, its city is to have what it has; so it is with a copy that is made.
    script.say(SOURCE, 200, secret("default", "4", "third", &json!({})));
    script.say(&format!("hub PATCH {SECRETS}/db"), 422, refusal(422));
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.writes(), [format!("hub PATCH {SECRETS}/db")]);
    script.say(&format!("hub GET {SECRETS}"), 200, list("Secret", &json!([])));
    script.say(&format!("hub POST {SECRETS}"), 422, refusal(422));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, on_hub("pending"));
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.writes(), [format!("hub POST {SECRETS}")]);
}

/// The hub namespace after its first copy.
fn with_copies() -> Value {
    let mut labelled = hub_namespace("ns-n1", SINGLE);
    labelled["metadata"]["annotations"] = json!({ "compute.datumapis.com/upstream-server-uid": "s1" });
    labelled["metadata"]["labels"]["compute.datumapis.com/referenced-data"] = json!("true");
    labelled
}

/// A copy is there: without what it holds in a list, whole by name.
fn is_on_hub(script: &Script, copy: &Value) {
    let mut metadata = copy.clone();
    metadata["data"] = Value::Null;
    let listed = list("PartialObjectMetadata", &json!([metadata]));
    script.say(&format!("hub GET {SECRETS}"), 200, listed);
    script.say(&format!("hub GET {SECRETS}/db"), 200, copy.clone());
}

/// Another hub namespace of the project, with copies.
fn other_namespace(script: &Script) -> Value {
    let mut namespace = with_copies();
    namespace["metadata"]["name"] = json!("ns-n2");
    namespace["metadata"]["uid"] = json!("hub-n2");
    namespace["metadata"]["labels"]["meta.datumapis.com/upstream-namespace"] = json!("other");
    let within = json!({ "metadata": { "name": "other", "uid": "n2", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/other", 200, within);
    namespace
}

fn other_key() -> Key {
    Key::new(&Plane::Hub, "ns-n2", "ns-n2")
}

/// The Secrets that the other hub namespace has.
fn has_other(script: &Script, copies: &Value) {
    let line = |plural: &str| format!("hub GET /api/v1/namespaces/ns-n2/{plural}");
    script.say(&line("configmaps"), 200, list("ConfigMap", &json!([])));
    script.say(&line("secrets"), 200, list("Secret", copies));
}

/// A copy in the other hub namespace that nobody names and that waits for another's finalizer: it is there as long as it is.
fn ending() -> Value {
    let version = json!({ "compute.datumapis.com/data-version": "f00-64" });
    let mut large = secret("ns-n2", "2", "", &version);
    large["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    large["metadata"]["finalizers"] = json!(["a/b"]);
    large
}

/// A reconcile that writes to the WorkloadDeployment of the first namespace why it has no copy, and to no other.
async fn is_told(fixture: &Fixture, script: &Script, says: &str) -> Requeue {
    script.asked();
    let requeue = fixture.reconcile("data-copy", &key()).await;
    let mut sent = script.sent();
    sent.retain(|(line, _)| !line.contains(" GET ") && !line.contains("hub PATCH /api/v1/namespaces/ns-n1?"));
    let [(line, body)] = &sent[..] else { panic!("{sent:?}") };
    let web = format!("hub PATCH {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    assert!(line.starts_with(&web), "{line}");
    assert!(body.to_string().contains(says), "{body}");
    requeue
}

#[tokio::test]
async fn the_hub_namespaces_of_a_project_share_one_bound() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, other_namespace(&script));
    has_other(&script, &json!([ending()]));
    // Until all have been listed, and where there is no room, nothing is new.
    for says in [
        "those of its project are being counted",
        "may have 65536 bytes on the platform",
    ] {
        is_told(&fixture, &script, says).await;
        // No event says when what is there goes.
        let requeue = fixture.reconcile("data-copy", &other_key()).await;
        assert_eq!(requeue, Requeue::After(Duration::from_mins(10)));
    }
    has_other(&script, &json!([]));
    assert_eq!(fixture.reconcile("data-copy", &other_key()).await, Requeue::OnEvent);
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    assert!(script.writes().contains(&format!("hub POST {SECRETS}")));
}

#[tokio::test]
async fn a_copy_that_is_deleted_to_be_made_again_keeps_its_room_until_it_is() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    fixture.put(&Plane::Hub, NAMESPACE, other_namespace(&script));
    has_other(&script, &json!([]));
    fixture.reconcile("data-copy", &other_key()).await;
    // Its source has another type now, and a finalizer keeps what is deleted.
    let version = json!({ "compute.datumapis.com/data-version": "f00-40" });
    let mut old = secret("ns-n1", "2", "old", &version);
    is_on_hub(&script, &old);
    let of_another_type = || {
        let mut source = secret("default", "3", &"x".repeat(39 << 10), &json!({}));
        source["type"] = json!("kubernetes.io/tls");
        source
    };
    script.say(SOURCE, 200, of_another_type());
    script.say(&format!("hub POST {SECRETS}"), 409, refusal(409));
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    let made_again = [format!("hub DELETE {SECRETS}/db"), format!("hub POST {SECRETS}")];
    assert_eq!(script.writes()[..2], made_again);
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    old["metadata"]["finalizers"] = json!(["a/b"]);
    is_on_hub(&script, &old);
    fixture.reconcile("data-copy", &key()).await;
    // It is gone, the project is silent, and another namespace of the project wants what was its room.
    script.say(&format!("hub GET {SECRETS}"), 200, list("Secret", &json!([])));
    script.say(&format!("hub GET {SECRETS}/db"), 404, refusal(404));
    script.say(SOURCE, 503, refusal(503));
    fixture.reconcile("data-copy", &key()).await;
    let mut wants = on_hub("pending");
    wants["metadata"]["namespace"] = json!("ns-n2");
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, wants);
    let theirs = secret("other", "1", &"y".repeat(30 << 10), &json!({}));
    script.say("project single GET /api/v1/namespaces/other/secrets/db", 200, theirs);
    script.asked();
    fixture.reconcile("data-copy", &other_key()).await;
    let (line, body) = script.sent().pop().unwrap();
    let web = format!("hub PATCH {DEPLOYMENTS}/ns-n2/workloaddeployments/web");
    assert!(line.starts_with(&web), "{line}");
    assert!(body.to_string().contains("may have 65536 bytes"), "{body}");
    script.say(SOURCE, 200, of_another_type());
    script.say(&format!("hub POST {SECRETS}"), 201, json!({ "kind": "Status" }));
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    assert!(script.writes().contains(&format!("hub POST {SECRETS}")));
}

#[tokio::test]
async fn a_copy_is_made_again_also_while_the_others_of_its_project_are_being_counted() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    fixture.put(&Plane::Hub, NAMESPACE, other_namespace(&script));
    let version = json!({ "compute.datumapis.com/data-version": "f00-1" });
    is_on_hub(&script, &secret("ns-n1", "2", "old", &version));
    let mut source = secret("default", "3", "new", &json!({}));
    source["type"] = json!("kubernetes.io/tls");
    script.say(SOURCE, 200, source);
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    let made_again = [format!("hub DELETE {SECRETS}/db"), format!("hub POST {SECRETS}")];
    assert_eq!(script.writes()[..2], made_again);
}

#[tokio::test]
async fn what_was_counted_still_counts_after_the_watch_of_the_hub_was_lost() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, other_namespace(&script));
    has_other(&script, &json!([ending()]));
    fixture.reconcile("data-copy", &other_key()).await;
    fixture.lose(&Plane::Hub, WORKLOAD_DEPLOYMENT);
    fixture.reconcile("data-copy", &other_key()).await;
    fixture.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, vec![on_hub("pending")]);
    is_told(&fixture, &script, "may have 65536 bytes on the platform").await;
}

#[tokio::test]
async fn who_waits_for_a_namespace_that_cannot_be_listed_is_told_and_the_log_names_it() {
    let (script, log) = (Arc::<Script>::default(), Log::default());
    let _logs = tracing::subscriber::set_default(log.subscriber());
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, other_namespace(&script));
    has_other(&script, &json!([]));
    script.say("hub GET /api/v1/namespaces/ns-n2/configmaps", 403, refusal(403));
    let me = json!({ "status": { "userInfo": { "username": "me" } } });
    script.say("hub POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, me);
    let requeue = is_told(&fixture, &script, "those of its project are being counted").await;
    assert_eq!(requeue, Requeue::After(Duration::from_secs(15)));
    for _ in 0..2 {
        fixture.reconcile("data-copy", &other_key()).await;
    }
    let says = "in a namespace of the platform cannot be listed; have an operator look into the controller's log";
    is_told(&fixture, &script, says).await;
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("failed to list")).collect();
    assert!(lines.len() == 1 && lines[0].contains("namespace=\"ns-n2\""), "{text}");
    has_other(&script, &json!([]));
    fixture.reconcile("data-copy", &other_key()).await;
    script.asked();
    fixture.reconcile("data-copy", &key()).await;
    assert!(script.writes().contains(&format!("hub POST {SECRETS}")));
}

#[tokio::test]
async fn sources_that_cannot_be_written_keep_no_others_from_their_turn() {
    let script = Arc::<Script>::default();
    project_answers(&script);
    let wide = |rules: &mut Rules| rules.data_bytes = 64 << 20;
    let fixture = Fixture::with_rules(management(true), &[SINGLE], script.answer(), wide).await;
    list_all(&fixture, &[SINGLE]);
    fill(&script, &fixture);
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    let names: Vec<String> = (0..20).map(|index| format!("s{index:02}")).collect();
    let mut one = on_hub("pending");
    let sources: Vec<Value> = names
        .iter()
        .map(|name| json!({ "secretRef": { "name": name } }))
        .collect();
    one["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"] = json!([{ "envFrom": sources }]);
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, one);
    for name in &names {
        let mut source = secret("default", "1", &"x".repeat(250 << 10), &json!({}));
        source["metadata"]["name"] = json!(name);
        script.say(
            &format!("project single GET /api/v1/namespaces/default/secrets/{name}"),
            200,
            source,
        );
    }
    script.say(&format!("hub POST {SECRETS}"), 422, refusal(422));
    // One that the project cannot read any more hides none either.
    script.say(
        "project single GET /api/v1/namespaces/default/secrets/s05",
        500,
        refusal(500),
    );
    let posted = async || {
        script.asked();
        fixture.reconcile("data-copy", &key()).await;
        let mut sent = script.sent();
        sent.retain(|(line, _)| line.starts_with(&format!("hub POST {SECRETS}")));
        let name = |(_, body): (_, Value)| body["metadata"]["name"].as_str().unwrap().to_owned();
        sent.into_iter().map(name).collect::<Vec<String>>()
    };
    let (first, second) = (posted().await, posted().await);
    assert!(first.len() > 10 && !first.contains(&names[19]), "{first:?}");
    let is_written = |one: &&String| first.contains(*one) || second.contains(*one);
    let left: Vec<&String> = names.iter().filter(|one| !is_written(one)).collect();
    assert_eq!(left, [&names[5]]);
}

#[tokio::test]
async fn switched_off_it_reads_no_project_and_deletes_the_copies_that_nothing_names() {
    let (script, log) = (Arc::<Script>::default(), Log::default());
    let _logs = tracing::subscriber::set_default(log.subscriber());
    project_answers(&script);
    let off = |rules: &mut Rules| rules.carries_data = false;
    let fixture = Fixture::with_rules(management(true), &[SINGLE], script.answer(), off).await;
    list_all(&fixture, &[SINGLE]);
    fill(&script, &fixture);
    let copy = json!({ "compute.datumapis.com/data-version": "1" });
    is_on_hub(&script, &secret("ns-n1", "2", "s3cr3t", &copy));
    script.asked();
    // Nothing is read where there have been no copies.
    assert_eq!(fixture.reconcile("data-copy", &key()).await, Requeue::OnEvent);
    assert_eq!(script.asked(), Vec::<String>::new());
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    assert_eq!(fixture.reconcile("data-copy", &key()).await, Requeue::OnEvent);
    let lists = [format!("hub GET {CONFIG_MAPS}"), format!("hub GET {SECRETS}")];
    assert_eq!(script.asked(), lists);
    fixture.put(
        &Plane::Hub,
        WORKLOAD_DEPLOYMENT,
        hub_deployment("ns-n1", "web", "uid-web"),
    );
    script.say(
        &format!("hub GET {DEPLOYMENTS}/ns-n1/workloaddeployments"),
        200,
        list("WorkloadDeployment", &json!([])),
    );
    fixture.reconcile("data-copy", &key()).await;
    assert_eq!(script.writes(), [format!("hub DELETE {SECRETS}/db")]);
    // The log has once what is left, and the way to end it.
    let text = log.text();
    let remedy = "kubectl delete configmaps,secrets --all-namespaces -l compute.datumapis.com/referenced-data=true";
    assert_eq!(text.matches(remedy).count(), 1, "{text}");
}

#[tokio::test]
async fn without_the_right_to_a_namespace_it_is_bound_to_the_own_user_once() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    script.say(&format!("hub GET {CONFIG_MAPS}"), 403, refusal(403));
    let me = json!({ "status": { "userInfo": { "username": "me" } } });
    script.say("hub POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 201, me);
    script.asked();
    let requeue = fixture.reconcile("data-copy", &key()).await;
    assert_eq!(requeue, Requeue::After(Duration::from_secs(5)));
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.starts_with(&format!("hub POST {BINDINGS}")), "{line}");
    assert_eq!(body["subjects"][0]["name"], "me");
    assert_eq!(body["roleRef"]["name"], "popcell-referenced-data");
    // It is there, and the authorizer does not know yet.
    let mut binding = body;
    binding["metadata"]["uid"] = json!("b");
    binding["metadata"]["resourceVersion"] = json!("5");
    script.say(&format!("hub GET {BINDINGS}/popcell-referenced-data"), 200, binding);
    let requeue = fixture.reconcile("data-copy", &key()).await;
    assert_eq!(requeue, Requeue::After(Duration::from_mins(1)));
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.contains("workloaddeployments/web"), "{line}");
    assert!(
        body.to_string()
            .contains("the platform gives the controller no right to"),
        "{body}"
    );
}

#[tokio::test]
async fn a_project_that_is_silent_or_gives_no_right_loses_nothing() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    let copy = secret(
        "ns-n1",
        "2",
        "s3cr3t",
        &json!({ "compute.datumapis.com/data-version": "1" }),
    );
    script.say(&format!("hub GET {SECRETS}"), 200, list("Secret", &json!([copy])));
    fixture.put(&Plane::Hub, NAMESPACE, with_copies());
    script.say(SOURCE, 503, refusal(503));
    let requeue = fixture.reconcile("data-copy", &key()).await;
    assert!(matches!(requeue, Requeue::WithBackoff(_)), "{requeue:?}");
    assert_eq!(script.writes(), Vec::<String>::new());
    script.say(SOURCE, 403, refusal(403));
    fixture.reconcile("data-copy", &key()).await;
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.contains("workloaddeployments/web"), "{line}");
    let says = "Secret db cannot be read: the project gives the controller no right to";
    assert!(body.to_string().contains(says), "{body}");
}

#[tokio::test]
async fn only_what_changes_who_names_what_enqueues_a_hub_namespace() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    let became = |before: Value, now: Value| Change::Applied {
        before: Some(read(before)),
        now: read(now),
    };
    let plain = || hub_deployment("ns-n1", "plain", "uid-plain");
    let (hub, of_project) = (Plane::Hub, project(SINGLE));
    let mut with_status = on_hub("f00");
    with_status["status"] = json!({ "replicas": 1 });
    for (plane, kind, change, is_concerned) in [
        (&hub, WORKLOAD_DEPLOYMENT, came(on_hub("pending")), true),
        (&hub, WORKLOAD_DEPLOYMENT, gone(on_hub("f00")), true),
        (&hub, WORKLOAD_DEPLOYMENT, came(plain()), false),
        (
            &hub,
            WORKLOAD_DEPLOYMENT,
            became(on_hub("f00"), on_hub("pending")),
            true,
        ),
        // Its own write.
        (
            &hub,
            WORKLOAD_DEPLOYMENT,
            became(on_hub("pending"), on_hub("f00")),
            false,
        ),
        (&hub, WORKLOAD_DEPLOYMENT, became(on_hub("f00"), with_status), false),
        (&hub, WORKLOAD_DEPLOYMENT, Change::Listed, true),
        (&of_project, WORKLOAD_DEPLOYMENT, Change::Listed, true),
        (
            &of_project,
            WORKLOAD_DEPLOYMENT,
            came(deployment("default", "web", "uid-web")),
            false,
        ),
    ] {
        let keys = fixture.keys_for_event("data-copy", plane, kind, &change);
        assert_eq!(!keys.is_empty(), is_concerned, "{kind:?} {change:?}");
    }
}

#[tokio::test]
async fn federation_says_with_each_generation_that_it_is_to_be_found_out_and_shows_what_is_wrong() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    let mut of_project = deployment("default", "web", "uid-web");
    of_project["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    let containers = on_hub("")["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"].clone();
    of_project["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"] = containers;
    fixture.put(&project(SINGLE), WORKLOAD_DEPLOYMENT, of_project.clone());
    let key = Key::new(&project(SINGLE), "default", "web");
    let mut stored = on_hub("f00");
    stored["metadata"]["annotations"]["compute.datumapis.com/referenced-data-error"] = json!("Secret db is too large");
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, stored);
    script.asked();
    fixture.reconcile("federation", &key).await;
    let sent = script.sent();
    assert!(
        sent.iter().all(|(line, _)| !line.starts_with("hub PATCH /apis")),
        "{sent:?}"
    );
    let status = sent.last().unwrap().1.to_string();
    assert!(
        status.contains("ReferencedDataNotReady") && status.contains("Secret db is too large"),
        "{status}"
    );

    of_project["metadata"]["generation"] = json!(2);
    of_project["spec"]["template"]["metadata"] = json!({ "annotations": { "a": "b" } });
    fixture.put(&project(SINGLE), WORKLOAD_DEPLOYMENT, of_project);
    fixture.reconcile("federation", &key).await;
    let sent = script.sent();
    let (_, patch) = sent.iter().find(|(line, _)| line.contains("hub PATCH /apis")).unwrap();
    let patch = patch.to_string();
    assert!(patch.contains("\"pending\"") && patch.contains("\"remove\""), "{patch}");
}
