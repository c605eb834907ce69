//! What is reported by member clusters, and the answers to each operation. `J` is how one JSON value is held, `Q` how an
//! amount is: see the crate's documentation.
//!
//! With the feature `serde` they are written in Karmada's JSON, an empty part not at all.

use std::collections::BTreeMap;

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

impl Health {
    /// Karmada's spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }

    /// What Karmada spells exactly like this.
    pub fn from_wire(text: &str) -> Option<Self> {
        [Self::Healthy, Self::Unhealthy, Self::Unknown]
            .into_iter()
            .find(|health| health.as_str() == text)
    }
}

/// What one member cluster reported (Karmada's work/v1alpha2 AggregatedStatusItem). `T` is how a text is held.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusItem<J, T = String> {
    /// Name of the Cluster object.
    pub cluster_name: T,
    /// What InterpretStatus answered there; absent while nothing was collected.
    pub status: Option<J>,
    /// Whether the object was applied to the cluster.
    pub applied: bool,
    /// Why it was not.
    pub applied_message: T,
    /// Health there; absent in data of old Karmada versions.
    pub health: Option<Health>,
}

/// How many replicas an object asks for, and what one of them needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replicas<J, Q> {
    /// Number of replicas; the host refuses what does not fit 0..=i32::MAX.
    pub replicas: i64,
    /// What one replica needs; without it Karmada schedules by replicas alone.
    pub requirements: Option<Requirements<J, Q>>,
}

impl<J, Q> From<i64> for Replicas<J, Q> {
    fn from(replicas: i64) -> Self {
        Self {
            replicas,
            requirements: None,
        }
    }
}

/// What one replica needs (Karmada's ReplicaRequirements).
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
pub struct Requirements<J, Q> {
    /// Claims on nodes.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub node_claim: Option<NodeClaim<J>>,
    /// Amount of each resource by its name.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BTreeMap::is_empty"))]
    pub resource_request: BTreeMap<String, Q>,
    /// Namespace of the pods. Karmada has no such field for components.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub namespace: Option<String>,
    /// Priority class of the pods.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub priority_class_name: Option<String>,
}

/// Claims on nodes (Karmada's NodeClaim).
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
pub struct NodeClaim<J> {
    /// A core/v1 NodeSelector.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub hard_node_affinity: Option<J>,
    /// Labels that the node must have.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BTreeMap::is_empty"))]
    pub node_selector: BTreeMap<String, String>,
    /// core/v1 Tolerations.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub tolerations: Vec<J>,
}

/// One part of an object with several pod templates.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(bound(serialize = "J: Clone + serde::Serialize, Q: Clone + serde::Serialize"))
)]
pub struct Component<J, Q> {
    /// Unique in the object, at most 32 characters.
    pub name: String,
    /// Number of replicas of this part; the host refuses what does not fit 0..=i32::MAX.
    pub replicas: i64,
    /// What one replica needs.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "replicaRequirements",
            serialize_with = "without_namespace",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub requirements: Option<Requirements<J, Q>>,
}

/// Karmada has no such field for components.
#[cfg(feature = "serde")]
#[expect(clippy::ref_option, reason = "serde passes the field")]
fn without_namespace<J, Q, S>(requirements: &Option<Requirements<J, Q>>, serializer: S) -> Result<S::Ok, S::Error>
where
    J: Clone + serde::Serialize,
    Q: Clone + serde::Serialize,
    S: serde::Serializer,
{
    let requirements = requirements.clone().map(|requirements| Requirements {
        namespace: None,
        ..requirements
    });
    serde::Serialize::serialize(&requirements, serializer)
}

/// An object that has to go wherever this one goes. A name wins over a selector.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
pub struct Dependency<J> {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; absent for cluster-scoped kinds.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub namespace: Option<String>,
    /// Name, or absent where `label_selector` chooses.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub name: Option<String>,
    /// A meta/v1 LabelSelector.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub label_selector: Option<J>,
}

/// One step of a JSON patch (RFC 6902). Parents exist or are added before.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "op", rename_all = "lowercase")
)]
pub enum PatchOp<J> {
    /// Sets a member that is absent.
    Add {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: J,
    },
    /// Sets a member that is there.
    Replace {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: J,
    },
    /// Takes a member away.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

impl<J> PatchOp<J> {
    /// Where the step works, as a JSON pointer.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Replace { path, .. } | Self::Remove { path } => path,
        }
    }
}

/// What to do with the object that was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Change<J> {
    /// Nothing.
    Unchanged,
    /// These steps, in this order. Never empty.
    Patch(Vec<PatchOp<J>>),
}

/// What AggregateStatus makes of the object.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregation<J> {
    /// What to do with the object.
    pub change: Change<J>,
    /// How many parts of the reported statuses were skipped. Karmada's protocol has no place for it.
    pub left_out: u32,
}

/// The answer to one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<J, Q> {
    /// InterpretReplica.
    Replicas(Replicas<J, Q>),
    /// InterpretComponent.
    Components(Vec<Component<J, Q>>),
    /// ReviseReplica and Retain. Also AggregateStatus, from a caller that cannot report what was skipped: Karmada's
    /// protocol has no place for it.
    Change(Change<J>),
    /// AggregateStatus.
    Aggregation(Aggregation<J>),
    /// InterpretStatus: a JSON object.
    Status(J),
    /// InterpretHealth.
    Health(bool),
    /// InterpretDependency.
    Dependencies(Vec<Dependency<J>>),
}

impl<J, Q> Answer<J, Q> {
    /// What to do with the object, where the operation may change it.
    pub fn change(&self) -> Option<&Change<J>> {
        match self {
            Self::Change(change) | Self::Aggregation(Aggregation { change, .. }) => Some(change),
            _ => None,
        }
    }
}
