//! The trait that a module author implements, and why an operation has no answer.

use std::borrow::Cow;

use crate::{Component, Dependency, Json, Object, Replicas, StatusItem};

/// What a module can do for one kind.
///
/// Write the operations that the kind needs, under `#[interpreter(api_version = "..", kind = "..")]`. One that is not
/// written is not described to Karmada and answers [`Error::Unsupported`].
///
/// All operations are functions of their arguments alone: no clock, no randomness, no memory of earlier calls. Karmada
/// repeats and reorders them freely.
#[expect(unused_variables, reason = "the defaults document the names of their arguments")]
pub trait Interpreter {
    /// InterpretReplica: how many replicas the resource template asks for, and what one of them needs.
    fn replicas(object: &Object) -> Result<Replicas> {
        Err(Error::Unsupported)
    }

    /// InterpretComponent: the parts of a resource template with several pod templates.
    fn components(object: &Object) -> Result<Vec<Component>> {
        Err(Error::Unsupported)
    }

    /// ReviseReplica: changes the template to ask for `replicas`. Only the difference is sent to Karmada.
    fn revise(object: &mut Object, replicas: i32) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// Retain: copies into `desired` what belongs to the member cluster in `observed`. Has to be idempotent, and change
    /// nothing where both are equal, or Karmada writes forever.
    fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// AggregateStatus: makes the template's `/status` from what the member clusters reported. Has to change nothing when
    /// the items did not change.
    fn aggregate(object: &mut Object, items: &[StatusItem]) -> Result<()> {
        Err(Error::Unsupported)
    }

    /// InterpretStatus: the part of the member object's status that goes upward. Has to be a JSON object; empty for nothing.
    fn status(object: &Object) -> Result<Json> {
        Err(Error::Unsupported)
    }

    /// InterpretHealth: whether the member object is healthy. Karmada may move an unhealthy one to another cluster;
    /// [`Error::undecided`] is recorded as Unknown and moves nothing.
    fn health(object: &Object) -> Result<bool> {
        Err(Error::Unsupported)
    }

    /// InterpretDependency: what has to go wherever the object goes.
    fn dependencies(object: &Object) -> Result<Vec<Dependency>> {
        Err(Error::Unsupported)
    }
}

/// What an operation returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object does not have the shape that the operation needs.
    #[error("{}{message}", place(path))]
    InvalidObject {
        /// JSON pointer (RFC 6901) into the object; empty for the object itself.
        path: String,
        /// What was expected there and what was found.
        message: String,
    },
    /// The question has no answer now, without a fault. For health Karmada records Unknown.
    #[error("undecided: {0}")]
    Undecided(String),
    /// The module does not implement the operation for this kind.
    #[error("the module does not implement this operation for this kind")]
    Unsupported,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// The object does not have the shape that the operation needs: where, and what was expected there.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidObject {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The question has no answer now.
    pub fn undecided(reason: impl Into<String>) -> Self {
        Self::Undecided(reason.into())
    }

    /// Anything else that stops the operation.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

fn place(path: &str) -> Cow<'_, str> {
    if path.is_empty() {
        Cow::Borrowed("")
    } else {
        Cow::Owned(format!("{path}: "))
    }
}
