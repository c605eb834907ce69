//! Karmada's `ResourceInterpreterContext` (config.karmada.io/v1alpha1): requests in, answers out. No IO.
//!
//! Invariants:
//! - A Kubernetes object is never parsed here. It stays the text that the caller sent, so its numbers keep their digits.
//! - Decoding borrows from the body; what it allocates does not grow with the objects.
//! - Nothing here panics, whatever the bytes are.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod answer;
pub mod client;
mod request;
mod scan;

pub use answer::{
    Aggregation, Answer, Change, Component, Dependency, MAX_MESSAGE, NodeClaim, PatchOp, Refusal, Replicas,
    Requirements, encode, one_line,
};
pub use popcell_contract::json::{MAX_DEPTH, cut};
pub use popcell_contract::{Gvk, Health, Operation, UnknownOperation};
pub use request::{DecodeError, Request, StatusItem, decode};
pub use scan::{extract_uid, kind_name, too_deep, within_depth, within_levels};

/// The `apiVersion` of requests and answers.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The `kind` of requests and answers.
pub const KIND: &str = "ResourceInterpreterContext";
