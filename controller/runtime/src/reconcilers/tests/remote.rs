//! Copies and claims of a cell whose servers give scripted answers.

use popcell_api::kind::Kind;
use popcell_core::object::Object;

use super::*;
use crate::cell::Cell;
use crate::cell::testing::cell;
use crate::reconcile::{LiveReads, Snapshot};
use crate::reconcilers::cell as reconcilers;
use crate::reconcilers::instance_claim::Claimed;

const HUB_COPIES: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances";

/// A cell of which the hub knows, with namespace `ns-1` for `default` of project `p`.
struct Bench {
    script: Arc<Script>,
    cell: Arc<Cell>,
    fixture: Fixture,
}

impl Bench {
    async fn new() -> Self {
        let script = Arc::<Script>::default();
        let known = json!({ "metadata": { "name": "dfw-01", "labels": { "topology.datum.net/city-code": "DFW" } }, "spec": { "id": "cell-uid" } });
        script.say("hub GET /apis/cluster.karmada.io/v1alpha1/clusters/dfw-01", 200, known);
        script.say("hub GET /api/v1/namespaces/ns-1", 200, hub_namespace("ns-1", "p"));
        let cell = Arc::new(cell(None));
        let fixture = Fixture::in_cell(reconcilers(&cell), &["p"], script.answer()).await;
        fixture.list(&Plane::Cell, NAMESPACE, vec![hub_namespace("ns-1", "p")]);
        for (plane, kind) in [
            (Plane::Cell, WORKLOAD_DEPLOYMENT),
            (Plane::Cell, INSTANCE),
            (Plane::Hub, INSTANCE),
            (project("p"), RESOURCE_CLAIM),
        ] {
            fixture.list(&plane, kind, Vec::new());
        }
        Self { script, cell, fixture }
    }

    /// WorkloadDeployment `web` in the cell, and the hub's.
    fn deployment(&self, replicas: usize) {
        let mut one = deployment("ns-1", "web", "wd");
        one["metadata"]["annotations"] = json!({ "resourcetemplate.karmada.io/uid": "hub-web" });
        one["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
        self.fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, one);
        let at = format!("hub GET {DEPLOYMENTS}/ns-1/workloaddeployments/web");
        self.script.say(&at, 200, deployment("ns-1", "web", "hub-web"));
    }

    fn instance(&self, name: &str) {
        self.fixture.put(&Plane::Cell, INSTANCE, instance(name));
    }

    fn lost(&self, name: &str) {
        self.fixture.remove(&Plane::Cell, INSTANCE, instance(name));
    }

    async fn reconcile_copy(&self, name: &str) -> Requeue {
        let key = Key::new(&Plane::Hub, "ns-1", name);
        self.fixture.reconcile("instance-copy", &key).await
    }

    async fn reconcile_claim(&self, name: &str) -> Requeue {
        let key = Key::new(&project("p"), "ns-1", name);
        self.fixture.reconcile("instance-claim", &key).await
    }

    /// Claims that an event enqueues.
    fn claims_for_event(&self, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        self.fixture.keys_for_event("instance-claim", plane, kind, change)
    }
}

fn instance(name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "ns-1", "uid": name, "resourceVersion": "1", "generation": 1,
        "labels": { "compute.datumapis.com/workload-deployment-uid": "wd" } }, "spec": {} })
}

/// The copy of an Instance that was Ready, as this cell makes it.
fn copy(name: &str) -> Value {
    let labels = json!({ "compute.datumapis.com/managed-by": "popcell", "resourcetemplate.karmada.io/claimed-by": "popcell",
        "compute.datumapis.com/source-cluster": "dfw-01", "compute.datumapis.com/workload-deployment-uid": "wd" });
    json!({ "metadata": { "name": name, "namespace": "ns-1", "uid": format!("copy-{name}"), "resourceVersion": "1",
        "generation": 1, "labels": labels, "annotations": { "compute.datumapis.com/source-uid": "cell-uid" },
        "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": "web",
            "uid": "hub-web" }] },
        "spec": {}, "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Available", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })
}

