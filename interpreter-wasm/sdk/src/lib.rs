//! What the author of an interpreter module depends on.
//!
//! A module says what Karmada has to know about one or a few kinds: how many replicas an object asks for, whether it is
//! healthy, how the statuses of several clusters become one. The whole of a module:
//!
//! ```
//! use popcell_sdk::prelude::*;
//!
//! struct Widget;
//!
//! #[interpreter(api_version = "example.io/v1", kind = "Widget")]
//! impl Interpreter for Widget {
//!     fn health(widget: &Object) -> Result<bool> {
//!         let ready = widget.int("/status/readyReplicas")?.unwrap_or(0);
//!         Ok(ready >= widget.int("/spec/replicas")?.unwrap_or(1))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The same code is unit-tested natively and runs as a WebAssembly component in the webhook. Nothing here panics on any
//! input, reads a clock or allocates per node of an object: in WebAssembly a panic ends the instance.

#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub mod aggregation;
pub mod diff;
pub mod generation;
#[cfg(target_family = "wasm")]
pub mod guest;
pub mod module;
pub mod pod;
#[cfg(feature = "test")]
pub mod test;
pub mod types;

mod error;
mod interpreter;
mod json;
mod object;

pub use error::{Error, Result};
pub use interpreter::Interpreter;
pub use json::{Fields, Json, MAX_DEPTH};
pub use module::ModuleDef;
pub use object::Object;
pub use popcell_contract::{Operation, UnknownOperation, quantity};
pub use popcell_sdk_macros::interpreter;
pub use quantity::Quantity;
pub use types::{Component, Dependency, Health, NodeClaim, Replicas, Requirements, StatusItem};

/// What a module needs: `use popcell_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Component, Dependency, Error, Health, Interpreter, Json, NodeClaim, Object, Quantity, Replicas, Requirements,
        Result, StatusItem, export_interpreters, interpreter,
    };
}
