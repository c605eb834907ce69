//! What a cell keeps in other planes. It is kept by level, from what exists now, and by no finalizer: one could hold an
//! Instance while a remote plane is unreachable.
//!
//! The copy of an Instance on the hub ([`copy`]) and its claim in the project ([`claim`]): desired is one for every Instance
//! that exists. A slot of a live WorkloadDeployment without Instance makes nothing new and keeps what it has. All else of
//! this cell is deleted, and nothing of another. Which projects may hold claims is written down in the cell ([`projects`]).
//!
//! Why: `docs/decisions/06-copies-and-claims-by-level.md` and `docs/decisions/07-takeover.md`.

pub mod cell;
pub mod claim;
pub mod copy;
pub mod projects;

#[cfg(test)]
mod laws;

use std::time::Duration;

use popcell_api::{annotations, kind, labels};

use crate::object::{Fields, Object};
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Proof, Target};
use crate::removed_cells::Source;
use crate::slots;

/// How soon a name that another client holds is looked at again: what is not ours is not watched.
pub const NAME_CONFLICT_RETRY: Duration = Duration::from_mins(1);

/// What stands in the cell behind one name in a cell namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BackingObject<'a> {
    /// An Instance, being deleted or not.
    Instance(&'a Object),
    /// A slot that is asked for, of this WorkloadDeployment, and no Instance.
    Slot(&'a Object),
    /// Nothing.
    Nothing,
}

impl<'a> BackingObject<'a> {
    /// `deployments` have at least the one in which the name stands for a slot, where there is one.
    pub(crate) fn of(name: &str, instance: Option<&'a Object>, deployments: &[&'a Object]) -> Self {
        let asks =
            |one: &&Object| slots::ordinal_of(one.name(), name).is_some_and(|ordinal| ordinal < slots::desired(one));
        match instance {
            Some(instance) => Self::Instance(instance),
            None => deployments.iter().copied().find(asks).map_or(Self::Nothing, Self::Slot),
        }
    }
}

/// What an object says of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceMatch {
    /// This cell, by name and uid.
    Ours,
    /// What it says is ours, and something is missing: someone took it off, or it is upstream's.
    Partly {
        /// Whether the name is there.
        name: bool,
        /// Whether the uid is there.
        id: bool,
    },
    /// Another source, or a cell of the same name that is not this one.
    Another,
}

impl SourceMatch {
    pub(crate) fn on(object: &Object, source: Source<'_>) -> Self {
        let name = object.label(labels::SOURCE_CLUSTER);
        let id = object.annotation(annotations::SOURCE_UID);
        match (name, id) {
            (Some(name), Some(id)) if name == source.name && id == source.id => Self::Ours,
            _ if name.is_some_and(|name| name != source.name) || id.is_some_and(|id| id != source.id) => Self::Another,
            _ => Self::Partly {
                name: name.is_some(),
                id: id.is_some(),
            },
        }
    }
}

/// Whose an object at a name of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Ours.
    Ours,
    /// Not stamped whole, and its identity agrees: it is stamped first, and is ours from then on.
    Agrees,
    /// Another owner's: never changed.
    Foreign,
}

/// How the deletion guard takes the delete of what a name has left that nothing stands behind. A user did it where the cell's
/// WorkloadDeployment lives and asks for fewer, or where the one that it came from, on `origin`, is gone too; an operator did
/// where the cell does not serve its city any more. What is left is a cell that has lost what it had.
fn guarded(
    (namespace, name): (&str, &str),
    deployments: &[&Object],
    source: Source<'_>,
    origin: &Plane,
    uid: Option<&str>,
) -> DeletionGuard {
    let Some(of) = slots::deployment_of(name) else {
        return DeletionGuard::Applies;
    };
    let at = |plane: &Plane| Target::namespaced(plane, kind::WORKLOAD_DEPLOYMENT, namespace, of);
    let mut proofs = vec![
        match deployments.iter().find(|one| one.name() == of && !one.deleting()) {
            Some(living) => Proof::Lives {
                source: at(&Plane::Cell),
                uid: living.uid().to_owned(),
            },
            None => Proof::Gone {
                source: at(origin),
                uid: uid.map(str::to_owned),
            },
        },
    ];
    if *origin == Plane::Hub {
        proofs.push(Proof::NotServed {
            cluster: source.name.to_owned(),
            deployment: at(origin),
        });
    }
    DeletionGuard::Unless(proofs)
}

/// A plan that says who holds the name.
fn foreign(target: Target) -> Plan {
    Plan {
        requeue: Some(NAME_CONFLICT_RETRY),
        ..Plan::noted(Note::Foreign(target))
    }
}

fn done(action: Option<Action>) -> Plan {
    Plan {
        actions: action.into_iter().collect(),
        ..Plan::default()
    }
}
