//! When a kind is listed again because there was no room for some of its objects, and how much is kept of those.

use std::time::Duration;

use popcell_api::kind::{INSTANCE, Kind, RESOURCE_BINDING, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_core::limits::{Excess, Limits};
use popcell_core::plan::Plane;
use tokio::time::timeout;

use super::*;
use crate::planes::budget::Budget;
use crate::planes::store::Overdue;

const HOUR: Duration = Duration::from_hours(1);

fn store_of(kind: Kind, budget: &Budget) -> Store {
    Store::of(kind, budget.clone())
}

fn object(name: &str, fields: &Value) -> Raw {
    let mut whole = json!({ "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": "1" } });
    whole
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    serde_json::from_str(&whole.to_string()).unwrap()
}

fn sized(name: &str, bytes: usize) -> Raw {
    object(name, &json!({ "spec": { "pad": "x".repeat(bytes) } }))
}

fn excess(store: &Store, name: &str) -> Option<Excess> {
    store.get("n", name).known().unwrap().unwrap().excess()
}

/// Whether the kind is listed again within this time.
async fn is_listed_again(store: &Store, within: Duration) -> bool {
    timeout(within, store.overdue()).await == Ok(Overdue::Again)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_has_too_much_itself_never_has_its_kind_listed_again() {
    let deep =
        json!({ "status": serde_json::from_str::<Value>(&format!("{}{}", "[".repeat(90), "]".repeat(90))).unwrap() });
    for plane in [Plane::Hub, Plane::Cell, Plane::Project("p".to_owned())] {
        let budget = Budget::new(Limits::DEFAULT, &plane);
        let store = store_of(WORKLOAD_DEPLOYMENT, &budget);
        list(&store, [sized("large", 300_000), object("deep", &deep)]);
        assert_eq!(store.excessive(), 2);
        assert!(!is_listed_again(&store, HOUR).await, "{plane}");
        assert!(store.is_known());
    }
}

#[tokio::test]
async fn copies_that_name_no_cell_are_nobodys() {
    let limits = Limits {
        cell_bytes: 1,
        ..Limits::DEFAULT
    };
    let store = store_of(INSTANCE, &Budget::new(limits, &Plane::Hub));
    list(&store, [sized("of-upstream", 1_000)]);
    assert_eq!(excess(&store, "of-upstream"), None);
}

#[tokio::test(start_paused = true)]
async fn what_had_no_room_is_listed_again_once_there_is_more_and_not_before() {
    let limits = Limits {
        project_objects: 2,
        ..Limits::DEFAULT
    };
    let budget = Budget::new(limits, &Plane::Project("p".to_owned()));
    let [workloads, deployments] = [WORKLOAD, WORKLOAD_DEPLOYMENT].map(|kind| store_of(kind, &budget));
    list(&workloads, [sized("a", 1)]);
    list(&deployments, [sized("b", 1), sized("c", 1)]);
    assert_eq!(excess(&deployments, "c"), Some(Excess::ProjectObjects { limit: 2 }));
    assert!(!is_listed_again(&deployments, HOUR).await);
    // Room that is taken at once is no more room, nor are fewer bytes where it is the number.
    take(&workloads, Event::Delete(sized("a", 1)));
    take(&workloads, Event::Apply(sized("d", 1)));
    take(&deployments, Event::Apply(sized("b", 0)));
    assert!(!is_listed_again(&deployments, HOUR).await);
    // That of another kind is as good.
    take(&workloads, Event::Delete(sized("d", 1)));
    assert!(is_listed_again(&deployments, Duration::from_secs(61)).await);
    list(&deployments, [sized("b", 1), sized("c", 1)]);
    assert_eq!(excess(&deployments, "c"), None);
    assert!(!is_listed_again(&deployments, HOUR).await);
}

#[tokio::test(start_paused = true)]
async fn room_for_the_smallest_that_had_none_is_enough() {
    let limits = Limits {
        project_bytes: 10_000,
        ..Limits::DEFAULT
    };
    let store = store_of(WORKLOAD, &Budget::new(limits, &Plane::Project("p".to_owned())));
    list(
        &store,
        [
            sized("a", 4_000),
            sized("b", 7_000),
            sized("c", 3_000),
            sized("d", 2_500),
            sized("e", 900),
        ],
    );
    let crowded = |name| excess(&store, name).is_some();
    assert_eq!(
        ["a", "b", "c", "d", "e"].map(crowded),
        [false, true, false, false, true]
    );
    take(&store, Event::Apply(sized("a", 3_900)));
    assert!(!is_listed_again(&store, HOUR).await, "a little is not enough");
    take(&store, Event::Apply(sized("a", 3_000)));
    assert!(is_listed_again(&store, Duration::from_secs(61)).await);
}

/// A copy with so many bytes of a status, with all that could be kept of its metadata.
fn copy(cell: &str, namespace: &str, number: usize, bytes: usize, deep: bool) -> Raw {
    let name = format!("{cell}-{number}");
    let keys = popcell_api::annotations::ALL
        .iter()
        .map(|key| ((*key).to_owned(), json!("x".repeat(1_000))));
    let annotations: serde_json::Map<_, _> = keys.collect();
    let labels = json!({ "compute.datumapis.com/source-cluster": cell });
    let metadata = json!({ "namespace": namespace, "name": name, "uid": name, "resourceVersion": "1", "labels": labels,
        "annotations": if bytes > 0 { json!(null) } else { json!(annotations) } });
    let whole = json!({ "metadata": metadata, "status": { "pad": "x".repeat(bytes), "deep": "here" } });
    let nested = if deep {
        "[".repeat(70) + &"]".repeat(70)
    } else {
        "1".to_owned()
    };
    serde_json::from_str(&whole.to_string().replace("\"here\"", &nested)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_fills_the_hub_has_nothing_listed_again_and_what_is_kept_is_bounded() {
    let limits = Limits {
        cell_bytes: 1_000_000,
        ..Limits::DEFAULT
    };
    let store = store_of(INSTANCE, &Budget::new(limits, &Plane::Hub));
    let stolen = (0..3_000).map(|number| copy("stolen", "n", number, 0, number % 2 == 1));
    list(&store, stolen.chain([copy("ord", "n", 0, 100, false)]));
    assert_eq!(excess(&store, "ord-0"), None);
    let all = store.all().known().unwrap();
    let sum: usize = all.iter().map(|one| one.bytes()).sum();
    assert!(sum < 1_300_000, "{sum} bytes of {}", all.len());
    let unreadable = store.unreadable();
    assert!(
        unreadable.len() > 2_000 && unreadable[0].2.len() < 100,
        "{}",
        unreadable.len()
    );
    assert!(
        all.iter()
            .all(|one| one.label("compute.datumapis.com/source-cluster").is_some())
    );
    assert!(!is_listed_again(&store, HOUR).await);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_of_a_cell_leaves_the_others_their_share() {
    let limits = Limits {
        cell_bytes: 1_000_000,
        ..Limits::DEFAULT
    };
    let store = store_of(INSTANCE, &Budget::new(limits, &Plane::Hub));
    let of = |namespace: &str, name: &str| store.get(namespace, name).known().unwrap().unwrap().excess();
    // In the order of a list, in which the greedy one comes first.
    let greedy = || (0..30).map(|number| copy("dfw", "a", number, 50_000, false));
    let modest = || (100..140).map(|number| copy("dfw", "b", number, 5_000, false));
    for _ in 0..2 {
        list(&store, greedy().chain(modest()));
        assert!(modest().all(|one| of("b", one.name()).is_none()));
        assert!(greedy().any(|one| of("a", one.name()).is_some()));
    }
    // One that comes, and one that changes.
    for (number, bytes) in [(140, 5_000), (100, 6_000)] {
        take(&store, Event::Apply(copy("dfw", "b", number, bytes, false)));
        assert_eq!(of("b", &format!("dfw-{number}")), None);
    }
    // Their share is not without end.
    list(
        &store,
        greedy().chain((100..200).map(|number| copy("dfw", "b", number, 5_000, false))),
    );
    assert!(of("b", "dfw-199").is_some());
}

#[tokio::test]
async fn what_would_be_written_in_part_is_not_read_at_all() {
    let store = store_of(WORKLOAD, &Budget::new(Limits::DEFAULT, &Plane::Project("p".to_owned())));
    let finalizers = |count: usize| -> Vec<String> { (0..count).map(|one| format!("tenant.example/{one}")).collect() };
    let held = |name: &str, count: usize, bytes: usize| {
        let metadata = json!({ "namespace": "n", "name": name, "uid": name, "resourceVersion": "1",
            "finalizers": finalizers(count) });
        let whole = json!({ "metadata": metadata, "spec": { "pad": "x".repeat(bytes) } });
        serde_json::from_str::<Raw>(&whole.to_string()).unwrap()
    };
    list(
        &store,
        [
            held("few", 500, 300_000),
            held("many", 5_000, 300_000),
            held("small", 5_000, 1),
        ],
    );
    let few = store.get("n", "few").known().unwrap().unwrap();
    assert_eq!(few.metadata.finalizers, Some(finalizers(500)));
    assert_eq!(store.get("n", "many"), Observed::Unknown);
    assert!(
        store
            .why_unreadable("n", "many")
            .unwrap()
            .contains("owners and finalizers")
    );
    let small = store.get("n", "small").known().unwrap().unwrap();
    assert_eq!(
        (small.excess(), small.metadata.finalizers.as_ref().unwrap().len()),
        (None, 5_000)
    );
}

#[test]
fn what_nests_too_deeply_beside_what_is_kept_is_nobodys_trouble() {
    let deep = || serde_json::from_str::<Value>(&format!("{}{}", "[".repeat(64), "]".repeat(64))).unwrap();
    for (status, expected) in [
        (json!({ "aggregatedStatus": deep(), "conditions": [] }), false),
        (json!({ "aggregatedStatus": [], "conditions": deep() }), true),
    ] {
        let mut kept = object("web", &json!({ "status": status })).object.unwrap();
        assert!(kept.excess().is_some());
        kept.keep(&["/spec/clusters", "/status/conditions"]);
        assert_eq!(kept.excess().is_some(), expected, "{}", RESOURCE_BINDING.kind);
    }
}
