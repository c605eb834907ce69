//! The deletion guard as it meets deletes: which it holds, and what releases it (docs/decisions/22-proofs-and-deletion-guard.md).

use std::collections::BTreeSet;
use std::time::Duration;

use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_api::kind::Kind;
use popcell_api::names::{DELETION_GUARD, LEASE};
use popcell_core::deletion_guard::{self, ALL_KINDS, DeletionGuards};
use popcell_core::plan::{Delete, DeletionGuard, Plane, Proof};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{Applier, Differ, Difference, GuardChange};
use crate::sync::lock;

/// How long a proof that a user did something counts for the deletion guard.
const EXCUSED: Duration = Duration::from_secs(2);

/// So many planes that are held are named.
const NAMED: usize = 5;
/// So much of a value that names nothing is told.
const VALUE_CHARS: usize = 100;

/// For people: what releases what is held of a plane and nothing else, to be copied into a shell. Logs may be JSON, which has
/// no use for other quotes.
pub(crate) fn release_of(plane: &Plane) -> String {
    format!("{MASS_DELETE}='{plane}'")
}

/// For people: the one thing to do, with and without a Lease.
fn how_to_release(plane: &Plane) -> String {
    format!(
        "annotate Lease {LEASE} in the program's namespace with {}; with --leader-elect=false, create ConfigMap {DELETION_GUARD} \
         with that annotation there ({MASS_DELETE_ALLOW} releases all that is held, whatever it is)",
        release_of(plane)
    )
}

impl Applier {
    /// Whether the deletion guard holds a delete.
    pub(super) async fn holds(&self, delete: &Delete, difference: &Differ<'_>) -> bool {
        if delete.deletion_guard == DeletionGuard::Exempt {
            return false;
        }
        let holds = self.deletion_guards().is_rewound(delete) || self.is_mass(delete, difference).await;
        if holds {
            self.meter.withheld(&delete.target, "deletion_guard");
        }
        holds
    }

    async fn is_mass(&self, delete: &Delete, difference: &Differ<'_>) -> bool {
        let plane = &delete.target.plane;
        let kind = match &delete.deletion_guard {
            DeletionGuard::With(kind) => *kind,
            _ => delete.target.kind,
        };
        if self.deletion_guards().passes(plane, kind) {
            return false;
        }
        if let DeletionGuard::Unless(proofs) = &delete.deletion_guard {
            for proof in proofs {
                if self.excuses(proof).await {
                    return false;
                }
            }
        }
        // Without a lock of the guard: it decides all keys again.
        self.judge(plane, kind, difference(plane, kind))
    }

    /// Whether a live answer says that a user did what a delete follows from. Many deletes follow from one deed: what was
    /// proven is not asked about again for a moment. What a delete itself rests on is proven each time.
    async fn excuses(&self, proof: &Proof) -> bool {
        let now = Instant::now();
        let proven = {
            let mut excuses = lock(&self.excuses);
            excuses.retain(|(_, at)| now.duration_since(*at) < EXCUSED);
            excuses.iter().any(|(known, _)| known == proof)
        };
        if proven {
            return true;
        }
        match self.prove(proof).await {
            Ok(()) => {
                lock(&self.excuses).push((proof.clone(), now));
                true
            }
            Err(error) => {
                debug!(%error, "the deletion guard counts a delete");
                false
            }
        }
    }

    /// The versions of a plane went back, as after the restore of a backup: nothing is deleted there, nor because of what it
    /// does not have, until the deletion guard is released.
    pub fn rewound(&self, plane: &Plane) {
        if self.deletion_guards().rewound(plane) {
            warn!(%plane, "the resourceVersions of this server went back: it was restored from a backup, or is \
                another one. It is relisted; nothing is deleted there or because an object is missing there. Once \
                its state is correct, release the deletion guard: {}", how_to_release(plane));
            self.meter.guard_changed(plane, ALL_KINDS, GuardChange::Rewound);
        }
    }

    /// Whether the deletion guard of a plane and kind holds, given the whole difference.
    pub fn judge(&self, plane: &Plane, kind: Kind, difference: Difference) -> bool {
        let Difference {
            ours,
            to_delete,
            partial,
        } = difference;
        if partial && !deletion_guard::is_mass(kind, ours, to_delete) {
            // A small part of a difference neither opens the deletion guard for the rest nor lets go what it holds.
            return self.deletion_guards().is_held(plane, kind);
        }
        let (was_held, requeue) = {
            let mut deletion_guards = self.deletion_guards();
            (
                deletion_guards.is_held(plane, kind),
                deletion_guards.judge(plane, kind, ours, to_delete),
            )
        };
        match requeue {
            deletion_guard::GuardDecision::Hold { first: true } => {
                warn!(%plane, kind = kind.kind, ours, to_delete, "the deletion guard holds: none of these is deleted. Look for a \
                    list that is wrong first (a restored backup, credentials of another installation); only if the deletes \
                    are meant, release it: {}", how_to_release(plane));
                self.meter
                    .guard_changed(plane, kind.kind, GuardChange::Held(difference));
            }
            deletion_guard::GuardDecision::Go if was_held => {
                info!(%plane, kind = kind.kind, ours, to_delete, "the deletion guard opens: all planes are consistent again");
                self.meter.guard_changed(plane, kind.kind, GuardChange::Recovered);
            }
            _ => {}
        }
        requeue != deletion_guard::GuardDecision::Go
    }

    /// Opens the guards that hold and that the value of the annotation names ([`DeletionGuards::release`]), and says
    /// whether there is one.
    pub fn release_deletion_guards(&self, value: &str) -> bool {
        let value = value.trim();
        let (released, held) = {
            let mut deletion_guards = self.deletion_guards();
            (deletion_guards.release(value), held(&deletion_guards))
        };
        for (plane, kind) in &released {
            warn!(%plane, kind, "the deletion guard is released");
            self.meter.guard_changed(plane, kind, GuardChange::Released);
        }
        if released.is_empty() {
            let value: String = value.chars().take(VALUE_CHARS).collect();
            warn!(
                value,
                held,
                "{MASS_DELETE} names nothing that the deletion guard holds: nothing is released. Give one of what is held, as \
                it is written here, or {MASS_DELETE_ALLOW} for all of it"
            );
            self.meter.unreleased(&value, &held);
        }
        !released.is_empty()
    }
}

/// Planes of which something is held, for people.
fn held(deletion_guards: &DeletionGuards) -> String {
    let planes: BTreeSet<&Plane> = deletion_guards.held().map(|(plane, _)| plane).collect();
    let mut names: Vec<String> = planes.iter().take(NAMED).map(|plane| format!("'{plane}'")).collect();
    match planes.len().saturating_sub(NAMED) {
        0 if names.is_empty() => names.push("nothing".to_owned()),
        0 => {}
        more => names.push(format!("{more} more")),
    }
    names.join(", ")
}
