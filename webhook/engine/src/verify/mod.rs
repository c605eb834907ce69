//! What the host demands of every answer (design section 3), so that a wrong module cannot hurt Karmada or the objects.
//!
//! Pure: the answer and the question in, the checked answer or the first violation out.

mod dependency;
mod document;
mod json;
#[cfg(test)]
mod laws;
mod metadata;
pub(crate) mod names;
mod patch;
mod pointer;
mod quantity;
mod replicas;

use popcell_protocol::{Answer, PatchOp};

use crate::bindings::wit;
use crate::call_error::cut;
use crate::code::Raw;
use crate::{Call, Cause};

/// The longest text of a module that is kept for messages, in bytes.
const MAX_TEXT: usize = 1024;

/// A rule that an answer breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// JSON pointer into the answer, or for a patch the pointer that it touches.
    pub(crate) path: String,
    /// What is not allowed there.
    pub(crate) message: String,
}

impl Violation {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (mut path, mut message) = (path.into(), message.into());
        cut(&mut path, MAX_TEXT);
        cut(&mut message, MAX_TEXT);
        Self { path, message }
    }
}

/// The checked answer to `call`; `max_answer` is the largest one in bytes.
pub(crate) fn answer(raw: Result<Raw, wit::Error>, call: &Call<'_>, max_answer: usize) -> Result<Answer, Cause> {
    let answer = match raw.map_err(error)? {
        Raw::Replicas(answer) => replicas::check(answer),
        Raw::Components(answer) => replicas::check_components(answer),
        Raw::Change(change) => checked(change, call, max_answer).map(Answer::Patch),
        Raw::Aggregation(aggregation) => {
            checked(aggregation.change, call, max_answer).map(|patch| Answer::Aggregation {
                patch,
                left_out: aggregation.left_out,
            })
        }
        Raw::Status(answer) => json::object("/rawStatus", answer, max_answer).map(Answer::Status),
        Raw::Health(answer) => Ok(Answer::Health(answer)),
        Raw::Dependencies(answer) => dependency::check(answer),
    };
    Ok(answer?)
}

fn checked(change: wit::Change, call: &Call<'_>, max: usize) -> Result<Option<Vec<PatchOp>>, Violation> {
    match change {
        wit::Change::Unchanged => Ok(None),
        wit::Change::Patch(steps) => patch::check(call.operation, call.object, steps, max).map(Some),
    }
}

fn error(error: wit::Error) -> Cause {
    let kept = |mut text: String| {
        cut(&mut text, MAX_TEXT);
        text
    };
    match error {
        wit::Error::InvalidObject(invalid) => Cause::InvalidObject {
            path: kept(invalid.path),
            message: kept(invalid.message),
        },
        wit::Error::Undecided(reason) => Cause::Undecided(kept(reason)),
        wit::Error::Unsupported => Cause::Unsupported,
        wit::Error::Failed(message) => Cause::Failed(kept(message)),
    }
}
