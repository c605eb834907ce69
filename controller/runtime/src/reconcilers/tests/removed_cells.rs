//! What a cell that is gone has left in several projects.

use popcell_api::kind::RESOURCE_CLAIM;

use super::*;
use crate::planes::Change;

const CLAIMS: &str = "/apis/quota.miloapis.com/v1alpha1";

fn left(namespace: &str, name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": namespace, "uid": format!("u-{name}"), "resourceVersion": "1",
        "creationTimestamp": "2026-02-01T00:00:00Z", "labels": { "compute.datumapis.com/source-cluster": "dfw-01",
        "compute.datumapis.com/managed-by": "popcell", "compute.datumapis.com/instance-namespace": "ns-p" },
        "annotations": { "compute.datumapis.com/source-uid": "k1" } } })
}

/// A claim for the Instance of a number in a project.
fn claim_of(id: &str, number: u32) -> Value {
    let mut claim = left("default", &format!("instance-{id}-{number}"));
    claim["metadata"]["labels"]["compute.datumapis.com/instance-namespace"] = json!(format!("ns-{id}"));
    claim
}

fn claims(items: &[Value]) -> Value {
    json!({ "kind": "ResourceClaimList", "items": items })
}

fn deletes(script: &Script) -> Vec<String> {
    script
        .asked()
        .into_iter()
        .filter(|line| line.contains(" DELETE "))
        .collect()
}

/// Its absence was noted long ago.
fn noted(script: &Script) {
    let notes = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-absent-cells", "namespace": "compute-system",
        "uid": "notes", "resourceVersion": "1" }, "data": { "dfw-01_k1": "2026-01-01T00:00:00Z" } });
    script.say(&format!("hub GET {NOTES}"), 200, notes);
}

const NOTES: &str = "/api/v1/namespaces/compute-system/configmaps/popcell-absent-cells";

async fn with_copies(script: &Arc<Script>, projects: &[&str]) -> Fixture {
    let fixture = fixture(script, projects).await;
    noted(script);
    for id in projects {
        let namespace = format!("ns-{id}");
        fixture.put(&Plane::Hub, NAMESPACE, hub_namespace(&namespace, id));
        fixture.put(&Plane::Hub, INSTANCE, left(&namespace, &format!("{id}-0")));
    }
    fixture
}

