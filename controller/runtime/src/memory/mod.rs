//! What is remembered of a plane beside its stores: it belongs to the plane ([`crate::planes::Engaged`]) and goes with it.
//!
//! Invariants: it is a memory of the process, so all of it may be lost: then something is read, written or logged once more. An
//! answer that comes after the plane has left falls on a memory that is not read any more. What must outlast a plane is
//! elsewhere: which versions it has reached, and that these went back.

mod checked_copies;
mod circuit;
mod data_budget;
mod data_waits;
mod namespace_breakers;
mod note_gauges;
mod pending_deletes;
mod rejected_statuses;
mod rejections;
mod sent;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use popcell_api::kind::{INSTANCE, Kind, WORKLOAD_DEPLOYMENT};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Plane, Target};
use popcell_core::spec_echoes::SpecEchoes;

pub use checked_copies::CheckedCopies;
#[cfg(test)]
pub(crate) use circuit::FAILURES;
pub(crate) use circuit::{Admission, Circuit, PROBE};
pub use data_budget::DataBudget;
pub use data_waits::DataWaits;
#[cfg(test)]
pub(crate) use namespace_breakers::{AGAIN, REFUSED};
pub(crate) use namespace_breakers::{Access, Attempt, BreakerKey, NamespaceBreakers};
pub use note_gauges::{Counts, GaugeCounts, NoteGauges};
pub(crate) use pending_deletes::PendingDeletes;
pub(crate) use rejected_statuses::RejectedStatuses;
pub use rejections::Rejections;
pub(crate) use sent::Sent;

use crate::queue::Key;
use crate::sync::lock;

/// Kind, namespace and name of an object of the plane.
type Address = (&'static str, Option<String>, String);

fn address(target: &Target) -> Address {
    (target.kind.kind, target.namespace.clone(), target.name.clone())
}

/// A reconciler, and namespace and name of its key: those of one WorkloadDeployment follow one another.
type Subject = (&'static str, String, String);

fn subject(reconciler: &'static str, key: &Key) -> Subject {
    (reconciler, key.namespace.clone(), key.name.clone())
}

/// What is remembered of one plane.
#[derive(Debug, Default)]
pub struct Memory {
    /// What the server made of specs.
    pub spec_echoes: SpecEchoes,
    /// Namespaces that were read live.
    pub namespaces: Namespaces,
    /// What was rejected of the last reconcile of each key.
    pub rejections: Rejections,
    /// What the last reconcile of each key noted.
    pub note_gauges: NoteGauges,
    /// Why Instances of a cell wait for ConfigMaps and Secrets.
    pub data_waits: DataWaits,
    /// Copies of ConfigMaps and Secrets on the hub that hold what they say.
    pub checked_copies: CheckedCopies,
    /// What copies of ConfigMaps and Secrets take, for each project.
    pub data_budget: DataBudget,
    /// Whether the server is reachable.
    pub(crate) circuit: Mutex<Circuit>,
    /// Differences that make the deletion guard hold.
    pub(crate) held: PendingDeletes,
    /// What is not tried yet, because it was refused.
    pub(crate) namespace_breakers: Mutex<NamespaceBreakers>,
    /// What was written lately.
    pub(crate) sent: Sent,
    /// Statuses that are rejected.
    pub(crate) rejected_statuses: Mutex<RejectedStatuses>,
    /// Projections as they were last written, as text: their stores have metadata only.
    projections: Mutex<BTreeMap<Address, Object>>,
    /// The first event of each key that waits for its reconcile, or whose reconciles failed since.
    enqueued: Mutex<HashMap<Subject, Instant>>,
    changes: AtomicU64,
}

impl Memory {
    /// An event enqueued a key.
    pub fn enqueue(&self, reconciler: &'static str, key: &Key) {
        lock(&self.enqueued)
            .entry(subject(reconciler, key))
            .or_insert_with(Instant::now);
    }

    /// A reconcile of the key begins: when it was enqueued.
    pub fn begin(&self, reconciler: &'static str, key: &Key) -> Option<Instant> {
        lock(&self.enqueued).remove(&subject(reconciler, key))
    }

    /// The reconcile failed: what enqueued its key is still to be answered.
    pub fn begin_again(&self, reconciler: &'static str, key: &Key, since: Instant) {
        lock(&self.enqueued).insert(subject(reconciler, key), since);
    }

    /// A projection as it was last written, where that is its resourceVersion.
    pub fn projection(&self, target: &Target, version: &str) -> Option<Arc<Object>> {
        let known = lock(&self.projections);
        let found = known.get(&address(target))?;
        (found.resource_version() == version).then(|| Arc::new(found.clone()))
    }

    /// Takes in what the server answered to the write of an object; of projections only that is kept.
    pub fn put_projection(&self, target: &Target, answer: &Object) {
        if target.kind == INSTANCE && matches!(target.plane, Plane::Project(_)) {
            lock(&self.projections).insert(address(target), answer.as_text());
        }
    }

    /// An object is gone, and what is remembered of it.
    pub fn forget(&self, target: &Target) {
        self.spec_echoes.forget(target);
        lock(&self.rejected_statuses).forget(target);
        lock(&self.projections).remove(&address(target));
        self.sent.forget(target);
        if target.kind == WORKLOAD_DEPLOYMENT {
            let namespace = target.namespace.as_deref().unwrap_or_default();
            self.data_waits.forget(namespace, &target.name);
        }
    }

    /// A kind is not watched any more: no event would report when its objects go.
    pub fn forget_kind(&self, kind: Kind) {
        self.spec_echoes.forget_kind(kind);
        lock(&self.rejected_statuses).forget_kind(kind);
        lock(&self.projections).retain(|(name, ..), _| *name != kind.kind);
    }

    /// Counts an event of the plane.
    pub fn change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// A kind was listed: a plane that took nothing may be another now.
    pub fn relisted(&self) {
        lock(&self.namespace_breakers).open();
    }

    /// How many events there were: an equal number means that nothing has changed since.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_counts_until_it_is_answered() {
        let (memory, key) = (Memory::default(), Key::new(&Plane::Hub, "n", "a"));
        memory.enqueue("r", &key);
        let first = memory.begin("r", &key).unwrap();
        assert_eq!(memory.begin("r", &key), None);
        memory.begin_again("r", &key, first);
        memory.enqueue("r", &key);
        assert_eq!(memory.begin("r", &key), Some(first));
    }
}
