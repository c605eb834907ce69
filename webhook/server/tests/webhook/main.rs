//! The routes without a module, and the program as a process with real modules, TLS and signals. Names carry the ids of
//! the project's cases.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends")]

mod abuse;
mod client;
mod clock;
mod confined;
mod deadlines;
mod documented;
mod fixture;
mod logging;
mod operation;
mod process;
mod room;
mod router;
mod startup;
mod stopping;
mod stub;
mod tls;