/// A reconciler and its key.
type Subject = (&'static str, Key);

/// What the Cluster of the cell was.
fn cell() -> Subject {
    ("removed-cells", Key::new(&Plane::Hub, "", "dfw-01"))
}

fn record() -> Subject {
    (
        "removed-cells-record",
        Key::new(&Plane::Hub, "compute-system", "popcell-removed-cells"),
    )
}

fn claims_in(id: &str) -> Subject {
    ("project-claims", Key::new(&project(id), "", id))
}

async fn reconcile(fixture: &Fixture, (reconciler, key): &Subject) -> Requeue {
    fixture.reconcile(reconciler, key).await
}

type Saying<'a> = Box<dyn Fn(&Script) + 'a>;

fn copy(id: &str) -> String {
    format!("hub DELETE {DEPLOYMENTS}/ns-{id}/instances/{id}-0")
}

#[tokio::test]
async fn a_project_that_does_not_answer_holds_up_the_cleanup_of_its_own_copies_only() {
    let list = "GET /apis/quota.miloapis.com/v1alpha1/resourceclaims";
    let html = json!("<html>no such page</html>");
    let discovery = |script: &Script, groups: (u16, Value)| {
        script.say("project p GET /apis", groups.0, groups.1.clone());
        script.say(&format!("project p GET {CLAIMS}"), 404, html.clone());
        script.say(&format!("project p {list}"), 404, html.clone());
    };
    let no_quota = json!({ "kind": "APIGroupList", "groups": [{ "name": "apps", "versions": [{ "version": "v1" }] }] });
    let held = |code| move |script: &Script| script.say(&format!("project p {list}"), code, refusal(code));
    let cases: [(&str, Saying<'_>, Requeue, bool); 5] = [
        (
            "refuses",
            Box::new(held(403)),
            Requeue::WithBackoff(Backoff::ADMISSION),
            false,
        ),
        (
            "cannot",
            Box::new(held(503)),
            Requeue::WithBackoff(Backoff::TRANSIENT),
            false,
        ),
        (
            "is behind a gateway that does not know it",
            Box::new(|script| discovery(script, (404, html.clone()))),
            Requeue::WithBackoff(Backoff::REFUSED),
            false,
        ),
        (
            "has no quota",
            Box::new(|script| discovery(script, (200, no_quota.clone()))),
            Requeue::After(std::time::Duration::from_secs(1)),
            true,
        ),
        (
            "has no claims",
            Box::new(|script| script.say(&format!("project p {list}"), 200, claims(&[]))),
            Requeue::After(std::time::Duration::from_secs(1)),
            true,
        ),
    ];
    for (what, say, requeue, goes) in cases {
        let script = Arc::<Script>::default();
        let fixture = with_copies(&script, &["p", "q", "r"]).await;
        script.say(
            &format!("project q {list}"),
            200,
            claims(&[left("default", "instance-q-0")]),
        );
        script.say(&format!("project r {list}"), 200, claims(&[]));
        say(&script);
        assert_eq!(reconcile(&fixture, &cell()).await, requeue, "{what}");
        let claim = format!("project q DELETE {CLAIMS}/namespaces/default/resourceclaims/instance-q-0");
        let mut expected = vec![claim, copy("r")];
        if goes {
            expected.insert(0, copy("p"));
        }
        assert_eq!(deletes(&script), expected, "{what}");
        // What is left of those that answer goes, whether it is there or not.
        script.say(&format!("project q {list}"), 200, claims(&[]));
        reconcile(&fixture, &cell()).await;
        assert_eq!(deletes(&script), [copy("q")], "{what}");
    }
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_keeps_its_own_copy_only() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    fixture.put(&Plane::Hub, INSTANCE, left("ns-p", "p-1"));
    let mut broken = left("default", "instance-p-0");
    broken["metadata"]["labels"] = json!("none");
    let list = "project p GET /apis/quota.miloapis.com/v1alpha1/resourceclaims";
    let readable = left("default", "instance-p-1");
    script.say(list, 200, claims(&[broken.clone(), readable.clone()]));
    for subject in [cell(), claims_in("p")] {
        let requeue = reconcile(&fixture, &subject).await;
        let (reconciler, key) = subject;
        assert!(matches!(requeue, Requeue::After(_)), "{requeue:?}");
        let claim = format!("project p DELETE {CLAIMS}/namespaces/default/resourceclaims/instance-p-1");
        assert_eq!(deletes(&script), [claim], "{key}");
        assert_eq!(fixture.context.gauge_counts().undecodable.values().sum::<usize>(), 1);
        fixture
            .context
            .memory(&key.plane)
            .unwrap()
            .note_gauges
            .put(reconciler, &key, None);
    }
    script.say(list, 200, claims(&[broken]));
    reconcile(&fixture, &cell()).await;
    let other = format!("hub DELETE {DEPLOYMENTS}/ns-p/instances/p-1");
    assert_eq!(deletes(&script), [other]);
}

#[tokio::test]
async fn claims_of_a_removed_cell_are_deleted_in_a_project_engaged_after_the_copies_are_gone() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["p"]).await;
    noted(&script);
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-p", "p"));
    let living = |name: &str| {
        let mut one = left("default", name);
        one["metadata"]["labels"]["compute.datumapis.com/source-cluster"] = json!("ord-01");
        one
    };
    let cluster =
        json!({ "metadata": { "name": "ord-01", "uid": "c", "resourceVersion": "1" }, "spec": { "id": "k1" } });
    fixture.put(&Plane::Hub, CLUSTER, cluster.clone());
    let found = claims(&[left("default", "instance-a-0"), living("instance-b-0")]);
    script.say(&format!("project p GET {CLAIMS}/resourceclaims"), 200, found);
    let (reconciler, key) = claims_in("p");
    let enqueued =
        |plane: &Plane, kind, change: &Change| fixture.keys_for_event(reconciler, plane, kind, change).contains(&key);
    let listed = || enqueued(&project("p"), WORKLOAD, &Change::Listed);
    assert!(listed() && enqueued(&Plane::Hub, CLUSTER, &Change::Listed));
    fixture.reconcile(reconciler, &key).await;
    assert_eq!(
        deletes(&script),
        [format!(
            "project p DELETE {CLAIMS}/namespaces/default/resourceclaims/instance-a-0"
        )]
    );
    assert!(fixture.orphans().is_empty());
    // Once looked at, a project is looked at again when it comes back, and when a Cluster goes or becomes another.
    assert!(!listed() && !enqueued(&Plane::Hub, CLUSTER, &Change::Listed));
    let now: Arc<popcell_core::object::Object> = serde_json::from_value(cluster.clone()).map(Arc::new).unwrap();
    let mut before = popcell_core::object::Object::clone(&now);
    let applied = |before: &popcell_core::object::Object| Change::Applied {
        before: Some(Arc::new(before.clone())),
        now: Arc::clone(&now),
    };
    before.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert!(!enqueued(&Plane::Hub, CLUSTER, &applied(&before)));
    before.data["spec"]["id"] = json!("another");
    assert!(enqueued(&Plane::Hub, CLUSTER, &applied(&before)));
    let gone = Change::Gone {
        namespace: String::new(),
        name: "ord-01".to_owned(),
        last: Some(now),
    };
    assert!(enqueued(&Plane::Hub, CLUSTER, &gone));
    let reconciler = &fixture.queued(reconciler).reconciler;
    reconciler.keys_on_disengage(&fixture.context, &project("p"));
    assert!(listed());
}

