//! What is remembered of a plane beside its stores: it belongs to the plane ([`crate::planes::Engaged`]) and goes with it.
//!
//! Invariants: it is a memory of the process, so all of it may be lost: then something is read, written or logged once more. An
//! answer that comes after the plane has left falls on a memory that nobody looks at any more. What must outlast a plane is
//! elsewhere: which versions it has reached, and that these went back.

mod circuit;
mod doors;
mod held;
mod namespaces;
mod rejections;
mod sent;
mod tally;
mod unwritten;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use popcell_api::kind::{INSTANCE, Kind};
use popcell_core::ledger::Ledger;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Plane, Target};

#[cfg(test)]
pub(crate) use circuit::FAILURES;
pub(crate) use circuit::{Circuit, PROBE, Permit};
#[cfg(test)]
pub(crate) use doors::{AGAIN, REFUSED};
pub(crate) use doors::{Access, Attempt, Doors, Place};
pub(crate) use held::Held;
pub use namespaces::Namespaces;
pub use rejections::Rejections;
pub(crate) use sent::Sent;
pub use tally::{Counts, Tallied, Tally};
pub(crate) use unwritten::Unwritten;

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
    pub ledger: Ledger,
    /// Namespaces that were read live.
    pub namespaces: Namespaces,
    /// What was rejected of the last pass of each key.
    pub rejections: Rejections,
    /// What the last pass of each key noted.
    pub tally: Tally,
    /// Whether the server is reachable.
    pub(crate) circuit: Mutex<Circuit>,
    /// Differences that make the deletion guard hold.
    pub(crate) held: Held,
    /// What is not tried yet, because it was refused.
    pub(crate) doors: Mutex<Doors>,
    /// What was written lately.
    pub(crate) sent: Sent,
    /// Statuses that are rejected.
    pub(crate) unwritten: Mutex<Unwritten>,
    /// Projections as they were last written, as text: their stores have metadata only.
    projections: Mutex<BTreeMap<Address, Object>>,
    /// The first event of each key that waits for its pass, or whose passes failed since.
    woken: Mutex<HashMap<Subject, Instant>>,
    changes: AtomicU64,
}

impl Memory {
    /// An event woke a key.
    pub fn wake(&self, reconciler: &'static str, key: &Key) {
        lock(&self.woken)
            .entry(subject(reconciler, key))
            .or_insert_with(Instant::now);
    }

    /// A pass of the key begins: when it was woken.
    pub fn begin(&self, reconciler: &'static str, key: &Key) -> Option<Instant> {
        lock(&self.woken).remove(&subject(reconciler, key))
    }

    /// The pass failed: what woke its key is still to be answered.
    pub fn begin_again(&self, reconciler: &'static str, key: &Key, since: Instant) {
        lock(&self.woken).insert(subject(reconciler, key), since);
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
        self.ledger.forget(target);
        lock(&self.unwritten).forget(target);
        lock(&self.projections).remove(&address(target));
        self.sent.forget(target);
    }

    /// A kind is not watched any more: nobody would tell when its objects go.
    pub fn forget_kind(&self, kind: Kind) {
        self.ledger.forget_kind(kind);
        lock(&self.unwritten).forget_kind(kind);
        lock(&self.projections).retain(|(name, ..), _| *name != kind.kind);
    }

    /// Counts an event of the plane.
    pub fn change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// A kind was listed: a plane that took nothing may be another now.
    pub fn relisted(&self) {
        lock(&self.doors).open();
    }

    /// How many events there were: an equal number means that nothing has changed since.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_counts_until_it_is_answered() {
        let (memory, key) = (Memory::default(), Key::new(&Plane::Hub, "n", "a"));
        memory.wake("r", &key);
        let first = memory.begin("r", &key).unwrap();
        assert_eq!(memory.begin("r", &key), None);
        memory.begin_again("r", &key, first);
        memory.wake("r", &key);
        assert_eq!(memory.begin("r", &key), Some(first));
    }
}
