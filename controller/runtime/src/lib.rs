//! What reconcilers run on (design.md 7.1, 7.2): planes with the stores of what is watched there, and the work queue.
//!
//! Nothing here decides anything about Workloads: that is popcell-core's.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod breaker;
pub mod config;
mod error;
pub mod flags;
pub mod health;
pub mod lease;
pub mod metrics;
pub mod planes;
pub mod queue;
pub mod telemetry;
pub mod times;

pub use error::Error;
