//! What the host demands of every answer, so that a wrong module cannot hurt Karmada or the objects.
//!
//! Pure: the answer and the question in, the checked answer or the first violation out.

mod dependency;
mod document;
mod json;
#[cfg(test)]
mod laws;
pub(crate) mod names;
mod patch;
mod replicas;

use std::fmt;
use std::time::{Duration, Instant};

use popcell_protocol::{Aggregation, Answer, Change, Operation, PatchOp, cut};

use crate::compiled_module::Raw;
use crate::compiled_module::wit;
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
    fn new(path: impl fmt::Display, message: impl Into<String>) -> Self {
        let (mut path, mut message) = (path.to_string(), message.into());
        cut(&mut path, MAX_TEXT);
        cut(&mut message, MAX_TEXT);
        Self { path, message }
    }
}

/// Whether the host would pass on this patch of `object` as a module's answer: for tests and fuzzing, without a module and
/// without a deadline.
///
/// # Errors
/// The place and the rule that is broken.
pub fn check_patch(operation: Operation, object: &[u8], steps: &[PatchOp]) -> Result<(), String> {
    let value = |step: &PatchOp| match step {
        PatchOp::Add { value, .. } | PatchOp::Replace { value, .. } => value.get().len(),
        PatchOp::Remove { .. } => 0,
    };
    let size = steps.iter().map(|step| step.path().len() + value(step)).sum();
    patch::check_steps(operation, object, steps, size, None).map_err(|objection| match objection {
        Objection::Violation(Violation { path, message }) => format!("{path}: {message}"),
        Objection::Deadline => "took too long".to_owned(),
    })
}

/// Why an answer is not passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// It breaks a rule.
    Violation(Violation),
    /// The time of the call was over before that was known.
    Deadline,
}

impl From<Violation> for Objection {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// What limits a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest answer in bytes.
    pub(crate) max_answer: usize,
    /// When the call ends. `None` only where no clock reaches so far.
    pub(crate) deadline: Option<Instant>,
    /// What is said of a call that did not end by then.
    pub(crate) budget: Duration,
    /// When it began.
    pub(crate) started: Instant,
}

impl Bounds {
    /// For a call that begins now.
    pub(crate) fn starting_now(max_answer: usize, budget: Duration) -> Self {
        let started = Instant::now();
        Self {
            max_answer,
            deadline: started.checked_add(budget),
            budget,
            started,
        }
    }
}

/// The checked answer to `call`.
pub(crate) fn answer(raw: Result<Raw, wit::Error>, call: &Call<'_>, bounds: &Bounds) -> Result<Answer, Cause> {
    let max_answer = bounds.max_answer;
    let answer = match raw.map_err(error)? {
        Raw::Replicas(answer) => replicas::check(answer),
        Raw::Components(answer) => replicas::check_components(answer),
        Raw::Change(change) => return checked(change, call, bounds).map(Answer::Change),
        Raw::Aggregation(wit::Aggregation { change, left_out }) => {
            let change = checked(change, call, bounds)?;
            return Ok(Answer::Aggregation(Aggregation { change, left_out }));
        }
        Raw::Status(answer) => json::object("/rawStatus", answer, max_answer).map(Answer::Status),
        Raw::Health(answer) => Ok(Answer::Health(answer)),
        Raw::Dependencies(answer) => dependency::check(answer),
    };
    Ok(answer?)
}

fn checked(change: wit::Change, call: &Call<'_>, bounds: &Bounds) -> Result<Change, Cause> {
    let wit::Change::Patch(steps) = change else {
        return Ok(Change::Unchanged);
    };
    let checked = patch::check(call.operation, call.object, steps, bounds.max_answer, bounds.deadline);
    checked.map(Change::Patch).map_err(|objection| match objection {
        Objection::Violation(violation) => violation.into(),
        Objection::Deadline => Cause::Deadline {
            limit: bounds.budget,
            ran: bounds.started.elapsed(),
        },
    })
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
