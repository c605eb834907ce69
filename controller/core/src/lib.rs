//! What the controller decides: observed state in, plan out.
//!
//! Nothing here holds a client, reads a clock or waits. Time is an argument, and what a live server must confirm before
//! a delete is part of the plan ([`plan::Proof`]). Two calls with equal arguments give equal plans, and a plan that was
//! carried out leaves nothing to do.
//!
//! Why: `docs/decisions/21-reconcile-and-writes.md`.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        clippy::semicolon_if_nothing_returned,
        reason = "builders take json!(..) as it is written; closures that change one field read as one line"
    )
)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod admission;
pub mod bindings;
pub mod conditions;
pub mod data_copy;
pub mod deletion_guard;
pub mod deployment;
pub mod derived;
pub mod downward;
pub mod edit;
pub mod federation;
pub mod fields;
mod growth;
pub mod hub_quota;
pub mod identity;
pub mod instance;
pub mod instance_types;
pub mod limits;
pub mod metrics;
pub mod names;
pub mod object;
pub mod observed;
pub mod orphans;
pub mod paused;
pub mod plan;
pub mod policy;
pub mod projection;
pub mod recent_removals;
pub mod reference_copy;
pub mod referenced_data;
pub mod references;
pub mod rejection;
pub mod remote;
pub mod removed_cells;
mod reserved;
pub mod rewind;
pub mod sizing;
pub mod slots;
pub mod spec_echoes;
pub mod workload;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;
