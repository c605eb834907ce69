//! What a store is read as while its watch is behind our own writes.

mod model;

use tokio::time::advance;

use super::super::overlay::{DOUBT, PATIENCE};
use super::*;

/// An object of this uid at this version.
fn object(uid: &str, version: u64) -> Arc<Object> {
    let metadata = json!({ "namespace": "n", "name": "a", "uid": uid, "resourceVersion": version.to_string() });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
}

fn seen(object: &Object) -> Raw {
    raw(serde_json::to_value(object).unwrap())
}

/// Uid and version as they are read, by each way of reading; empty where there is nothing.
fn read(store: &Store) -> String {
    let one = store.get("n", "a").known().unwrap();
    for all in [store.all(), store.in_namespace("n")] {
        let all = all.known().unwrap();
        assert_eq!(all.iter().find(|each| each.name() == "a"), one.as_ref());
    }
    one.map_or_else(String::new, |one| format!("{}@{}", one.uid(), one.resource_version()))
}

/// A store that lists this, and is watched.
fn listed(objects: &[&Object]) -> Store {
    let store = Store::default();
    list(&store, objects.iter().map(|one| seen(one)));
    store
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_until_the_watch_has_passed_it() {
    let old = object("u", 9);
    let store = listed(&[&old]);
    store.wrote(&object("u", 12), true);
    for late in [1, 3600] {
        advance(std::time::Duration::from_secs(late)).await;
        assert_eq!(read(&store), "u@12", "after {late} s more");
        take(&store, Event::Apply(seen(&object("u", 10))));
    }
    assert_eq!(store.overlay(), 1);
    // Of another object: what happens to a kind comes in order.
    take(&store, Event::Apply(version("b", 12)));
    assert_eq!((read(&store), store.overlay()), ("u@10".to_owned(), 0));
}

#[tokio::test]
async fn what_comes_first_counts_whichever_it_is() {
    let store = listed(&[&object("u", 9)]);
    take(&store, Event::Apply(seen(&object("u", 12))));
    for answered in [9, 11, 12] {
        store.wrote(&object("u", answered), true);
        assert_eq!((read(&store), store.overlay()), ("u@12".to_owned(), 0), "{answered}");
    }
    store.wrote(&object("u", 14), true);
    store.wrote(&object("u", 13), true);
    assert_eq!(read(&store), "u@14", "answers may overtake each other");
    // Versions that are no numbers are not compared: what the watch brings counts.
    let odd = json!({ "metadata": { "namespace": "n", "name": "c", "uid": "c", "resourceVersion": "x" } });
    store.wrote(&serde_json::from_value(odd).unwrap(), true);
    assert_eq!(store.get("n", "c"), Observed::Known(None));
}

#[tokio::test]
async fn what_was_deleted_is_gone_and_its_successor_is_not() {
    let store = listed(&[&object("u", 9)]);
    store.deleted("n", "a", "u", "9");
    assert_eq!(read(&store), "");
    store.wrote(&object("u", 8), true);
    assert_eq!(read(&store), "", "an answer that was overtaken");
    // The watch shows what the object was before it went: this is one object, and it is gone.
    take(&store, Event::Apply(seen(&object("u", 11))));
    assert_eq!(read(&store), "");
    store.wrote(&object("v", 14), true);
    take(&store, Event::Delete(seen(&object("u", 12))));
    assert_eq!((read(&store), store.overlay()), ("v@14".to_owned(), 1));
    store.deleted("n", "a", "v", "14");
    // It comes although we know that it is gone.
    take(&store, Event::Apply(seen(&object("v", 14))));
    assert_eq!((read(&store), store.overlay()), (String::new(), 1));
    take(&store, Event::Delete(seen(&object("v", 15))));
    assert_eq!((read(&store), store.overlay()), (String::new(), 0));
    store.deleted("n", "a", "v", "14");
    assert_eq!(store.overlay(), 0, "the watch was first");
}

#[tokio::test]
async fn what_a_filter_hides_is_not_there() {
    let store = listed(&[&object("u", 9)]);
    store.wrote(&object("u", 12), false);
    assert_eq!(read(&store), "");
    take(&store, Event::Apply(seen(&object("u", 10))));
    assert_eq!(read(&store), "", "as it was before");
    store.wrote(&object("u", 13), true);
    assert_eq!(read(&store), "u@13", "and back");
    take(&store, Event::Delete(seen(&object("u", 12))));
    assert_eq!(read(&store), "u@13");
    take(&store, Event::Apply(seen(&object("u", 13))));
    assert_eq!((read(&store), store.overlay()), ("u@13".to_owned(), 0));
}

#[tokio::test]
async fn a_list_that_began_after_an_answer_decides() {
    // The object was deleted by somebody while the watch was broken, or the server was restored and counts again.
    for now in [Vec::new(), vec![object("u", 3)]] {
        let store = listed(&[]);
        store.wrote(&object("u", 12), true);
        store.lose("away".to_owned());
        store.wrote(&object("u", 13), true);
        list(&store, now.iter().map(|one| seen(one)));
        let expected = now.first().map_or("", |_| "u@3");
        assert_eq!((read(&store), store.overlay()), (expected.to_owned(), 0));
    }
    // Also where nobody said that the watch had broken.
    let store = listed(&[]);
    store.wrote(&object("u", 12), true);
    list(&store, []);
    assert_eq!((read(&store), store.overlay()), (String::new(), 0));
    // One that began before does not.
    let store = listed(&[]);
    store.lose("away".to_owned());
    take(&store, Event::Init);
    take(&store, Event::InitApply(version("b", 11)));
    store.wrote(&object("u", 12), true);
    take(&store, Event::InitDone);
    assert_eq!((read(&store), store.overlay()), ("u@12".to_owned(), 1));
}

#[tokio::test]
async fn a_read_that_was_before_our_write_is_not_what_is() {
    let store = listed(&[&object("u", 9)]);
    let read = object("u", 10);
    assert_eq!(store.newer(&read), Some(Arc::clone(&read)));
    store.wrote(&object("u", 11), true);
    assert_eq!(store.newer(&read), Some(object("u", 11)));
    assert_eq!(store.newer(&object("u", 12)), Some(object("u", 12)));
    store.deleted("n", "a", "u", "11");
    assert_eq!(store.newer(&read), None);
}

#[tokio::test]
async fn nothing_is_kept_of_unwatched_kinds() {
    let store = Store::default();
    store.wrote(&object("u", 9), true);
    store.deleted("n", "a", "v", "8");
    assert_eq!(store.overlay(), 0);
    list(&store, []);
    store.wrote(&object("u", 8), true);
    assert_eq!(
        store.overlay(),
        0,
        "an answer that is later than the list, to a write that is not"
    );
    store.wrote(&object("u", 10), true);
    assert_eq!(store.overlay(), 1);
    store.clear();
    assert_eq!(store.overlay(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_bring_what_we_wrote_is_overdue() {
    let store = listed(&[]);
    let is_overdue = async || {
        tokio::time::timeout(std::time::Duration::from_millis(1), store.overdue())
            .await
            .is_ok()
    };
    assert!(!is_overdue().await);
    advance(2 * PATIENCE).await;
    store.wrote(&object("u", 12), true);
    advance(PATIENCE / 2).await;
    assert!(!is_overdue().await);
    // A second write does not begin the time again, but what the watch brings does.
    store.wrote(&object("u", 20), true);
    take(&store, Event::Apply(seen(&object("u", 12))));
    advance(PATIENCE / 2).await;
    assert!(!is_overdue().await);
    store.wrote(&object("u", 30), true);
    advance(PATIENCE / 2).await;
    assert!(is_overdue().await);
    // Of what was answered during a list nobody knows whether it was in it.
    store.lose("behind".to_owned());
    assert!(!is_overdue().await);
    take(&store, Event::Init);
    store.wrote(&object("u", 31), true);
    take(&store, Event::InitDone);
    advance(DOUBT).await;
    assert!(is_overdue().await);
}

#[tokio::test(start_paused = true)]
async fn what_we_wrote_is_limited_as_what_the_watch_brings() {
    let limits = popcell_core::limits::Limits {
        object_bytes: 1_000,
        ..popcell_core::limits::Limits::DEFAULT
    };
    let budget = crate::planes::budget::Budget::new(limits, &popcell_core::plan::Plane::Hub);
    let store = Store::of(popcell_api::kind::WORKLOAD_DEPLOYMENT, budget);
    list(&store, std::iter::empty());
    let mut large = Object::clone(&object("u", 12));
    large.data["spec"] = json!({ "cityCode": "DFW", "pad": "x".repeat(100_000) });
    // The answer to a write has come as text.
    let text = serde_json::to_string(&large).unwrap();
    store.wrote(&Object::read(&text).unwrap(), true);
    let found = store.get("n", "a").known().unwrap().unwrap();
    assert!(found.excess().is_some() && found.data_bytes() < 1_000);
    assert_eq!(found.text("/spec/cityCode"), Some("DFW"));
}
