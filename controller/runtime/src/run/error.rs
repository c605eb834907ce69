//! Why the program does not start, or ends by itself.

use popcell_https::ListenError;
use thiserror::Error;
use tokio::task::JoinError;

use crate::admission::ServeError;
use crate::config::ConfigError;
use crate::critical_tasks::{Ended, message};
use crate::lease::LeaseError;

/// What ends the program.
#[derive(Debug, Error)]
pub(super) enum RunError {
    /// The settings are refused, or what they name cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A plane cannot be addressed.
    #[error(transparent)]
    Plane(#[from] popcell_client::ConnectError),
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
    /// A task of the program panicked, or ended by itself.
    #[error("internal error: a required task exited: {0}")]
    Task(Ended),
}

impl RunError {
    /// A task ended that must not.
    pub(super) fn ended(task: impl Into<String>) -> Self {
        let task = task.into();
        Self::Task(Ended { task, panic: None })
    }

    /// A task panicked, or was aborted.
    pub(super) fn died(task: impl Into<String>, how: JoinError) -> Self {
        let panic = how.try_into_panic().ok();
        Self::Task(Ended {
            task: task.into(),
            panic: panic.map(|panic| message(panic.as_ref())),
        })
    }

    /// 2 wrong settings, 4 the rest.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 4,
        }
    }
}
