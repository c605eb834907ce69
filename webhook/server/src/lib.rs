//! Hosts interpreter modules as a Karmada ResourceInterpreterWebhook.
//!
//! Invariants
//! - Every request that can be read is answered with its uid, whatever the module does.
//! - The port is bound only when every module is loaded; a process that cannot answer everything does not start.
//! - A module is blamed only for its own time, never for a slow upload or for waiting.
//! - No object ever appears in a log, a metric or a message.

#![forbid(unsafe_code)]

pub mod flags;
mod metrics;
mod routes;
mod run;

pub use metrics::{Calls, Metrics};
pub use routes::{Interpret, Webhook, router};
pub use run::{Config, Running, StartError, run, start};
