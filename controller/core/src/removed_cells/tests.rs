use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::testing::{FakeServers, object};
use serde_json::json;

const DFW: Source<'static> = Source {
    name: "dfw-01",
    id: "k1",
};

fn cluster(name: &str, id: &str, city: &str) -> Object {
    object(
        json!({ "metadata": { "name": name, "labels": { "topology.datum.net/city-code": city } }, "spec": { "id": id } }),
    )
}

fn left(name: &str, namespace: &str, source: Source<'_>) -> Object {
    object(
        json!({ "metadata": { "name": name, "namespace": namespace, "uid": format!("u-{name}"), "resourceVersion": "1",
        "labels": { "compute.datumapis.com/source-cluster": source.name, "compute.datumapis.com/managed-by": "popcell" },
        "annotations": { "compute.datumapis.com/source-uid": source.id } } }),
    )
}

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    let other = Source {
        name: "dfw-01",
        id: "k2",
    };
    let next = Source {
        name: "ord-01",
        id: "k3",
    };
    for (name, source) in [("a-0", DFW), ("b-0", other), ("c-0", next)] {
        servers.put(&Plane::Hub, kind::INSTANCE, left(name, "ns-n1", source));
        let claim = left(&format!("instance-{name}"), "default", source);
        servers.put(&project(), kind::RESOURCE_CLAIM, claim);
    }
    servers
}

/// Its absence was noted long ago.
const OVER: Option<Duration> = Some(Duration::ZERO);

fn reconcile(servers: &FakeServers, removed: bool) -> Plan {
    pass_with(servers, removed, OVER)
}

fn pass_with(servers: &FakeServers, removed: bool, left: Option<Duration>) -> Plan {
    let claims: Vec<_> = servers
        .list(&project(), kind::RESOURCE_CLAIM)
        .into_iter()
        .map(|one| ("p", one))
        .collect();
    clean(&Observation {
        source: DFW,
        clusters: Observed::Known(&servers.list(&Plane::Hub, kind::CLUSTER)),
        removed,
        left,
        claims: &claims,
        unreadable: &[],
        copies: &servers.list(&Plane::Hub, kind::INSTANCE),
    })
}

fn names(servers: &FakeServers) -> Vec<String> {
    let all = servers.all().filter(|(key, _)| key.1 != kind::CLUSTER.kind);
    all.map(|(_, one)| one.name().to_owned()).collect()
}

#[test]
fn of_a_removed_cell_claims_are_deleted_before_copies_and_nothing_of_others() {
    let mut servers = servers();
    let first = reconcile(&servers, false);
    assert_eq!(first.actions.len(), 1);
    assert_eq!(first.actions[0].target().kind, kind::RESOURCE_CLAIM);
    // One that does not carry our marker is not ours to delete.
    let mut unmarked = left("d-0", "ns-n1", DFW);
    unmarked.metadata.labels.as_mut().unwrap().remove(labels::MANAGED_BY);
    servers.put(&Plane::Hub, kind::INSTANCE, unmarked);
    servers.settle(|servers| reconcile(servers, false));
    assert_eq!(servers.list(&Plane::Hub, kind::INSTANCE).len(), 3);
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "d-0");
    assert_eq!(names(&servers), ["instance-b-0", "instance-c-0", "b-0", "c-0"]);
}

#[test]
fn copies_wait_for_a_held_claim_which_is_checked_again() {
    let mut servers = servers();
    let first = reconcile(&servers, false);
    assert_eq!(first.requeue, Some(Duration::from_secs(1)));
    let mut held = left("instance-a-0", "default", DFW);
    held.metadata.finalizers = Some(vec!["quota".to_owned()]);
    held.metadata.deletion_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    servers.put(&project(), kind::RESOURCE_CLAIM, held);
    let plan = reconcile(&servers, false);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    assert!(matches!(plan.notes.as_slice(), [Note::WaitsFor(_)]), "{:?}", plan.notes);
    assert_eq!(plan.requeue, Some(Duration::from_secs(10)));
}

#[test]
fn only_the_copy_of_an_unreadable_claim_waits_for_it() {
    let copies = [left("a-0", "ns-n1", DFW), left("a-1", "ns-n1", DFW)];
    let copies: Vec<&Object> = copies.iter().collect();
    for (unreadable, goes) in [
        (&["instance-a-0"][..], vec!["a-1"]),
        (&["instance-b-0"], vec!["a-0", "a-1"]),
        (&[""], Vec::new()),
    ] {
        let plan = clean(&Observation {
            source: DFW,
            clusters: Observed::Known(&[]),
            removed: true,
            left: None,
            claims: &[],
            unreadable,
            copies: &copies,
        });
        let names: Vec<&str> = plan.actions.iter().map(|one| one.target().name.as_str()).collect();
        assert_eq!(names, goes, "{unreadable:?}");
    }
}

