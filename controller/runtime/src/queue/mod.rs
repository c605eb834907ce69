//! The work queue of a reconciler, shared by all planes (docs/decisions/20-queue.md).
//!
//! Invariants: a key is held once, whatever asks for it and how often; two passes of one key never run at once; a key
//! that was asked for during its pass gets another one; no more passes run at once than there are workers, nor more for
//! one tenant than its share. Between tenants with ready keys the turn goes round, but each [`AGEING`]th pass goes to the
//! key that has waited longest, so that with many tenants a long line still moves. Where a queue
//! has a pace, no key comes oftener.

mod backoff;
mod core;
mod key;
mod pace;
mod shell;
mod turns;

pub use backoff::Backoff;
pub use core::{Queue, Stats, Verdict, Workers};
pub use key::{Key, Tenant};
pub use pace::Pace;
pub use shell::WorkQueue;
pub use turns::AGEING;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
