//! What a store makes of what a watch brings.

mod credentials;
mod critical_tasks;
mod listing;
mod overlay;
mod rewind;
mod room;

use std::sync::Arc;

use kube::runtime::watcher::Event;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use serde_json::{Value, json};

use super::{Change, Store};
use popcell_core::object::Raw;

fn raw(value: Value) -> Raw {
    serde_json::from_value(value).unwrap()
}

fn version(name: &str, version: u32) -> Raw {
    raw(json!({ "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": version.to_string() } }))
}

fn unreadable(name: &str) -> Raw {
    raw(json!({ "metadata": { "namespace": "n", "name": name, "labels": 3 } }))
}

/// A full list.
fn list(store: &Store, objects: impl IntoIterator<Item = Raw>) -> Vec<String> {
    let mut reported = take(store, Event::Init);
    for object in objects {
        reported.extend(take(store, Event::InitApply(object)));
    }
    reported.extend(take(store, Event::InitDone));
    reported
}

fn take(store: &Store, event: Event<Raw>) -> Vec<String> {
    store.take(event).iter().map(show).collect()
}

fn show(change: &Change) -> String {
    match change {
        Change::Applied { before, now } => {
            let before = before.as_ref().map_or("new", |before| before.resource_version());
            format!("{} {before}->{}", now.name(), now.resource_version())
        }
        Change::Gone { name, last, .. } => {
            format!("{name} gone{}", if last.is_none() { " unread" } else { "" })
        }
        Change::Unreadable { name, .. } => format!("{name} unreadable"),
        Change::Listed => "listed".to_owned(),
        Change::Lost => "lost".to_owned(),
        Change::Cleared => "cleared".to_owned(),
    }
}

fn names(objects: Observed<Vec<Arc<Object>>>) -> Option<Vec<String>> {
    let objects = objects.known()?;
    Some(objects.iter().map(|object| object.name().to_owned()).collect())
}

#[test]
fn nothing_is_known_before_the_end_of_the_first_list() {
    let store = Store::default();
    assert_eq!(take(&store, Event::Init), Vec::<String>::new());
    assert_eq!(take(&store, Event::InitApply(version("a", 1))), Vec::<String>::new());
    assert_eq!(store.get("n", "a"), Observed::Unknown);
    assert_eq!(store.all(), Observed::Unknown);
    assert_eq!(take(&store, Event::InitDone), ["a new->1", "listed"]);
    assert!(store.get("n", "a").known().flatten().is_some());
    assert_eq!(store.get("n", "b"), Observed::Known(None));
}

#[test]
fn a_new_list_tells_only_what_differs() {
    let store = Store::default();
    list(&store, [version("a", 1), version("b", 1), version("c", 1)]);
    assert_eq!(store.lose("away".to_owned()), Some(Change::Lost));
    assert_eq!((store.is_known(), store.trouble().as_deref()), (false, Some("away")));
    assert_eq!(store.lose("still away".to_owned()), None, "told once");
    assert_eq!(store.in_namespace("n"), Observed::Unknown);
    let reported = list(&store, [version("a", 1), version("b", 2), version("d", 3)]);
    assert_eq!(reported, ["b 1->2", "d new->3", "c gone", "listed"]);
    assert_eq!(store.trouble(), None);
}

#[test]
fn a_list_that_is_broken_off_leaves_nothing_behind() {
    let store = Store::default();
    take(&store, Event::Init);
    take(&store, Event::InitApply(version("ghost", 1)));
    assert_eq!(list(&store, [version("a", 1)]), ["a new->1", "listed"]);
    assert_eq!(names(store.all()).unwrap(), ["a"]);
}

#[test]
fn a_watch_tells_each_change_once() {
    let store = Store::default();
    list(&store, [version("a", 1)]);
    assert_eq!(take(&store, Event::Apply(version("a", 1))), Vec::<String>::new());
    assert_eq!(take(&store, Event::Apply(version("a", 2))), ["a 1->2"]);
    assert_eq!(take(&store, Event::Apply(version("b", 3))), ["b new->3"]);
    assert_eq!(take(&store, Event::Delete(version("a", 4))), ["a gone"]);
    assert_eq!(take(&store, Event::Delete(version("a", 4))), Vec::<String>::new());
    assert_eq!(names(store.in_namespace("n")).unwrap(), ["b"]);
    assert_eq!(names(store.in_namespace("other")).unwrap(), Vec::<String>::new());
}

#[test]
fn an_unreadable_object_is_unknown_and_harms_no_other() {
    let store = Store::default();
    assert_eq!(
        list(&store, [version("a", 1), unreadable("bad")]),
        ["a new->1", "bad unreadable", "listed"]
    );
    assert_eq!(store.get("n", "bad"), Observed::Unknown);
    assert!(store.get("n", "a").known().flatten().is_some());
    assert_eq!(names(store.all()).unwrap(), ["a"]);
    assert_eq!(store.unreadable().len(), 1);
    assert_eq!(take(&store, Event::Apply(unreadable("bad"))), Vec::<String>::new());
    assert_eq!(take(&store, Event::Apply(unreadable("a"))), ["a unreadable"]);
    assert_eq!(store.get("n", "a"), Observed::Unknown, "not absent");
    assert_eq!(take(&store, Event::Apply(version("bad", 5))), ["bad new->5"]);
    assert_eq!(take(&store, Event::Delete(unreadable("a"))), ["a gone unread"]);
    assert_eq!(store.unreadable().len(), 0);
}

#[test]
fn what_has_no_name_is_nowhere() {
    let store = Store::default();
    assert_eq!(list(&store, [raw(json!({ "metadata": {} }))]), ["listed"]);
    assert_eq!(names(store.all()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_store_says_whether_it_holds_anything() {
    let store = Store::default();
    list(&store, []);
    assert!(!store.is_occupied());
    take(&store, Event::Apply(version("a", 1)));
    assert!(store.is_occupied());
    store.lose("away".to_owned());
    assert!(store.is_occupied(), "away is not empty");
    list(&store, [version("a", 1)]);
    take(&store, Event::Delete(version("a", 1)));
    assert!(!store.is_occupied());
    take(&store, Event::Apply(unreadable("bad")));
    assert!(store.is_occupied());
}

#[test]
fn a_store_without_a_watch_is_not_synced_and_empty() {
    let store = Store::default();
    list(&store, [version("a", 1)]);
    assert_eq!(store.clear(), Change::Cleared);
    assert_eq!(store.get("n", "a"), Observed::Unknown);
    assert_eq!(list(&store, [version("a", 1)]), ["a new->1", "listed"]);
}
