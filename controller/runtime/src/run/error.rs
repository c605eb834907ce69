//! Why the program does not start, or ends by itself.

use popcell_https::ListenError;
use thiserror::Error;

use crate::admission::ServeError;
use crate::config::ConfigError;
use crate::lease::LeaseError;

/// What ends the program.
#[derive(Debug, Error)]
pub(super) enum RunError {
    /// The settings are refused, or what they name cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A plane cannot be addressed.
    #[error(transparent)]
    Plane(#[from] crate::Error),
    /// The admission webhook cannot be served.
    #[error(transparent)]
    Admission(#[from] ServeError),
    /// A port cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The Lease was lost: another process writes now.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The system refuses a thread or a signal handler.
    #[error("failed to start")]
    System(#[source] std::io::Error),
    /// A task of the program panicked.
    #[error("failed to go on: a task ended that must not")]
    Task,
}

impl RunError {
    /// 2 wrong settings, 4 the rest.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 4,
        }
    }
}
