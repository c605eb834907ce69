//! The ResourceQuota that each hub namespace of ours has.

use std::time::Duration;

use popcell_core::plan::RESOURCE_QUOTA;

use super::*;
use crate::planes::SINGLE;

const QUOTAS: &str = "hub POST /api/v1/namespaces/ns-n1/resourcequotas";
const QUOTA: &str = "/api/v1/namespaces/ns-n1/resourcequotas/popcell-hub";

/// A project with a WorkloadDeployment that may be carried, and a hub that has nothing of it yet.
async fn bench(script: &Arc<Script>) -> Fixture {
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let fixture = fixture(script, &[SINGLE]).await;
    let mut web = deployment("default", "web", "wd");
    web["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    fixture.put(&project(SINGLE), WORKLOAD_DEPLOYMENT, web);
    fixture
}

fn quota(number: &str, version: &str, used: &str) -> Value {
    let counts = |number: &str| json!({ "count/instances.compute.datumapis.com": number });
    json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "popcell-hub", "namespace": "ns-n1",
        "uid": "q", "resourceVersion": version, "labels": { "compute.datumapis.com/managed-by": "popcell" } },
        "spec": { "hard": counts(number) }, "status": { "hard": counts(number), "used": counts(used) } })
}

fn of_namespace() -> Key {
    Key::new(&Plane::Hub, "ns-n1", "ns-n1")
}

fn of_web() -> Key {
    Key::new(&project(SINGLE), "default", "web")
}

#[tokio::test]
async fn a_namespace_that_is_new_costs_one_request_more_and_none_at_rest() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.reconcile("federation", &of_web()).await;
    let carried = [
        "project single GET /api/v1/namespaces/kube-system".to_owned(),
        "project single GET /api/v1/namespaces/default".to_owned(),
        "hub POST /api/v1/namespaces".to_owned(),
        format!("hub POST {DEPLOYMENTS}/ns-n1/workloaddeployments"),
        format!("project single PATCH {DEPLOYMENTS}/default/workloaddeployments/web/status"),
    ];
    assert_eq!(script.asked(), carried);
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));

    // As long as quotas are not listed nobody knows.
    fixture.reconcile("hub-quota", &of_namespace()).await;
    assert_eq!(script.asked(), Vec::<String>::new());
    fixture.list(&Plane::Hub, RESOURCE_QUOTA, Vec::new());
    fixture.reconcile("hub-quota", &of_namespace()).await;
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.starts_with(QUOTAS), "{line}");
    assert_eq!(body["spec"], quota("20000", "1", "0")["spec"]);
    assert_eq!(
        body["metadata"]["labels"],
        quota("20000", "1", "0")["metadata"]["labels"]
    );

    // As the server keeps it.
    fixture.put(&Plane::Hub, RESOURCE_QUOTA, quota("20k", "2", "0"));
    assert_eq!(fixture.reconcile("hub-quota", &of_namespace()).await, Requeue::OnEvent);
    assert_eq!(script.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_edit_and_a_deletion_are_seen_and_counts_enqueue_nothing() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));
    fixture.list(&Plane::Hub, RESOURCE_QUOTA, vec![quota("20k", "2", "0")]);
    let read = |value: Value| Arc::new(serde_json::from_value(value).unwrap());
    let became = |now: Value| Change::Applied {
        before: Some(read(quota("20k", "2", "0"))),
        now: read(now),
    };
    let gone = Change::Gone {
        namespace: "ns-n1".to_owned(),
        name: "popcell-hub".to_owned(),
        last: Some(read(quota("20k", "2", "0"))),
    };
    let mut of_others = quota("1", "1", "0");
    of_others["metadata"]["name"] = json!("other");
    let other = Change::Applied {
        before: None,
        now: read(of_others),
    };
    for (change, is_enqueued) in [
        (became(quota("20k", "3", "7")), false),
        (became(quota("1k", "3", "7")), true),
        (gone, true),
        (other, false),
        (Change::Listed, true),
    ] {
        let enqueued = fixture.keys_for_event("hub-quota", &Plane::Hub, RESOURCE_QUOTA, &change);
        assert_eq!(enqueued == [of_namespace()], is_enqueued, "{change:?}");
        assert_eq!(enqueued.is_empty(), !is_enqueued, "{change:?}");
    }
    // A project that is engaged after the hub was listed.
    let enqueued = fixture.keys_for_event("hub-quota", &project(SINGLE), WORKLOAD_DEPLOYMENT, &Change::Listed);
    assert_eq!(enqueued, [of_namespace()]);

    fixture.put(&Plane::Hub, RESOURCE_QUOTA, quota("1k", "3", "7"));
    fixture.reconcile("hub-quota", &of_namespace()).await;
    assert_eq!(script.writes(), [format!("hub PATCH {QUOTA}")]);
}

#[tokio::test]
async fn a_hub_that_refuses_quotas_stops_nothing_else() {
    let script = Arc::<Script>::default();
    script.say(QUOTAS, 403, refusal(403));
    let fixture = bench(&script).await;
    fixture.list(&Plane::Hub, RESOURCE_QUOTA, Vec::new());
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));
    // More often than a namespace may be refused before all writes of the kind wait.
    for _ in 0..30 {
        let requeue = fixture.reconcile("hub-quota", &of_namespace()).await;
        assert!(
            matches!(requeue, Requeue::WithBackoff(_) | Requeue::Postponed(_)),
            "{requeue:?}"
        );
    }
    script.asked();
    assert_eq!(fixture.reconcile("federation", &of_web()).await, Requeue::OnEvent);
    fixture
        .reconcile("policy", &Key::new(&Plane::Hub, "ns-n1", "city-dfw"))
        .await;
    assert_eq!(
        script.writes(),
        [
            format!("hub POST {DEPLOYMENTS}/ns-n1/workloaddeployments"),
            format!("project single PATCH {DEPLOYMENTS}/default/workloaddeployments/web/status"),
            "hub POST /apis/policy.karmada.io/v1alpha1/namespaces/ns-n1/propagationpolicies".to_owned(),
        ]
    );
}

#[tokio::test]
async fn one_of_another_owner_is_found_by_its_name_and_kept() {
    let script = Arc::<Script>::default();
    let exists = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "AlreadyExists",
        "message": "resourcequotas \"popcell-hub\" already exists" });
    script.say(QUOTAS, 409, exists);
    let mut theirs = quota("5", "1", "0");
    theirs["metadata"]["labels"] = json!({});
    script.say(&format!("hub GET {QUOTA}"), 200, theirs);
    let fixture = bench(&script).await;
    fixture.list(&Plane::Hub, RESOURCE_QUOTA, Vec::new());
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));
    fixture.reconcile("federation", &of_web()).await;
    script.asked();
    let requeue = fixture.reconcile("hub-quota", &of_namespace()).await;
    assert_eq!(requeue, Requeue::After(Duration::from_mins(10)));
    assert_eq!(script.asked(), [QUOTAS.to_owned(), format!("hub GET {QUOTA}")]);
    let foreign = fixture.context.gauge_counts().foreign;
    assert_eq!(foreign.values().sum::<usize>(), 1, "{foreign:?}");
}

#[tokio::test]
async fn a_namespace_of_a_project_that_is_not_engaged_is_left() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.list(&Plane::Hub, RESOURCE_QUOTA, Vec::new());
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.reconcile("hub-quota", &of_namespace()).await;
    assert_eq!(script.asked(), Vec::<String>::new());
}
