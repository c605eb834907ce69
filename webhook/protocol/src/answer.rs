//! Answers, before they are written.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To InterpretReplica.
    Replicas {
        /// Never negative.
        replicas: i32,
        /// What one replica needs.
        requirements: Option<Requirements>,
    },
    /// To InterpretComponent.
    Components(Vec<Component>),
    /// To ReviseReplica and Retain. `None` and an empty list both leave the object as it is.
    Patch(Option<Vec<PatchOp>>),
    /// To AggregateStatus.
    Aggregation {
        /// As in [`Answer::Patch`].
        patch: Option<Vec<PatchOp>>,
        /// How many parts of the reported statuses were left out. Not written: Karmada has no place for it.
        left_out: u32,
    },
    /// To InterpretStatus: a JSON object.
    Status(Box<RawValue>),
    /// To InterpretHealth.
    Health(bool),
    /// To InterpretDependency.
    Dependencies(Vec<Dependency>),
}

/// What one replica needs (work/v1alpha2 `ReplicaRequirements`).
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    /// Claims on nodes.
    pub node_claim: Option<NodeClaim>,
    /// Resource name to Kubernetes quantity.
    pub resource_request: BTreeMap<String, String>,
    /// Namespace of the object. Karmada has no such field for components, and it is not written there.
    pub namespace: Option<String>,
    /// Name of a PriorityClass.
    pub priority_class_name: Option<String>,
}

/// Claims on nodes (work/v1alpha2 `NodeClaim`).
#[derive(Clone, Debug, Default)]
pub struct NodeClaim {
    /// A core/v1 NodeSelector.
    pub hard_node_affinity: Option<Box<RawValue>>,
    /// Node labels.
    pub node_selector: BTreeMap<String, String>,
    /// core/v1 Tolerations.
    pub tolerations: Vec<Box<RawValue>>,
}

/// One part of an object with several pod templates (work/v1alpha2 `Component`).
#[derive(Clone, Debug)]
pub struct Component {
    /// Unique within the object, at most 32 characters.
    pub name: String,
    /// Never negative.
    pub replicas: i32,
    /// What one replica needs.
    pub requirements: Option<Requirements>,
}

/// An object that goes wherever this one goes (config/v1alpha1 `DependentObjectReference`).
#[derive(Clone, Debug)]
pub struct Dependency {
    /// `group/version`, or `version` in the core group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Wins over the selector.
    pub name: Option<String>,
    /// A meta/v1 LabelSelector.
    pub label_selector: Option<Box<RawValue>>,
}

/// One step of a JSON patch (RFC 6902). `path` is a JSON pointer (RFC 6901).
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of RFC 6902")]
pub enum PatchOp {
    /// Sets a member, or inserts into an array.
    Add { path: String, value: Box<RawValue> },
    /// Sets what is there.
    Replace { path: String, value: Box<RawValue> },
    /// Takes away what is there.
    Remove { path: String },
}

impl PatchOp {
    /// The pointer that the step changes.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Replace { path, .. } | Self::Remove { path } => path,
        }
    }
}

/// Why there is no answer: `successful: false` with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Karmada only prints it. Chosen like an HTTP status.
    pub code: u16,
    /// One line; ends in Karmada's events.
    pub message: String,
}