#[tokio::test]
async fn a_hub_that_was_recreated_deletes_no_claims() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["p"]).await;
    let mut anew = hub_namespace("ns-p", "p");
    anew["metadata"]["creationTimestamp"] = json!("2026-03-01T00:00:00Z");
    fixture.put(&Plane::Hub, NAMESPACE, anew);
    let found = claims(&[left("default", "instance-a-0")]);
    script.say(&format!("project p GET {CLAIMS}/resourceclaims"), 200, found);
    reconcile(&fixture, &claims_in("p")).await;
    assert!(deletes(&script).is_empty());
    let orphans = fixture.orphans();
    assert_eq!(orphans.iter().map(|one| one.kind).collect::<Vec<_>>(), [RESOURCE_CLAIM]);
}

#[tokio::test]
async fn a_cell_whose_cluster_is_absent_keeps_everything_for_its_grace() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    let list = "project p GET /apis/quota.miloapis.com/v1alpha1/resourceclaims";
    script.say(list, 200, claims(&[left("default", "instance-p-0")]));
    script.say(&format!("hub GET {NOTES}"), 404, absent(NOTES).1);
    let hour = std::time::Duration::from_hours(1);
    // Whoever sees it first notes it: by its copies, or by its claims in a project.
    let made = ["hub POST /api/v1/namespaces/compute-system/configmaps"];
    for subject in [cell(), claims_in("p")] {
        assert_eq!(reconcile(&fixture, &subject).await, Requeue::After(hour), "{subject:?}");
        assert_eq!(script.writes(), made, "{subject:?}");
    }
    // Within the grace nothing is sent, and it is looked at again when that is over.
    let now = k8s_openapi::jiff::Timestamp::now();
    let notes = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-absent-cells", "namespace": "compute-system",
        "uid": "notes", "resourceVersion": "1" }, "data": { "dfw-01_k1": now.to_string() } });
    script.say(&format!("hub GET {NOTES}"), 200, notes);
    for subject in [cell(), claims_in("p")] {
        let Requeue::After(left) = reconcile(&fixture, &subject).await else {
            panic!("{subject:?}");
        };
        assert!(left <= hour && left > hour / 2, "{left:?}");
        assert_eq!(script.writes(), Vec::<String>::new(), "{subject:?}");
    }
    // The Cluster is back: its note goes, and nothing else.
    let cluster =
        json!({ "metadata": { "name": "dfw-01", "uid": "c", "resourceVersion": "1" }, "spec": { "id": "k1" } });
    fixture.put(&Plane::Hub, CLUSTER, cluster);
    reconcile(&fixture, &record()).await;
    assert_eq!(script.writes(), [format!("hub PATCH {NOTES}")]);
}

#[tokio::test]
async fn a_source_that_no_cell_can_be_keeps_no_other_from_being_noted() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    let odd = |namespace: &str, name: &str| {
        let mut one = left(namespace, name);
        one["metadata"]["annotations"]["compute.datumapis.com/source-uid"] = json!("a b");
        one
    };
    let list = "project p GET /apis/quota.miloapis.com/v1alpha1/resourceclaims";
    script.say(
        list,
        200,
        claims(&[odd("default", "instance-odd-0"), left("default", "instance-p-0")]),
    );
    script.say(&format!("hub GET {NOTES}"), 404, absent(NOTES).1);
    reconcile(&fixture, &claims_in("p")).await;
    let sent = script.sent();
    let notes = sent.iter().find_map(|(_, body)| body.get("data")?.as_object());
    assert_eq!(notes.unwrap().keys().collect::<Vec<_>>(), ["dfw-01_k1"]);
    let orphans = fixture.orphans();
    assert_eq!(
        orphans.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["instance-odd-0"]
    );
    // So are its copies.
    fixture.put(&Plane::Hub, INSTANCE, odd("ns-p", "odd-0"));
    reconcile(&fixture, &cell()).await;
    let orphans = fixture.orphans();
    assert!(
        orphans.iter().any(|one| one.kind == INSTANCE && one.name == "odd-0"),
        "{orphans:?}"
    );
}

