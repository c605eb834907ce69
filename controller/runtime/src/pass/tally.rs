//! What the last pass of each key noted: the gauges of conflicts, orphans, skews and unreadable objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use popcell_core::metrics::plane_kind;
use popcell_core::plan::{Note, Plan, Plane};
use tracing::{error, warn};

use crate::queue::Key;

/// Counts by kind of plane and kind.
pub type Counts = BTreeMap<(&'static str, &'static str), usize>;

/// Figures for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// Objects that hold a name of ours.
    pub foreign: Counts,
    /// Objects that nobody stands behind.
    pub orphans: Counts,
    /// Specs that a server stores otherwise.
    pub skews: Counts,
    /// Objects with a field that cannot be read.
    pub undecodable: Counts,
}

/// Notes of all keys that have any.
#[derive(Debug, Default)]
pub struct Tally {
    notes: Mutex<HashMap<(&'static str, Key), Vec<Note>>>,
}

impl Tally {
    /// Replaces what an earlier pass noted.
    pub fn put(&self, reconciler: &'static str, key: &Key, plan: &Plan) {
        let counted: Vec<Note> = plan.notes.iter().filter(|note| is_counted(note)).cloned().collect();
        let before = if counted.is_empty() {
            self.notes().remove(&(reconciler, key.clone()))
        } else {
            self.notes().insert((reconciler, key.clone()), counted.clone())
        };
        let before = before.unwrap_or_default();
        counted.iter().filter(|note| !before.contains(note)).for_each(tell);
    }

    /// Forgets a key.
    pub fn clear(&self, reconciler: &'static str, key: &Key) {
        self.notes().remove(&(reconciler, key.clone()));
    }

    /// Forgets all keys of a plane that left, and those of the hub namespaces that stand for it.
    pub fn retire(&self, plane: &Plane, hub_namespaces: &[String]) {
        let is_left =
            |key: &Key| key.plane == *plane || key.plane == Plane::Hub && hub_namespaces.contains(&key.namespace);
        self.notes().retain(|(_, key), _| !is_left(key));
    }

    /// What is noted now.
    pub fn tallied(&self) -> Tallied {
        let mut tallied = Tallied::default();
        for note in self.notes().values().flatten() {
            let (counts, target) = match note {
                Note::Foreign(target) => (&mut tallied.foreign, target),
                Note::Orphan(target) | Note::AnotherServer { target, .. } => (&mut tallied.orphans, target),
                Note::Skew(target) => (&mut tallied.skews, target),
                Note::Undecodable { target, .. } => (&mut tallied.undecodable, target),
                _ => continue,
            };
            *counts.entry((plane_kind(&target.plane), target.kind.kind)).or_default() += 1;
        }
        tallied
    }

    /// Orphans, one by one.
    pub fn orphans(&self) -> Vec<popcell_core::plan::Target> {
        let notes = self.notes();
        let orphans = notes.values().flatten().filter_map(|note| match note {
            Note::Orphan(target) => Some(target.clone()),
            _ => None,
        });
        orphans.collect()
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<(&'static str, Key), Vec<Note>>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gauge says how many there are; the log names them, once.
fn tell(note: &Note) {
    match note {
        Note::Foreign(target) => {
            warn!(%target, "another owner holds a name of ours: it is left alone; delete it, or rename one of the two");
        }
        Note::Skew(target) => {
            warn!(%target, "the server stores another spec than it was sent: apply the same CRDs to all planes");
        }
        Note::Undecodable { target, path } => {
            warn!(%target, path, "a field that is needed cannot be read: correct the object");
        }
        Note::Excess(target, excess) => {
            warn!(%target, %excess, "an object exceeds a limit: it is not carried further; {}", excess.remedy());
        }
        Note::Orphan(target) => {
            warn!(%target, "nobody stands behind this object, and it is left: see `popcell orphans`");
        }
        Note::Twins { id, clusters } => {
            error!(
                id,
                clusters,
                "these Clusters are one cell by the uid of its kube-system: it is joined twice, or was cloned with \
                its etcd; `popcell cell remove` all but one of the names"
            );
        }
        Note::AnotherServer {
            target,
            stamped,
            server,
        } => {
            error!(%target, stamped, server, "this hub namespace is of a project on another API server than the one of the \
                project's kubeconfig (uids of kube-system): nothing is deleted in it; correct the kubeconfig, or, where the \
                project has moved, see \"orphans\" in docs/operations.md");
        }
        _ => {}
    }
}

fn is_counted(note: &Note) -> bool {
    matches!(
        note,
        Note::Foreign(_)
            | Note::Excess(..)
            | Note::Orphan(_)
            | Note::AnotherServer { .. }
            | Note::Twins { .. }
            | Note::Skew(_)
            | Note::Undecodable { .. }
    )
}
