//! What is counted of reconciles and writes.

use std::time::Duration;

use popcell_core::metrics::outcome;
use popcell_core::plan::Note;

use crate::refusal::ApplyError;

/// How a reconcile ended, as in the label `outcome` (core's metrics table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be done.
    Unchanged,
    /// Something was written.
    Written,
    /// What was decided on kept changing.
    Conflict,
    /// Nothing can be done until the object changes.
    Terminal,
    /// A server refused or did not answer.
    Error,
    /// A delete was skipped.
    Withheld,
    /// There was nothing to decide about.
    Abandoned,
    /// The object is paused.
    Paused,
    /// Something was to be done, but for the dry run.
    DryRun,
}

impl Outcome {
    pub(crate) fn of(error: &ApplyError) -> Self {
        match error {
            ApplyError::Failed(_) if error.stale().is_some() => Self::Conflict,
            ApplyError::Unproven(_) => Self::Withheld,
            ApplyError::Unreachable(..)
            | ApplyError::CircuitOpen(..)
            | ApplyError::Disengaged(_)
            | ApplyError::NotAllowed => Self::Abandoned,
            ApplyError::Failed(_) => Self::Error,
        }
    }

    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => outcome::UNCHANGED,
            Self::Written => outcome::WRITTEN,
            Self::Conflict => outcome::CONFLICT,
            Self::Terminal => outcome::TERMINAL,
            Self::Error => outcome::ERROR,
            Self::Withheld => outcome::WITHHELD,
            Self::Abandoned => outcome::ABANDONED,
            Self::Paused => outcome::PAUSED,
            Self::DryRun => outcome::DRY_RUN,
        }
    }
}

/// Who counts passes.
pub trait Reporter: Send + Sync {
    /// A reconcile ended.
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration);
    /// A plan that says this was carried out.
    fn noted(&self, _note: &Note) {}
    /// What an event asked for is written, so long after it.
    fn answered(&self, reconciler: &'static str, after: Duration);
}
