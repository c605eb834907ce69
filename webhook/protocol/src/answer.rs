//! Answers, before they are written: the words of the contract, with the text of a module kept as it came. What is in them was
//! checked before: numbers of replicas fit 32 bits and are not negative, amounts are Kubernetes quantities.

use serde_json::value::RawValue;

/// One JSON value, as text.
type Text = Box<RawValue>;

/// The answer to one request.
pub type Answer = popcell_contract::Answer<Text, String>;
/// The answer to InterpretReplica.
pub type Replicas = popcell_contract::Replicas<Text, String>;
/// What one replica needs (work/v1alpha2 `ReplicaRequirements`).
pub type Requirements = popcell_contract::Requirements<Text, String>;
/// Claims on nodes (work/v1alpha2 `NodeClaim`).
pub type NodeClaim = popcell_contract::NodeClaim<Text>;
/// One part of an object with several pod templates (work/v1alpha2 `Component`).
pub type Component = popcell_contract::Component<Text, String>;
/// An object that goes wherever this one goes (config/v1alpha1 `DependentObjectReference`).
pub type Dependency = popcell_contract::Dependency<Text>;
/// What to do with the object. An empty list of steps leaves it as it is, too.
pub type Change = popcell_contract::Change<Text>;
/// The answer to AggregateStatus.
pub type Aggregation = popcell_contract::Aggregation<Text>;
/// One step of a JSON patch (RFC 6902).
pub type PatchOp = popcell_contract::PatchOp<Text>;

/// Why there is no answer: `successful: false` with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Karmada only prints it. Chosen like an HTTP status.
    pub code: u16,
    /// One line; ends in Karmada's events.
    pub message: String,
}