#[tokio::test]
async fn a_hub_that_does_not_tell_the_notes_releases_removed_cells_only() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    script.say(
        "project p GET /apis/quota.miloapis.com/v1alpha1/resourceclaims",
        200,
        claims(&[]),
    );
    script.say(&format!("hub GET {NOTES}"), 403, refusal(403));
    assert_eq!(
        reconcile(&fixture, &cell()).await,
        Requeue::WithBackoff(Backoff::ADMISSION)
    );
    assert!(script.writes().is_empty());
    let record = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-removed-cells", "uid": "r",
        "resourceVersion": "1" }, "data": { "dfw-01_k1": "2026-01-01T00:00:00Z" } });
    let records = "/api/v1/namespaces/compute-system/configmaps/popcell-removed-cells";
    script.say(&format!("hub GET {records}"), 200, record);
    reconcile(&fixture, &cell()).await;
    assert_eq!(deletes(&script), [copy("p")]);
}

#[tokio::test]
async fn the_guard_holds_what_an_absent_cell_has_left_and_lets_a_removed_one_go() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    let many: Vec<Value> = (0..25)
        .map(|number| left("default", &format!("instance-p-{number}")))
        .collect();
    script.say(
        "project p GET /apis/quota.miloapis.com/v1alpha1/resourceclaims",
        200,
        claims(&many),
    );
    reconcile(&fixture, &cell()).await;
    assert!(deletes(&script).is_empty());
    assert!(
        fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&project("p"), RESOURCE_CLAIM)
    );
    let record = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-removed-cells", "uid": "r",
        "resourceVersion": "1" }, "data": { "dfw-01_k1": "2026-01-01T00:00:00Z" } });
    let records = "/api/v1/namespaces/compute-system/configmaps/popcell-removed-cells";
    script.say(&format!("hub GET {records}"), 200, record);
    reconcile(&fixture, &cell()).await;
    assert_eq!(deletes(&script).len(), 25);
}

#[tokio::test]
async fn two_clusters_of_one_cell_are_reported_and_lose_nothing() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    for name in ["dfw-01", "dfw-02"] {
        let cluster =
            json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1" }, "spec": { "id": "k1" } });
        fixture.put(&Plane::Hub, CLUSTER, cluster);
    }
    let log = crate::context::testing::Log::default();
    {
        use tracing::instrument::WithSubscriber;
        reconcile(&fixture, &record()).with_subscriber(log.subscriber()).await;
    }
    assert!(log.text().contains("dfw-01, dfw-02"), "{}", log.text());
    assert!(script.writes().iter().all(|line| !line.contains(" DELETE ")));
}

/// A reconcile costs what all cells have on the hub.
#[tokio::test]
async fn writes_of_a_living_cell_enqueue_no_check_of_all_copies() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p"]).await;
    let cluster = |name: &str, id: &str| json!({ "metadata": { "name": name, "uid": format!("c-{name}"), "resourceVersion": "1" }, "spec": { "id": id } });
    let enqueued = |source: (&str, &str)| {
        let mut copy = left("ns-p", "new-0");
        copy["metadata"]["labels"]["compute.datumapis.com/source-cluster"] = json!(source.0);
        copy["metadata"]["annotations"]["compute.datumapis.com/source-uid"] = json!(source.1);
        let now: Arc<popcell_core::object::Object> = Arc::new(serde_json::from_value(copy).unwrap());
        let changes = [
            Change::Applied {
                before: None,
                now: Arc::clone(&now),
            },
            Change::Gone {
                namespace: "ns-p".to_owned(),
                name: "new-0".to_owned(),
                last: Some(now),
            },
        ];
        changes.map(|change| {
            let of = |reconciler| fixture.keys_for_event(reconciler, &Plane::Hub, INSTANCE, &change).len();
            (of("removed-cells"), of("project-claims"))
        })
    };
    fixture.put(&Plane::Hub, CLUSTER, cluster("dfw-01", "k1"));
    fixture.put(&Plane::Hub, CLUSTER, cluster("ord-01", ""));
    assert_eq!(enqueued(("dfw-01", "k1")), [(0, 0), (0, 0)]);
    // Whose id Karmada has not read yet is not gone.
    assert_eq!(enqueued(("ord-01", "k2")), [(0, 0), (0, 0)]);
    // When a copy goes, the claims of its project are looked for too.
    assert_eq!(enqueued(("dfw-01", "another")), [(1, 0), (1, 1)]);
    assert_eq!(enqueued(("lhr-01", "k3")), [(1, 0), (1, 1)]);
    fixture.remove(&Plane::Hub, CLUSTER, cluster("dfw-01", "k1"));
    assert_eq!(enqueued(("dfw-01", "k1")), [(1, 0), (1, 1)]);
}

