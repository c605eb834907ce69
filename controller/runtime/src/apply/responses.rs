//! What servers said to the writes of one plan, for whoever shows it and for whoever waits for it.

use popcell_core::plan::{Action, Plane, Target};
use popcell_core::rejection::Rejection;

use crate::refusal::{ApplyError, Failed};

/// Writes of one kind of object in one namespace: what a policy, a webhook or a right is about. For those that were refused,
/// with what was said: only those that were refused alike are accepted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteScope {
    /// The server.
    pub plane: Plane,
    kind: &'static str,
    namespace: Option<String>,
    verb: &'static str,
    cause: Option<u64>,
}

impl WriteScope {
    /// Where something was refused.
    pub fn of(failed: &Failed) -> Self {
        Self {
            cause: Some(failed.cause()),
            ..Self::at(&failed.target, failed.verb)
        }
    }

    /// Where an object is written.
    pub fn at(target: &Target, verb: &'static str) -> Self {
        Self {
            plane: target.plane.clone(),
            kind: target.kind.kind,
            namespace: target.namespace.clone(),
            verb,
            cause: None,
        }
    }

    /// Whether these are the same writes, whatever was said of them.
    pub fn is_beside(&self, other: &Self) -> bool {
        let cause = self.cause;
        *self == Self { cause, ..other.clone() }
    }
}

/// What became of the writes of a plan, but for that of the status.
#[derive(Debug, Default)]
pub struct WriteResponses {
    /// What was rejected, and lasts until a change.
    pub rejections: Vec<Rejection>,
    /// The plan has no status to write: what it was decided on is shown already.
    pub shown: bool,
}

impl WriteResponses {
    /// A reconcile ended before its plan was carried out, since a write like its own was refused.
    pub(crate) fn note_error(&mut self, error: &ApplyError) {
        if let ApplyError::CircuitOpen(failed, _) = error
            && error.rejected().is_some()
            && !failed.reads()
        {
            let words = failed.refusal.words();
            self.rejections
                .push(Rejection::new(&failed.target, failed.verb, &words));
        }
    }

    pub(super) fn note<T>(&mut self, action: &Action, written: &Result<T, ApplyError>) {
        // What was not tried is rejected in the words that another one heard, but for its name.
        if let Err(error) = written {
            let rejected = error.rejected();
            self.rejections.extend(
                rejected
                    .map(|failed| Rejection::new(action.target(), action.verb(), &failed.words_for(action.target()))),
            );
        }
    }
}
