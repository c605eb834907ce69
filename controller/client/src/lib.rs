//! The way to control planes, for the controller and the command line: where each one is ([`config`], [`project_url`]), how it
//! is reached ([`Transport`], [`Tokens`]), which answers say that an object is not there ([`absent`]), and whether live answers
//! prove what a delete depends on ([`prove`]).
//!
//! Nothing here decides anything about objects: that is popcell-core's.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod absence;
mod address;
mod client;
pub mod config;
pub mod critical_tasks;
mod error;
mod prove;
mod token;
mod transport;

pub use absence::{absent, serves_group, serves_resource};
pub use address::{Addressing, project_url};
pub use error::{ConnectError, chain};
pub use prove::{LiveReads, ProjectAnswer, Unproven, prove};
pub use token::Tokens;
pub use transport::{Connection, Direct, Projects, Transport, client, tuned};
