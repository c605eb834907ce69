//! Why an operation has no answer. Mirrors the variant `error` of the interface text.

use std::borrow::Cow;

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