/// The claim of an Instance in project `p`, as this cell makes it; unlike copies, claims have no marker.
fn claim(name: &str) -> Value {
    json!({ "metadata": { "name": format!("instance-{name}"), "namespace": "default", "uid": format!("claim-{name}"),
        "resourceVersion": "1", "labels": { "compute.datumapis.com/source-cluster": "dfw-01",
            "compute.datumapis.com/instance-namespace": "ns-1" },
        "annotations": { "compute.datumapis.com/source-uid": "cell-uid" } }, "spec": {} })
}

#[tokio::test]
async fn the_copy_of_a_slot_without_instance_is_not_ready() {
    let bench = Bench::new().await;
    bench.deployment(2);
    bench.fixture.put(&Plane::Hub, INSTANCE, copy("web-1"));
    bench.script.asked();
    bench.reconcile_copy("web-1").await;
    let sent = bench.script.sent().into_iter();
    let at = format!("hub PATCH {HUB_COPIES}/web-1/status");
    let patches: Vec<Value> = sent
        .filter(|(line, _)| line.starts_with(&at))
        .map(|(_, body)| body)
        .collect();
    let text = patches.first().map(ToString::to_string).unwrap_or_default();
    assert!(
        text.contains(r#""status":"False""#) && text.contains("Pending"),
        "{patches:?}"
    );
}

#[tokio::test]
async fn a_copy_that_the_garbage_collector_deleted_is_not_recreated() {
    let bench = Bench::new().await;
    bench.deployment(1);
    bench.instance("web-0");
    bench.reconcile_copy("web-0").await;
    let made = format!("hub POST {HUB_COPIES}");
    assert!(bench.script.writes().contains(&made));
    // The Workload is deleted while Karmada does not work: the hub's WorkloadDeployment goes, and with it what it owns.
    let at = format!("hub GET {DEPLOYMENTS}/ns-1/workloaddeployments/web");
    bench.script.say(&at, 404, absent("workloaddeployments/web").1);
    bench.fixture.put(&Plane::Hub, INSTANCE, copy("web-0"));
    bench.fixture.remove(&Plane::Hub, INSTANCE, copy("web-0"));
    for _ in 0..3 {
        bench.reconcile_copy("web-0").await;
    }
    assert_eq!(bench.script.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_deletion_guard_on_claims_counts_all_claims_of_the_cell() {
    let bench = Bench::new().await;
    for number in 0..100 {
        let name = format!("web-{number}");
        bench.fixture.put(&project("p"), RESOURCE_CLAIM, claim(&name));
        if number >= 25 {
            bench.instance(&name);
        }
    }
    bench.script.asked();
    bench.reconcile_claim("web-0").await;
    let deleted = format!(
        "project p DELETE /apis/{}/namespaces/default/",
        RESOURCE_CLAIM.api_version()
    );
    let writes = bench.script.writes();
    assert!(
        writes.iter().any(|line| line.starts_with(&deleted)),
        "25 of 100 are no mass deletion: {writes:?}"
    );
    assert!(
        !bench
            .fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&project("p"), RESOURCE_CLAIM)
    );
}

#[tokio::test(start_paused = true)]
async fn the_deletion_guard_on_copies_opens_once_the_cell_lists_its_instances_again() {
    let bench = Bench::new().await;
    bench.deployment(60);
    let names: Vec<String> = (0..60).map(|number| format!("web-{number}")).collect();
    for name in &names {
        bench.instance(name);
        bench.fixture.put(&Plane::Hub, INSTANCE, copy(name));
        bench.reconcile_copy(name).await;
    }
    // A list that is wrong: the WorkloadDeployment and all of its Instances are gone.
    let wrong = deployment("ns-1", "web", "wd");
    bench.fixture.remove(&Plane::Cell, WORKLOAD_DEPLOYMENT, wrong);
    for name in &names {
        bench.lost(name);
    }
    let is_held = || {
        bench
            .fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&Plane::Hub, INSTANCE)
    };
    let runner = bench.fixture.runner("instance-copy");
    let requeue = runner.reconcile(&Key::new(&Plane::Hub, "ns-1", "web-0")).await;
    assert!(is_held(), "{requeue:?}");

    bench.deployment(60);
    for name in &names[1..] {
        bench.instance(name);
    }
    for name in &names[1..] {
        bench.reconcile_copy(name).await;
    }
    let stop = tokio_util::sync::CancellationToken::new();
    let minute = std::time::Duration::from_secs(61);
    let _ = tokio::time::timeout(minute, runner.review(&stop)).await;
    assert!(!is_held(), "one of sixty is no mass deletion");
}

#[tokio::test]
async fn deleting_the_last_claim_of_a_project_enqueues_the_record_of_projects() {
    let bench = Bench::new().await;
    let wakes_record = |change: &Change| {
        let enqueued = bench
            .fixture
            .keys_for_event("claim-projects", &project("p"), RESOURCE_CLAIM, change);
        !enqueued.is_empty()
    };
    for name in ["web-0", "web-1"] {
        bench.fixture.put(&project("p"), RESOURCE_CLAIM, claim(name));
    }
    bench.fixture.remove(&project("p"), RESOURCE_CLAIM, claim("web-0"));
    assert!(!wakes_record(&gone(claim("web-0"))));
    bench.fixture.remove(&project("p"), RESOURCE_CLAIM, claim("web-1"));
    assert!(wakes_record(&gone(claim("web-1"))));
}

#[tokio::test]
async fn lists_and_namespaces_enqueue_the_record_of_projects_and_no_single_instance_or_claim_does() {
    let bench = Bench::new().await;
    bench.fixture.put(&project("p"), RESOURCE_CLAIM, claim("web-9"));
    let is_enqueued = |plane: &Plane, kind, change: &Change| {
        let enqueued = bench.fixture.keys_for_event("claim-projects", plane, kind, change);
        assert!(
            enqueued.iter().all(|key| key.name == "popcell-claim-projects"),
            "{enqueued:?}"
        );
        !enqueued.is_empty()
    };
    let deployment = deployment("ns-1", "web", "wd");
    for (plane, kind, object, expected) in [
        (Plane::Hub, INSTANCE, copy("web-0"), false),
        (Plane::Cell, INSTANCE, instance("web-0"), false),
        (Plane::Cell, WORKLOAD_DEPLOYMENT, deployment, false),
        (project("p"), RESOURCE_CLAIM, claim("web-0"), false),
        (Plane::Cell, NAMESPACE, hub_namespace("ns-2", "q"), true),
    ] {
        assert_eq!(
            is_enqueued(&plane, kind, &came(object)),
            expected,
            "{} in {plane}",
            kind.kind
        );
        assert!(is_enqueued(&plane, kind, &Change::Listed), "{} in {plane}", kind.kind);
        assert!(!is_enqueued(&plane, kind, &Change::Lost), "{} in {plane}", kind.kind);
    }
}

/// What a server may say of a claim that nobody can read.
fn broken(namespace: &str, name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": namespace, "uid": "b", "resourceVersion": "1", "labels": "none" } })
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_is_not_made_over_and_holds_up_no_other() {
    let bench = Bench::new().await;
    bench.deployment(2);
    for name in ["web-0", "web-1"] {
        bench.instance(name);
    }
    bench
        .fixture
        .put(&project("p"), RESOURCE_CLAIM, broken("default", "instance-web-0"));
    bench.script.asked();
    bench.reconcile_claim("web-0").await;
    assert_eq!(bench.script.writes(), Vec::<String>::new());
    bench.reconcile_claim("web-1").await;
    let made = format!(
        "project p POST /apis/{}/namespaces/default/resourceclaims",
        RESOURCE_CLAIM.api_version()
    );
    assert!(bench.script.writes().contains(&made));
    // The Instance reports why it waits.
    let live = LiveReads::default();
    let snapshot = Snapshot::new(&bench.fixture.context, &live);
    let claimed = Claimed::look(&bench.cell, &snapshot, "ns-1", "web-0", None);
    let trouble = claimed.unwrap().trouble(&snapshot).unwrap();
    assert!(
        trouble.contains("default/instance-web-0 is there and cannot be read"),
        "{trouble}"
    );
    // Another namespace's says nothing of it.
    let bench = Bench::new().await;
    bench.instance("web-0");
    bench
        .fixture
        .put(&project("p"), RESOURCE_CLAIM, broken("other", "instance-web-0"));
    bench.reconcile_claim("web-0").await;
    assert!(bench.script.writes().contains(&made));
}

#[tokio::test]
async fn a_project_whose_claim_cannot_be_read_stays_in_the_record() {
    let bench = Bench::new().await;
    let record = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-claim-projects", "namespace": "compute-system",
        "uid": "r", "resourceVersion": "1" }, "data": { "p": "" } });
    bench.script.say(
        "cell GET /api/v1/namespaces/compute-system/configmaps/popcell-claim-projects",
        200,
        record,
    );
    let list = format!("project p GET /apis/{}/resourceclaims", RESOURCE_CLAIM.api_version());
    let key = Key::new(&Plane::Cell, "compute-system", "popcell-claim-projects");
    for (items, stays) in [(json!([broken("default", "instance-web-0")]), true), (json!([]), false)] {
        bench.script.say(&list, 200, json!({ "items": items }));
        bench.script.asked();
        let requeue = bench.fixture.reconcile("claim-projects", &key).await;
        assert!(!matches!(requeue, Requeue::WithBackoff(_)), "{requeue:?}");
        assert_eq!(bench.script.writes().is_empty(), stays, "{items}");
    }
}

