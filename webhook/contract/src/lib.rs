//! The words of Karmada's interpreter contract: what is asked about an object, and what is answered. No IO.
//!
//! Whoever takes part has the same words: modules (`popcell-sdk` names them for their authors), the host with Karmada's wire
//! format (`popcell-protocol`, `popcell-engine`) and the command line. They differ only in how they hold a piece of JSON and
//! an amount, which are parameters here: the SDK reads both, while the host passes on the text that it was given.
//!
//! It is part of every module, so it has no dependency that costs a byte there, and nothing here panics on any input.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub mod instance_types;
pub mod json;
pub mod names;
pub mod previous_references;
pub mod quantity;

mod answer;
mod operation;

pub use answer::{
    Aggregation, Answer, Change, Component, Dependency, Health, NodeClaim, PatchOp, Replicas, Requirements, StatusItem,
};
pub use operation::{Description, Gvk, Implemented, Operation, Target, UnknownOperation};
pub use quantity::Quantity;
