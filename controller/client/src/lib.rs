//! The way to control planes, for the controller and the command line: where each one is ([`config`], [`project_url`]), how it
//! is reached ([`Transport`], [`Tokens`]), which answers say that an object is not there ([`absent`]), and whether live answers
//! prove what a delete depends on ([`prove`]).
//!
//! Nothing here decides anything about objects: that is popcell-core's.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod client;
pub mod config;
pub mod critical_tasks;
mod error;
mod prove;
pub mod sync;
mod token;
mod transport;

pub use error::{ConnectError, chain};
pub use prove::{LiveReads, ProjectAnswer, Unproven, absent, prove, serves_group, serves_resource};
pub use token::Tokens;
pub use transport::{Addressing, Connection, Direct, Projects, Transport, client, project_url, tuned};