#[test]
fn a_cell_whose_cluster_exists_keeps_everything_until_it_is_removed() {
    for (id, gone) in [("k1", false), ("", false), ("k9", true)] {
        let mut servers = servers();
        servers.put(&Plane::Hub, kind::CLUSTER, cluster("dfw-01", id, "DFW"));
        assert_eq!(!reconcile(&servers, false).is_unchanged(), gone, "id {id:?}");
        // Recorded as removed, while Karmada still has the Cluster.
        servers.removed_cells.push(("dfw-01".to_owned(), "k1".to_owned()));
        servers.settle(|servers| reconcile(servers, true));
        assert!(!names(&servers).contains(&"a-0".to_owned()));
    }
    let servers = servers();
    let unknown = clean(&Observation {
        source: DFW,
        clusters: Observed::Unknown,
        removed: false,
        left: OVER,
        claims: &[],
        unreadable: &[],
        copies: &servers.list(&Plane::Hub, kind::INSTANCE),
    });
    assert!(unknown.is_unchanged());
}

#[test]
fn an_absent_cluster_is_not_a_removed_one() {
    let servers = servers();
    let deletion_guards = |plan: &Plan| -> Vec<DeletionGuard> {
        let deletes = plan.actions.iter().map(|action| match action {
            Action::Delete(delete) => delete.deletion_guard.clone(),
            other => panic!("{other}"),
        });
        deletes.collect()
    };
    // Not noted yet; noted, and within the grace; after it, but counted; recorded.
    let minute = Duration::from_mins(1);
    let unnoted = pass_with(&servers, false, None);
    assert!(unnoted.is_unchanged() && unnoted.requeue.is_none());
    let within = pass_with(&servers, false, Some(minute));
    assert!(within.is_unchanged());
    assert_eq!(within.requeue, Some(minute));
    assert_eq!(
        deletion_guards(&pass_with(&servers, false, OVER)),
        [DeletionGuard::Applies]
    );
    for left in [None, Some(minute), OVER] {
        assert_eq!(
            deletion_guards(&pass_with(&servers, true, left)),
            [DeletionGuard::Exempt]
        );
    }
    // Another cell under its name is no word of its removal either.
    let mut replaced = servers.clone();
    replaced.put(&Plane::Hub, kind::CLUSTER, cluster("dfw-01", "k9", "DFW"));
    assert!(pass_with(&replaced, false, Some(minute)).is_unchanged());
}

#[test]
fn claims_of_an_absent_cell_wait_for_its_grace_and_those_of_a_removed_one_do_not() {
    let mut claim = left("instance-a-0", "default", DFW);
    let labels = claim.metadata.labels.as_mut().unwrap();
    labels.insert(labels::INSTANCE_NAMESPACE.to_owned(), "ns-n1".to_owned());
    claim.metadata.creation_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    let mut namespace = object(json!({ "metadata": { "name": "ns-n1", "labels": {
        "meta.datumapis.com/upstream-cluster-name": "cluster-p", "meta.datumapis.com/upstream-namespace": "default" } } }));
    namespace.metadata.creation_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
    let (none, recorded) = (BTreeSet::new(), BTreeSet::from([DFW]));
    let minute = Duration::from_mins(1);
    for (removed, left, deletes, requeue) in [
        (&none, None, 0, None),
        (&none, Some(minute), 0, Some(minute)),
        (&none, OVER, 1, None),
        (&recorded, None, 1, None),
        (&recorded, Some(minute), 1, None),
    ] {
        let seen = Claims {
            project: "p",
            claims: &[&claim],
            clusters: Observed::Known(&[]),
            removed,
            namespaces: &[&namespace],
        };
        let graces = Graces {
            left: left.map(|left| (DFW, left)).into_iter().collect(),
            ..Graces::default()
        };
        let plan = clean_claims(&seen, &graces);
        assert_eq!(
            (plan.actions.len(), plan.requeue),
            (deletes, requeue),
            "{removed:?} {left:?}"
        );
        assert_eq!(seen.absent().is_empty(), !removed.is_empty());
        let misplaced = Graces {
            misplaced: recorded.clone(),
            ..Graces::default()
        };
        let misplaced = clean_claims(&Claims { removed: &none, ..seen }, &misplaced);
        assert!(misplaced.is_unchanged() && matches!(misplaced.notes[..], [Note::Orphan(_)]));
    }
}

#[test]
fn two_clusters_of_one_cell_are_seen() {
    let clusters = [
        cluster("a", "1", "DFW"),
        cluster("b", "2", "ORD"),
        cluster("c", "1", "LHR"),
        cluster("d", "", "LHR"),
        cluster("e", "", "LHR"),
    ];
    let twins = twins(&clusters.iter().collect::<Vec<_>>());
    assert_eq!(twins, [("1", vec!["a", "c"])].into());
}

#[test]
fn a_stale_list_of_clusters_deletes_nothing() {
    let mut servers = servers();
    let plan = reconcile(&servers, false);
    servers.put(&Plane::Hub, kind::CLUSTER, cluster("dfw-01", "k1", "DFW"));
    let before = names(&servers);
    servers.apply(&plan);
    assert_eq!(names(&servers), before);
}

