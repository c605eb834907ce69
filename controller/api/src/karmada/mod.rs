//! Types of Karmada v1.18: the fields that popcell reads or writes.

mod binding;
mod cluster;
mod policy;

pub use binding::{
    AggregatedStatusItem, BindingTarget, NO_CLUSTER_FIT, ResourceBinding, ResourceBindingSpec, ResourceBindingStatus,
    SCHEDULED, TargetCluster,
};
pub use cluster::{Cluster, ClusterSpec};
pub use policy::{
    CONFLICT_RESOLUTION_ABORT, ClusterAffinity, Placement, PropagationPolicy, PropagationPolicySpec, ResourceSelector,
    SPREAD_BY_CLUSTER, SpreadConstraint,
};
