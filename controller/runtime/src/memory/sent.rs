//! What was written here lately, so that its events are known again: they are no news to who wrote it.
//!
//! Invariants: a write is known before it is sent, since its event may come before its answer, and no longer once it failed;
//! an event is known by what it brings, so that what another one wrote in between is news. Whatever is not known again enqueues
//! as the event of another.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Patch, Target};
use serde_json::Value;
use tokio::time::Instant;

use super::{Address, address};
use crate::planes::Change;
use crate::sync::lock;

/// Events come within this time, or are news.
const LATELY: Duration = Duration::from_mins(1);
/// Paths of annotations in a patch begin so.
const ANNOTATIONS: &str = "/metadata/annotations/";

/// The last writes of each object.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    writes: HashMap<Address, Write>,
    /// How many are held before those are dropped that are old.
    room: usize,
}

#[derive(Debug)]
struct Write {
    at: Instant,
    created: bool,
    /// Of the object that was made, once the server has answered.
    uid: Option<String>,
    status: Option<u64>,
    annotations: BTreeMap<String, String>,
}

impl Sent {
    /// An object is about to be made.
    pub(crate) fn create(&self, target: &Target) {
        self.put(target, |write| (write.created, write.uid) = (true, None));
    }

    /// The object was made.
    pub(crate) fn created(&self, target: &Target, uid: &str) {
        if let Some(write) = self.known().writes.get_mut(&address(target)) {
            write.uid = Some(uid.to_owned());
        }
    }

    /// An object is about to be changed.
    pub(crate) fn patch(&self, patch: &Patch) {
        self.put(&patch.target, |write| {
            if patch.status {
                write.status = patch.value_at("/status").map(digest);
                return;
            }
            write.annotations.clear();
            for path in patch.changed_paths().filter(|path| path.starts_with(ANNOTATIONS)) {
                let key = path
                    .trim_start_matches(ANNOTATIONS)
                    .replace("~1", "/")
                    .replace("~0", "~");
                let value = patch.value_at(path).and_then(Value::as_str);
                write.annotations.extend(value.map(|value| (key, value.to_owned())));
            }
        });
    }

    /// Whether an event brings an object that was made here.
    pub(crate) fn is_create(&self, kind: Kind, change: &Change) -> bool {
        let Change::Applied { before: None, now } = change else {
            return false;
        };
        self.known()
            .of(kind, now)
            .is_some_and(|write| write.created && write.uid.as_deref().is_none_or(|uid| uid == now.uid()))
    }

    /// Whether an event brings nothing but a status or annotations that were written here.
    pub(crate) fn is_report(&self, kind: Kind, change: &Change) -> bool {
        let Change::Applied {
            before: Some(before),
            now,
        } = change
        else {
            return false;
        };
        let known = self.known();
        let Some(write) = known.of(kind, now) else {
            return false;
        };
        let status = now.at("/status");
        let reported =
            before.at("/status") == status || status.is_some_and(|status| write.status == Some(digest(status)));
        reported && write.explains_annotations(before, now) && is_same_but_reports(before, now)
    }

    /// An object is gone; or a write of it failed, or may have: whatever comes is news.
    pub(crate) fn forget(&self, target: &Target) {
        self.known().writes.remove(&address(target));
    }

