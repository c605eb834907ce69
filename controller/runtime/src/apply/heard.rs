//! What servers said to the writes of one plan, for whoever shows it and for whoever waits for it.

use popcell_core::plan::{Action, Plane, Target};
use popcell_core::rejection::Rejection;

use super::error::{ApplyError, Failed};

/// Writes of one kind of object in one namespace: what a policy, a webhook or a right is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The server.
    pub plane: Plane,
    kind: &'static str,
    namespace: Option<String>,
    verb: &'static str,
}

impl Spot {
    /// Where something was refused.
    pub fn of(failed: &Failed) -> Self {
        Self::at(&failed.target, failed.verb)
    }

    /// Where an object is written.
    pub fn at(target: &Target, verb: &'static str) -> Self {
        Self {
            plane: target.plane.clone(),
            kind: target.kind.kind,
            namespace: target.namespace.clone(),
            verb,
        }
    }
}

/// What became of the writes of a plan, but for that of the status.
#[derive(Debug, Default)]
pub struct Heard {
    /// What was rejected, and lasts until somebody changes something.
    pub rejections: Vec<Rejection>,
    /// The plan has no status to write: what it was decided on is shown already.
    pub shown: bool,
    accepted: Vec<Spot>,
}

impl Heard {
    /// Where something was written.
    pub fn accepted(&self) -> &[Spot] {
        &self.accepted
    }

    pub(super) fn note(&mut self, action: &Action, written: &Result<(), ApplyError>) {
        match written {
            // That a status is accepted says nothing of the object itself.
            Ok(()) if matches!(action, Action::Patch(patch) if patch.status) => {}
            Ok(()) => self.accepted.push(Spot::at(action.target(), action.verb())),
            // What was not tried is rejected in the words that another one heard.
            Err(error) => self.rejections.extend(error.rejected().map(|failed| {
                let words = failed.refusal.words();
                Rejection::new(action.target(), action.verb(), &words)
            })),
        }
    }
}
