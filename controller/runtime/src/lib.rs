//! The controller around its decisions: planes with the stores of what is watched there, work queues, the pass that all
//! reconcilers share, and the writes.
//!
//! Nothing here decides anything about Workloads: that is popcell-core's.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod admission;
pub mod apply;
pub mod cell;
pub mod config;
mod error;
pub mod flags;
pub mod health;
pub mod lease;
pub mod memory;
pub mod metrics;
pub mod pass;
pub mod planes;
pub mod queue;
pub mod reconcilers;
pub mod refusal;
mod run;
mod sync;
pub mod times;
pub mod world;

pub use error::Error;
pub(crate) use popcell_client::required;
pub use run::run;
