//! Namespaces of projects: read live when a WorkloadDeployment comes or goes, and not watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use popcell_core::identity::SYSTEM_NAMESPACE;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};

use crate::apply::{Applier, ApplyError};
use crate::pass::Live;
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

/// What was read, by plane and name; it falls when a WorkloadDeployment of the namespace comes or goes.
#[derive(Debug, Default)]
pub struct Namespaces {
    entries: Mutex<BTreeMap<(Plane, String), Entry>>,
}

impl Namespaces {
    /// What an earlier pass read.
    pub fn get(&self, plane: &Plane, name: &str) -> Observed<Option<Arc<Object>>> {
        let entries = self.lock();
        let entry = entries.get(&(plane.clone(), name.to_owned()));
        entry.map_or(Observed::Unknown, |entry| entry.found.clone())
    }

    /// Takes in an event of WorkloadDeployments.
    pub fn note(&self, plane: &Plane, change: &Change) {
        let namespace = match change {
            Change::Applied { before: None, now } => now.namespace(),
            Change::Gone { namespace, .. } => namespace,
            // It may be another server that answers now.
            Change::Listed => SYSTEM_NAMESPACE,
            _ => return,
        };
        if let Some(entry) = self.lock().get_mut(&(plane.clone(), namespace.to_owned())) {
            entry.events += 1;
            entry.found = Observed::Unknown;
        }
    }

    /// Reads a Namespace as it is now, for this pass and those after it; what has become of it since it was read last.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub(super) async fn read(
        &self,
        applier: &Applier,
        live: &mut Live,
        plane: &Plane,
        name: &str,
    ) -> Result<Option<Change>, ApplyError> {
        let key = (plane.clone(), name.to_owned());
        let events = self.lock().entry(key.clone()).or_insert(Entry::UNREAD).events;
        let target = Target::cluster(plane, NAMESPACE, name);
        let mut found = applier.read(&target).await?;
        // It is remembered, and its keys are a tenant's.
        found.iter_mut().for_each(Object::keep_read_only);
        let found = found.map(Arc::new);
        live.insert(&target, found.clone());
        let mut entries = self.lock();
        // Retired meanwhile, or asked before the last event: then the answer is for this pass only.
        let Some(entry) = entries.get_mut(&key).filter(|entry| entry.events == events) else {
            return Ok(None);
        };
        entry.found = Observed::Known(found.clone());
        let last = std::mem::replace(&mut entry.last, entry.found.clone());
        Ok(last.known().and_then(|last| became(name, last, found)))
    }

    pub(super) fn retire(&self, plane: &Plane) {
        self.lock().retain(|(one, _), _| one != plane);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Plane, String), Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
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
