//! What the last reconcile of each key noted: the gauges of conflicts, orphans, skews and unreadable objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use popcell_core::metrics::plane_kind;
use popcell_core::plan::{Note, Plan};
use tracing::{error, warn};

use super::{Subject, subject};
use crate::queue::Key;
use crate::sync::lock;

/// Counts by kind of plane and kind.
pub type Counts = BTreeMap<(&'static str, &'static str), usize>;

/// Values for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GaugeCounts {
    /// Objects that hold a name of ours.
    pub foreign: Counts,
    /// Objects without an owner.
    pub orphans: Counts,
    /// Specs that a server stores otherwise.
    pub skews: Counts,
    /// Objects with a field that cannot be read.
    pub undecodable: Counts,
}

impl GaugeCounts {
    /// Adds what is noted of a plane now.
    pub fn add(&mut self, note_gauges: &NoteGauges) {
        for note in note_gauges.notes().values().flatten() {
            let (counts, target) = match note {
                Note::Foreign(target) => (&mut self.foreign, target),
                Note::Orphan(target) | Note::AnotherServer { target, .. } => (&mut self.orphans, target),
                Note::Skew(target) => (&mut self.skews, target),
                Note::Undecodable { target, .. } => (&mut self.undecodable, target),
                _ => continue,
            };
            *counts.entry((plane_kind(&target.plane), target.kind.kind)).or_default() += 1;
        }
    }
}

/// Notes of all keys of a plane that have any.
#[derive(Debug, Default)]
pub struct NoteGauges(Mutex<HashMap<Subject, Vec<Note>>>);

impl NoteGauges {
    /// Replaces what an earlier reconcile noted by what a plan notes, or by nothing.
    pub fn put(&self, reconciler: &'static str, key: &Key, plan: Option<&Plan>) {
        let notes = plan.into_iter().flat_map(|plan| &plan.notes);
        let counted: Vec<Note> = notes.filter(|note| is_counted(note)).cloned().collect();
        let subject = subject(reconciler, key);
        let before = if counted.is_empty() {
            self.notes().remove(&subject)
        } else {
            self.notes().insert(subject, counted.clone())
        };
        let before = before.unwrap_or_default();
        counted.iter().filter(|note| !before.contains(note)).for_each(log_note);
    }

    /// Forgets all keys of these namespaces.
    pub fn clear_namespaces(&self, namespaces: &[String]) {
        self.notes()
            .retain(|(_, namespace, _), _| !namespaces.contains(namespace));
    }

    /// Orphans, one by one.
    #[cfg(test)]
    pub(crate) fn orphans(&self) -> Vec<popcell_core::plan::Target> {
        let notes = self.notes();
        let orphans = notes.values().flatten().filter_map(|note| match note {
            Note::Orphan(target) => Some(target.clone()),
            _ => None,
        });
        orphans.collect()
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<Subject, Vec<Note>>> {
        lock(&self.0)
    }
}

/// A gauge says how many there are; the log names them, once.
fn log_note(note: &Note) {
    match note {
        Note::Foreign(target) => {
            warn!(%target, "another owner holds a name that popcell needs, and it is kept: delete it, or rename one \
                            of the two");
        }
        Note::Skew(target) => {
            warn!(%target, "the server stores another spec than it was sent: apply the same CRDs to all planes");
        }
        Note::Undecodable { target, path } => {
            warn!(%target, path, "a field that is needed cannot be read: correct the object");
        }
        Note::Excess(target, excess) => {
            warn!(%target, %excess, "an object exceeds a limit: it is not carried further; {}", excess.fix());
        }
        Note::Orphan(target) => {
            warn!(%target, "orphaned object kept: see `popcell orphans`");
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