/// By hand, or by another installation that shares the hub and read the record first.
#[tokio::test]
async fn claims_of_a_gone_cell_are_looked_for_when_their_copies_are_deleted_by_others() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p", "q"]).await;
    let enqueued = |copy: Value| {
        let last: popcell_core::object::Object = serde_json::from_value(copy).unwrap();
        let change = Change::Gone {
            namespace: last.metadata.namespace.clone().unwrap(),
            name: last.metadata.name.clone().unwrap(),
            last: Some(Arc::new(last)),
        };
        ["removed-cells", "project-claims"]
            .map(|reconciler| fixture.keys_for_event(reconciler, &Plane::Hub, INSTANCE, &change))
    };
    assert_eq!(enqueued(left("ns-q", "q-0")), [[cell().1], [claims_in("q").1]]);
    fixture.remove(&Plane::Hub, INSTANCE, left("ns-q", "q-0"));
    let list = "project q GET /apis/quota.miloapis.com/v1alpha1/resourceclaims";
    script.say(list, 200, claims(&[claim_of("q", 0)]));
    reconcile(&fixture, &claims_in("q")).await;
    let claim = format!("project q DELETE {CLAIMS}/namespaces/default/resourceclaims/instance-q-0");
    assert_eq!(deletes(&script), [claim]);
    // A living cell makes its copy again.
    let cluster =
        json!({ "metadata": { "name": "dfw-01", "uid": "c", "resourceVersion": "1" }, "spec": { "id": "k1" } });
    fixture.put(&Plane::Hub, CLUSTER, cluster);
    assert_eq!(enqueued(left("ns-q", "q-0")), [[], []]);
}

/// The record is written for a Cluster that went before it: no event tells of it.
#[tokio::test]
async fn a_cell_that_is_recorded_after_its_cluster_went_is_released_before_its_grace_ends() {
    let script = Arc::<Script>::default();
    let fixture = with_copies(&script, &["p", "q"]).await;
    let list = |id: &str| format!("project {id} GET /apis/quota.miloapis.com/v1alpha1/resourceclaims");
    for id in ["p", "q"] {
        script.say(&list(id), 200, claims(&[claim_of(id, 0)]));
    }
    // Of q only the claim is left.
    fixture.remove(&Plane::Hub, INSTANCE, left("ns-q", "q-0"));
    script.say(&format!("hub GET {NOTES}"), 404, absent(NOTES).1);
    // There is nothing to look out for yet.
    assert_eq!(reconcile(&fixture, &record()).await, Requeue::OnEvent);
    let queue = &fixture.queued("removed-cells-record").queue;
    for subject in [cell(), claims_in("q")] {
        reconcile(&fixture, &subject).await;
        assert_eq!(
            script.writes(),
            ["hub POST /api/v1/namespaces/compute-system/configmaps"],
            "{subject:?}"
        );
        // Who notes an absence has the record looked at from now on.
        assert_eq!(queue.stats().depth, 1, "{subject:?}");
        queue.retire(&Plane::Hub);
    }
    let now = k8s_openapi::jiff::Timestamp::now();
    let notes = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-absent-cells", "namespace": "compute-system",
        "uid": "notes", "resourceVersion": "1" }, "data": { "dfw-01_k1": now.to_string() } });
    script.say(&format!("hub GET {NOTES}"), 200, notes);
    let soon = Requeue::After(std::time::Duration::from_mins(1));
    assert_eq!(reconcile(&fixture, &record()).await, soon);
    assert!(script.writes().is_empty());
    let recorded = json!({ "kind": "ConfigMap", "metadata": { "name": "popcell-removed-cells", "uid": "r",
        "resourceVersion": "1" }, "data": { "dfw-01_k1": "2026-01-01T00:00:00Z" } });
    let records = "/api/v1/namespaces/compute-system/configmaps/popcell-removed-cells";
    script.say(&format!("hub GET {records}"), 200, recorded);
    assert_eq!(fixture.depth("project-claims"), 0);
    reconcile(&fixture, &record()).await;
    let claim = |id: &str| format!("project {id} DELETE {CLAIMS}/namespaces/default/resourceclaims/instance-{id}-0");
    assert_eq!(deletes(&script), [claim("p")]);
    assert_eq!(
        fixture.depth("project-claims"),
        2,
        "claims without copies are looked for in all projects"
    );
    reconcile(&fixture, &claims_in("q")).await;
    assert_eq!(deletes(&script), [claim("q")]);
}
