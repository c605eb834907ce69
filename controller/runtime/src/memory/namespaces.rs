//! Namespaces of projects: read live when a WorkloadDeployment comes or goes, and not watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use popcell_core::identity::SYSTEM_NAMESPACE;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;

use super::lock;
use crate::planes::Change;

/// What is known of one Namespace; `None` within = NotFound.
#[derive(Debug)]
struct Entry {
    /// As it was read since the last event.
    found: Observed<Option<Arc<Object>>>,
    /// As it was read last, for the question whether it is another now.
    last: Observed<Option<Arc<Object>>>,
    /// Counts events: an answer to what was asked before one of them is not remembered.
    events: u64,
}

impl Entry {
    const UNREAD: Self = Self {
        found: Observed::Unknown,
        last: Observed::Unknown,
        events: 0,
    };
}

/// A read that began: how many events of the Namespace there were before.
#[derive(Clone, Copy, Debug)]
pub struct Asked(u64);

/// What was read, by name; it falls when a WorkloadDeployment of the namespace comes or goes.
#[derive(Debug, Default)]
pub struct Namespaces(Mutex<BTreeMap<String, Entry>>);

impl Namespaces {
    /// What an earlier pass read.
    pub fn get(&self, name: &str) -> Observed<Option<Arc<Object>>> {
        let entries = lock(&self.0);
        entries.get(name).map_or(Observed::Unknown, |entry| entry.found.clone())
    }

    /// Takes in an event of WorkloadDeployments.
    pub fn note(&self, change: &Change) {
        let namespace = match change {
            Change::Applied { before: None, now } => now.namespace(),
            Change::Gone { namespace, .. } => namespace,
            // It may be another server that answers now.
            Change::Listed => SYSTEM_NAMESPACE,
            _ => return,
        };
        if let Some(entry) = lock(&self.0).get_mut(namespace) {
            entry.events += 1;
            entry.found = Observed::Unknown;
        }
    }

    /// A Namespace is about to be read.
    pub fn ask(&self, name: &str) -> Asked {
        Asked(lock(&self.0).entry(name.to_owned()).or_insert(Entry::UNREAD).events)
    }

    /// Takes in a Namespace as it was read, and says what has become of it since it was read last. What was asked before the
    /// last event is for the pass only that asked.
    pub fn put(&self, name: &str, asked: Asked, found: Option<Arc<Object>>) -> Option<Change> {
        let mut entries = lock(&self.0);
        let entry = entries.get_mut(name).filter(|entry| entry.events == asked.0)?;
        entry.found = Observed::Known(found.clone());
        let last = std::mem::replace(&mut entry.last, entry.found.clone());
        became(name, last.known()?, found)
    }
}

/// What has become of a Namespace, where that matters to anybody.
fn became(name: &str, before: Option<Arc<Object>>, now: Option<Arc<Object>>) -> Option<Change> {
    let is = |one: &Option<Arc<Object>>| one.as_ref().map(|one| (one.uid().to_owned(), one.deleting()));
    if is(&before) == is(&now) {
        return None;
    }
    Some(match now {
        Some(now) => Change::Applied { before, now },
        None => Change::Gone {
            namespace: String::new(),
            name: name.to_owned(),
            last: before,
        },
    })
}
