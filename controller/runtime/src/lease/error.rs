//! How a holder ends that did not want to.

use std::fmt;

use thiserror::Error;

use super::TERM;

/// The Lease was lost. The process has to exit: others write now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to keep the Lease {lease}: {loss}")]
pub struct LeaseError {
    /// Namespace and name.
    pub lease: String,
    /// How.
    pub loss: Loss,
}

/// How a Lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No renewal succeeded in time: the server was away, or the process slept.
    Expired,
    /// Somebody else holds it.
    Taken(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => write!(
                f,
                "it was not renewed for {} s: its server was away, or this process was held up",
                TERM.as_secs()
            ),
            Self::Taken(holder) => write!(f, "{holder} has taken it"),
        }
    }
}
