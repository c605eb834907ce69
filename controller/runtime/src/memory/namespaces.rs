//! Namespaces of projects: read live when a WorkloadDeployment comes or goes, and not watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;

use crate::sync::lock;

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
    /// What an earlier reconcile read.
    pub fn get(&self, name: &str) -> Observed<Option<Arc<Object>>> {
        let entries = lock(&self.0);
        entries.get(name).map_or(Observed::Unknown, |entry| entry.found.clone())
    }

    /// What was read of a Namespace does not count any more.
    pub fn expire(&self, name: &str) {
        if let Some(entry) = lock(&self.0).get_mut(name) {
            entry.events += 1;
            entry.found = Observed::Unknown;
        }
    }

    /// A Namespace is about to be read.
    pub fn ask(&self, name: &str) -> Asked {
        Asked(lock(&self.0).entry(name.to_owned()).or_insert(Entry::UNREAD).events)
    }

    /// Takes in a Namespace as it was read, and gives it as it was read last where it is another since then, or is going.
    /// What was asked before the last event is for the reconcile only that asked.
    pub fn put(&self, name: &str, asked: Asked, found: &Option<Arc<Object>>) -> Option<Option<Arc<Object>>> {
        let mut entries = lock(&self.0);
        let entry = entries.get_mut(name).filter(|entry| entry.events == asked.0)?;
        entry.found = Observed::Known(found.clone());
        let last = std::mem::replace(&mut entry.last, entry.found.clone());
        let state = |one: &Option<Arc<Object>>| one.as_ref().map(|one| (one.uid().to_owned(), one.deleting()));
        last.known().filter(|last| state(last) != state(found))
    }
}