#[tokio::test]
async fn the_claim_of_a_deleted_instance_is_enqueued_also_where_its_namespace_no_longer_names_the_project() {
    let bench = Bench::new().await;
    bench.fixture.put(&project("p"), RESOURCE_CLAIM, claim("web-0"));
    let silent = json!({ "metadata": { "name": "ns-1", "uid": "hub-ns-1", "resourceVersion": "2" } });
    let changed_hands = hub_namespace("ns-1", "q");
    for (namespace, says) in [(silent, None), (changed_hands, Some("q"))] {
        bench.fixture.put(&Plane::Cell, NAMESPACE, namespace);
        assert_eq!(bench.cell.project(&bench.fixture.context, "ns-1").as_deref(), says);
        // Its Instance, and the WorkloadDeployment whose slot it is.
        for (kind, name) in [(INSTANCE, "web-0"), (WORKLOAD_DEPLOYMENT, "web")] {
            let gone = Change::Gone {
                namespace: "ns-1".to_owned(),
                name: name.to_owned(),
                last: None,
            };
            let enqueued = bench.claims_for_event(&Plane::Cell, kind, &gone);
            assert!(
                enqueued.contains(&Key::new(&project("p"), "ns-1", "web-0")),
                "{enqueued:?}"
            );
        }
        // A slot that is not asked for any more.
        let asks = |replicas: i64| -> Arc<Object> {
            let mut one = deployment("ns-1", "web", "wd");
            one["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
            read(one)
        };
        let fewer = Change::Applied {
            before: Some(asks(1)),
            now: asks(0),
        };
        let enqueued = bench.claims_for_event(&Plane::Cell, WORKLOAD_DEPLOYMENT, &fewer);
        assert!(
            enqueued.contains(&Key::new(&project("p"), "ns-1", "web-0")),
            "{enqueued:?}"
        );
    }
    assert!(bench.claims_for_event(&Plane::Cell, INSTANCE, &Change::Lost).is_empty());
    let other = Change::Gone {
        namespace: "ns-2".to_owned(),
        name: "web-0".to_owned(),
        last: None,
    };
    let enqueued = bench.claims_for_event(&Plane::Cell, INSTANCE, &other);
    assert!(enqueued.is_empty(), "{enqueued:?}");
}
