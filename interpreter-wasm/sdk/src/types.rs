//! The small fixed parts of questions and answers. Mirrors the records of the interface text.

use std::collections::BTreeMap;

use crate::{Json, Operation, Quantity};

/// The kind of an object. The core group is the empty string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// API group.
    pub group: String,
    /// API version inside the group.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// The kind of `api_version` (`group/version`, or `version` for the core group) and `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl std::fmt::Display for Gvk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// An operation that a module implements for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Implemented {
    /// The operation.
    pub operation: Operation,
    /// Whether it belongs into the webhook's rules unless the operator says otherwise.
    pub register: bool,
}

/// One kind and what a module can do for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Gvk,
    /// The operations that are written.
    pub operations: Vec<Implemented>,
}

/// Who a module is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Package name of the module's crate.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its kinds.
    pub targets: Vec<Target>,
}

/// What Karmada knows of a member cluster's application health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// InterpretHealth said yes.
    Healthy,
    /// InterpretHealth said no.
    Unhealthy,
    /// It could not say, or nothing was applied yet.
    Unknown,
}

/// What one member cluster reported (Karmada's work/v1alpha2 AggregatedStatusItem).
#[derive(Debug, Clone, PartialEq)]
pub struct StatusItem {
    /// Name of the Cluster object.
    pub cluster_name: String,
    /// What InterpretStatus answered there; absent while nothing was collected.
    pub status: Option<Json>,
    /// Whether the object was applied to the cluster.
    pub applied: bool,
    /// Why it was not.
    pub applied_message: String,
    /// Health there; absent in old data.
    pub health: Option<Health>,
}

/// How many replicas an object asks for, and what one of them needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replicas {
    /// Number of replicas; the host refuses what does not fit 0..=i32::MAX.
    pub replicas: i64,
    /// What one replica needs; without it Karmada schedules by replicas alone.
    pub requirements: Option<Requirements>,
}

impl From<i64> for Replicas {
    fn from(replicas: i64) -> Self {
        Self {
            replicas,
            requirements: None,
        }
    }
}

/// What one replica needs (Karmada's ReplicaRequirements).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requirements {
    /// Claims on nodes.
    pub node_claim: Option<NodeClaim>,
    /// Amount of each resource by its name.
    pub resource_request: BTreeMap<String, Quantity>,
    /// Namespace of the pods.
    pub namespace: Option<String>,
    /// Priority class of the pods.
    pub priority_class_name: Option<String>,
}

/// Claims on nodes (Karmada's NodeClaim).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeClaim {
    /// A core/v1 NodeSelector.
    pub hard_node_affinity: Option<Json>,
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// core/v1 Tolerations.
    pub tolerations: Vec<Json>,
}

/// One part of an object with several pod templates.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Component {
    /// Unique in the object, at most 32 characters.
    pub name: String,
    /// Number of replicas of this part.
    pub replicas: i64,
    /// What one replica needs.
    pub requirements: Option<Requirements>,
}

/// An object that has to go wherever this one goes. A name wins over a selector.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dependency {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; absent for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Name, or absent where `label_selector` chooses.
    pub name: Option<String>,
    /// A meta/v1 LabelSelector.
    pub label_selector: Option<Json>,
}

/// One step of a JSON patch (RFC 6902). Parents exist or are added before.
#[derive(Debug, Clone, PartialEq)]
pub enum PatchOp {
    /// Sets a member that is absent.
    Add {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Json,
    },
    /// Sets a member that is there.
    Replace {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Json,
    },
    /// Takes a member away.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

impl PatchOp {
    /// Where the step works, as a JSON pointer.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Replace { path, .. } | Self::Remove { path } => path,
        }
    }
}
