//! What is counted of passes and writes.

use std::time::Duration;

use crate::apply::ApplyError;

/// How a pass ended, as in the label `outcome` (core's metrics table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be done.
    Quiet,
    /// Something was written.
    Written,
    /// What was decided on kept changing.
    Conflict,
    /// Nothing can be done until the object changes.
    Terminal,
    /// A server refused or did not answer.
    Error,
    /// A delete was left out.
    Suppressed,
    /// There was nothing to decide about.
    Dropped,
    /// The object is paused.
    Paused,
}

impl Outcome {
    pub(super) fn of(error: &ApplyError) -> Self {
        match error {
            ApplyError::Failed(_) if error.stale().is_some() => Self::Conflict,
            ApplyError::Unproven(_) => Self::Suppressed,
            ApplyError::Away(..) | ApplyError::Disengaged(_) | ApplyError::NotAllowed => Self::Dropped,
            ApplyError::Failed(_) => Self::Error,
        }
    }

    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Written => "written",
            Self::Conflict => "conflict",
            Self::Terminal => "terminal",
            Self::Error => "error",
            Self::Suppressed => "suppressed",
            Self::Dropped => "dropped",
            Self::Paused => "paused",
        }
    }
}

/// Who counts passes.
pub trait Reporter: Send + Sync {
    /// A pass ended.
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration);
    /// What an event asked for is written, so long after it.
    fn answered(&self, reconciler: &'static str, after: Duration);
}