    fn put(&self, target: &Target, note: impl FnOnce(&mut Write)) {
        let (mut known, now) = (self.known(), Instant::now());
        let write = known.writes.entry(address(target)).or_insert_with(|| Write {
            at: now,
            created: false,
            uid: None,
            status: None,
            annotations: BTreeMap::new(),
        });
        write.at = now;
        note(write);
        if known.writes.len() > known.room {
            known.writes.retain(|_, write| now.duration_since(write.at) < LATELY);
            known.room = 2 * known.writes.len() + 64;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl Known {
    fn of(&self, kind: Kind, object: &Object) -> Option<&Write> {
        let address = (kind.kind, object.metadata.namespace.clone(), object.name().to_owned());
        let write = self.writes.get(&address);
        write.filter(|write| write.at.elapsed() < LATELY)
    }
}

impl Write {
    fn explains_annotations(&self, before: &Object, now: &Object) -> bool {
        let of = |object: &Object| object.metadata.annotations.clone().unwrap_or_default();
        let (before, now) = (of(before), of(now));
        let is_ours = |(key, value): (&String, &String)| {
            before.get(key) == Some(value) || self.annotations.get(key) == Some(value)
        };
        before.keys().all(|key| now.contains_key(key)) && now.iter().all(is_ours)
    }
}

/// Whether two states of an object differ in status and annotations at most.
fn is_same_but_reports(before: &Object, now: &Object) -> bool {
    let (one, other) = (&before.metadata, &now.metadata);
    one.uid == other.uid
        && one.generation == other.generation
        && one.labels == other.labels
        && one.finalizers == other.finalizers
        && one.owner_references == other.owner_references
        && one.deletion_timestamp == other.deletion_timestamp
        && before.at("/spec") == now.at("/spec")
}

/// Tells values apart, whatever the order of their fields.
fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher, value);
    hasher.finish()
}

fn feed(hasher: &mut DefaultHasher, value: &Value) {
    match value {
        Value::Object(fields) => {
            hasher.write_u8(b'{');
            for (key, value) in fields.iter().collect::<BTreeMap<_, _>>() {
                hasher.write(key.as_bytes());
                hasher.write_u8(b':');
                feed(hasher, value);
            }
            hasher.write_u8(b'}');
        }
        Value::Array(items) => {
            hasher.write_u8(b'[');
            for item in items {
                feed(hasher, item);
            }
            hasher.write_u8(b']');
        }
        other => hasher.write(other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use popcell_api::kind::INSTANCE;
    use popcell_core::edit::Edit;
    use popcell_core::plan::Plane;
    use serde_json::json;

    use super::*;

    fn object(version: &str, status: &Value, annotations: &Value) -> Object {
        serde_json::from_value(json!({ "metadata": { "name": "a", "namespace": "n", "uid": "u",
            "resourceVersion": version, "annotations": annotations }, "spec": { "a": 1 }, "status": status }))
        .unwrap()
    }

    fn change(before: &Object, now: &Object) -> Change {
        Change::Applied {
            before: Some(Arc::new(before.clone())),
            now: Arc::new(now.clone()),
        }
    }

    #[test]
    fn only_what_was_written_here_is_known_again() {
        let sent = Sent::default();
        let none = object("1", &json!({ "a": 1, "b": 2 }), &json!({ "x": "y" }));
        let reported = object("2", &json!({ "b": 3, "a": 1 }), &json!({ "x": "y" }));
        let is_own = |before: &Object, now: &Object| sent.is_report(INSTANCE, &change(before, now));
        assert!(!is_own(&none, &reported));
        let status = json!({ "a": 1, "b": 3 });
        sent.patch(&Edit::status(&Plane::Cell, INSTANCE, &none, status).unwrap());
        assert!(is_own(&none, &reported));
        // Of another, or with something of another.
        assert!(!is_own(
            &none,
            &object("2", &json!({ "a": 1, "b": 4 }), &json!({ "x": "y" }))
        ));
        assert!(!is_own(
            &none,
            &object("2", &json!({ "a": 1, "b": 3 }), &json!({ "x": "z" }))
        ));
        assert!(!is_own(&none, &object("2", &json!({ "a": 1, "b": 3 }), &json!({}))));
        let mut edited = reported.clone();
        edited.data["spec"]["a"] = json!(2);
        assert!(!is_own(&none, &edited));
        // And annotations.
        let memory = Edit::of(&Plane::Cell, INSTANCE, &reported).annotation("c/d", Some("0"));
        sent.patch(&memory.patch().unwrap());
        let remembered = object("3", &json!({ "a": 1, "b": 3 }), &json!({ "x": "y", "c/d": "0" }));
        assert!(is_own(&reported, &remembered));
        sent.forget(&Target::of(&Plane::Cell, INSTANCE, &reported));
        assert!(!is_own(&reported, &remembered));
    }

    #[test]
    fn an_object_that_was_made_here_is_known_again() {
        let sent = Sent::default();
        let made = object("1", &json!({}), &json!({}));
        let came = Change::Applied {
            before: None,
            now: Arc::new(made.clone()),
        };
        assert!(!sent.is_create(INSTANCE, &came));
        let target = Target::of(&Plane::Cell, INSTANCE, &made);
        sent.create(&target);
        assert!(sent.is_create(INSTANCE, &came));
        sent.created(&target, "u");
        assert!(sent.is_create(INSTANCE, &came));
        // Another one made it after ours had gone.
        sent.created(&target, "of another");
        assert!(!sent.is_create(INSTANCE, &came));
    }

    #[test]
    fn what_was_not_accepted_hides_no_object_of_another() {
        let sent = Sent::default();
        let made = object("1", &json!({}), &json!({}));
        let target = Target::of(&Plane::Cell, INSTANCE, &made);
        let came = Change::Applied {
            before: None,
            now: Arc::new(made),
        };
        sent.create(&target);
        sent.forget(&target);
        assert!(!sent.is_create(INSTANCE, &came));
    }
}
