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
mod decode;
mod depth;
mod encode;
mod operation;
mod request;
mod uid;

pub use answer::{Answer, Component, Dependency, NodeClaim, PatchOp, Refusal, Requirements};
pub use decode::{DecodeError, decode};
pub use depth::{MAX_DEPTH, too_deep, within_depth, within_levels};
pub use encode::encode;
pub use operation::{Operation, UnknownOperation};
pub use request::{Gvk, Health, Request, StatusItem};
pub use uid::extract_uid;

/// The `apiVersion` of requests and answers.
pub const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The `kind` of requests and answers.
pub const KIND: &str = "ResourceInterpreterContext";