#[test]
fn claims_are_evidence_enough_where_this_hub_carried_their_namespace() {
    let at = |created: &str, object: &Object| {
        let mut object = object.clone();
        object.metadata.creation_timestamp = Some(serde_json::from_value(json!(created)).unwrap());
        object
    };
    let claim = |created: &str| {
        let mut claim = at(created, &left("instance-a-0", "default", DFW));
        let labels = claim.metadata.labels.as_mut().unwrap();
        labels.insert(labels::INSTANCE_NAMESPACE.to_owned(), "ns-n1".to_owned());
        claim
    };
    let namespace = |name: &str, project: &str| {
        let labels = json!({ "meta.datumapis.com/upstream-cluster-name": format!("cluster-{project}"),
            "meta.datumapis.com/upstream-namespace": "default" });
        let one = object(json!({ "metadata": { "name": name, "labels": labels } }));
        at("2026-01-02T00:00:00Z", &one)
    };
    let (none, recorded) = (BTreeSet::new(), BTreeSet::from([DFW]));
    let decide = |claim: &Object, clusters: Observed<&[&Object]>, removed, namespaces: &[&Object]| {
        let seen = Claims {
            project: "p",
            claims: &[claim],
            clusters,
            removed,
            namespaces,
        };
        let over = Graces {
            left: BTreeMap::from([(DFW, Duration::ZERO)]),
            ..Graces::default()
        };
        let plan = clean_claims(&seen, &over);
        assert!(
            plan.actions.iter().all(|action| matches!(action, Action::Delete(delete)
            if matches!(&delete.proofs[..], [Proof::SourceGone { cluster, id }] if cluster == "dfw-01" && id == "k1")))
        );
        (plan.actions.len(), plan.notes)
    };
    let (older, later) = (claim("2026-01-01T00:00:00Z"), claim("2026-01-03T00:00:00Z"));
    let absent = Observed::Known(&[] as &[&Object]);
    let reported = vec![Note::Orphan(Target::of(&project(), kind::RESOURCE_CLAIM, &later))];
    let (ours, anothers, other) = (
        namespace("ns-n1", "p"),
        namespace("ns-n1", "q"),
        namespace("ns-n2", "p"),
    );
    for (claim, removed, namespaces, expected) in [
        (&later, &none, vec![&ours], (1, Vec::new())),
        // A hub that was set up again, or one of other cells.
        (&older, &none, vec![&ours], (0, reported.clone())),
        (&later, &none, vec![&anothers], (0, reported.clone())),
        (&later, &none, vec![&other], (0, reported.clone())),
        (&later, &none, Vec::new(), (0, reported)),
        (&older, &recorded, Vec::new(), (1, Vec::new())),
    ] {
        assert_eq!(decide(claim, absent, removed, &namespaces), expected);
    }
    // Only a Cluster that is gone, and one whose id Karmada knows.
    for (id, deletes) in [("k1", 0), ("", 0), ("k9", 1)] {
        let there = cluster("dfw-01", id, "DFW");
        let found = decide(&later, Observed::Known(&[&there]), &none, &[&ours]);
        assert_eq!(found, (deletes, Vec::new()), "id {id:?}");
    }
    let unknown = decide(&later, Observed::Unknown, &none, &[&ours]);
    assert_eq!(unknown, (0, vec![Note::Unknown(Plane::Hub)]));
    let mut going = later.clone();
    going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
    assert_eq!(decide(&going, absent, &none, &[&ours]).0, 0);
}

#[test]
fn two_clusters_of_one_city_are_found() {
    let clusters = [
        cluster("a", "1", "DFW"),
        cluster("b", "2", "DFW"),
        cluster("c", "3", "ORD"),
    ];
    let crowded = crowded_cities(&clusters.iter().collect::<Vec<_>>());
    assert_eq!(crowded.into_iter().collect::<Vec<_>>(), ["DFW"]);
}

#[test]
fn an_unreachable_cluster_says_since_when() {
    let ready = |status: &str| {
        let mut one = cluster("a", "1", "DFW");
        one.data["status"] = json!({ "conditions": [{ "type": "Ready", "status": status,
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
        silent_since(&one).map(|since| since.to_string())
    };
    assert_eq!(ready("True"), None);
    assert_eq!(ready("False").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(ready("Unknown").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(silent_since(&cluster("a", "1", "DFW")), None);
}

#[test]
fn the_record_names_removed_cells() {
    let record: Object =
        serde_json::from_value(json!({ "metadata": { "name": "r" }, "data": { "dfw-1_u-1": "2026-01-01T00:00:00Z" } }))
            .unwrap();
    let source = |name, id| Source { name, id };
    assert!(is_removed(&record, source("dfw-1", "u-1")));
    assert!(!is_removed(&record, source("dfw-1", "u-2")));
    assert_eq!(removed(&record).collect::<Vec<_>>(), [source("dfw-1", "u-1")]);
    let empty: Object = serde_json::from_value(json!({ "metadata": { "name": "r" } })).unwrap();
    assert_eq!(removed(&empty).count(), 0);
}
