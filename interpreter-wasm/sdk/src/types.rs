//! The words of the contract as a module's author sees them: JSON is [`Json`], an amount is a [`Quantity`].

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
