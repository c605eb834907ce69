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

mod interpreter;
mod json;
mod object;

pub use interpreter::{Error, Interpreter, Result};
pub use json::{Fields, Json, MAX_DEPTH};
pub use module::ModuleDef;
pub use object::Object;
pub use popcell_contract::{Operation, UnknownOperation, names, quantity};
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

/// The words of the contract as a module's author sees them: JSON is [`Json`], an amount is a [`Quantity`].
pub mod types {
    pub use popcell_contract::{Description, Gvk, Health, Implemented, Target};

    use crate::{Json, Quantity};

    /// What one member cluster reported (Karmada's work/v1alpha2 AggregatedStatusItem).
    pub type StatusItem = popcell_contract::StatusItem<Json>;
    /// How many replicas an object asks for, and what one of them needs.
    pub type Replicas = popcell_contract::Replicas<Json, Quantity>;
    /// What one replica needs (Karmada's ReplicaRequirements).
    pub type Requirements = popcell_contract::Requirements<Json, Quantity>;
    /// Claims on nodes (Karmada's NodeClaim).
    pub type NodeClaim = popcell_contract::NodeClaim<Json>;
    /// One part of an object with several pod templates.
    pub type Component = popcell_contract::Component<Json, Quantity>;
    /// An object that has to go wherever this one goes. A name wins over a selector.
    pub type Dependency = popcell_contract::Dependency<Json>;
    /// One step of a JSON patch (RFC 6902). Parents exist or are added before.
    pub type PatchOp = popcell_contract::PatchOp<Json>;
    /// What to do with the object that was given.
    pub type Change = popcell_contract::Change<Json>;
    /// What AggregateStatus makes of the object, and how many parts were skipped ([`Object::leave_out`]).
    ///
    /// [`Object::leave_out`]: crate::Object::leave_out
    pub type Aggregation = popcell_contract::Aggregation<Json>;
    /// The answer to one operation.
    pub type Output = popcell_contract::Answer<Json, Quantity>;
}
