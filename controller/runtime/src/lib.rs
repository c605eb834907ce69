//! The controller around its decisions: planes with the stores of what is watched there, work queues, the reconcile that
//! all reconcilers share, and the writes.
//!
//! Nothing here decides anything about Workloads: that is popcell-core's.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod admission;
pub mod apply;
pub mod cell;
pub mod config;
pub mod context;
pub mod duration_histogram;
mod error;
pub mod flags;
pub mod health;
pub mod lease;
pub mod memory;
pub mod metrics;
pub mod planes;
pub mod queue;
pub mod reconcile;
pub mod reconcilers;
pub mod refusal;
mod run;

pub use error::Error;
pub(crate) use popcell_client::{critical_tasks, sync};
pub use run::run;
