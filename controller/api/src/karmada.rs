//! Types of Karmada v1.18: the fields that popcell reads or writes. Others of Cluster and ResourceBinding, which are only
//! read, are ignored.
//!
//! Policies are compared whole, so that an edit by hand is seen whatever it adds: every level keeps the fields that
//! popcell does not know.

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::object::{NotUsed, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::observed::{ConditionsOnly, ObservedCondition, null_as_default};

// PropagationPolicy (Karmada's pkg/apis/policy/v1alpha1/propagation_types.go).

/// An existing object in the member that Karmada does not manage is not changed.
pub const CONFLICT_RESOLUTION_ABORT: &str = "Abort";
/// A spread over clusters.
pub const SPREAD_BY_CLUSTER: &str = "cluster";

/// Which objects of a namespace go to which clusters. It has no status.
pub type PropagationPolicy = Object<PropagationPolicySpec, NotUsed>;

/// Which objects go to which clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PropagationPolicySpec {
    /// The objects.
    #[serde(default, deserialize_with = "null_as_default")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// The clusters.
    #[serde(default, deserialize_with = "null_as_default")]
    pub placement: Placement,
    /// What happens to an object in the member that Karmada does not manage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_resolution: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// The policy's own, which Karmada's webhook fills in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Which clusters are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Clusters that may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Taints that do not matter.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_tolerations: Vec<Toleration>,
    /// How many are chosen.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Clusters that may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// Labels of the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How many groups of clusters are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// What makes a group; see [`SPREAD_BY_CLUSTER`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_by_field: Option<String>,
    /// At least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_groups: Option<i64>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_groups: Option<i64>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

// ResourceBinding (Karmada's pkg/apis/work/v1alpha2/binding_types.go).

/// Condition: Karmada has placed the object.
pub const SCHEDULED: &str = "Scheduled";
/// Reason of [`SCHEDULED`] = False: no cluster fits. Karmada then takes all clusters out of the binding.
pub const NO_CLUSTER_FIT: &str = "NoClusterFit";

/// Where Karmada has placed an object, and what the clusters say of it.
pub type ResourceBinding = Object<ResourceBindingSpec, ResourceBindingStatus>;

/// Where Karmada has placed an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceBindingSpec {
    /// The object.
    #[serde(default, deserialize_with = "null_as_default")]
    pub resource: BindingTarget,
    /// The clusters; to be believed only when the scheduler has seen this generation
    /// ([`ResourceBindingStatus::scheduler_observed_generation`]).
    #[serde(default, deserialize_with = "null_as_default")]
    pub clusters: Vec<TargetCluster>,
}

/// The object that a binding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingTarget {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Namespace.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Uid.
    #[serde(default)]
    pub uid: String,
}

/// A cluster that is to have the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetCluster {
    /// Name of the Cluster.
    #[serde(default)]
    pub name: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingStatus {
    /// Generation of the binding that the scheduler has dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_observed_generation: Option<i64>,
    /// Conditions; see [`SCHEDULED`].
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Vec<ObservedCondition>,
    /// What each cluster says.
    #[serde(default, deserialize_with = "null_as_default")]
    pub aggregated_status: Vec<AggregatedStatusItem>,
}

/// What one cluster says of its copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// Name of the Cluster.
    #[serde(default)]
    pub cluster_name: String,
    /// The status that the interpreter took from the copy, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
    /// Whether the copy was written; absent means no.
    #[serde(default)]
    pub applied: bool,
    /// Why it was not.
    #[serde(default)]
    pub applied_message: String,
    /// `Healthy`, `Unhealthy` or `Unknown`; empty when it is not said.
    #[serde(default)]
    pub health: String,
}

// Cluster (Karmada's pkg/apis/cluster/v1alpha1/types.go).

/// A member. Its city is the label [`crate::labels::CITY_CODE`]; its condition `Ready` says whether it answers.
pub type Cluster = Object<ClusterSpec, ConditionsOnly>;

/// A member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Uid of the member's kube-system namespace; empty until Karmada has looked.
    #[serde(default)]
    pub id: String,
    /// `Push` or `Pull`.
    #[serde(default)]
    pub sync_mode: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec() -> Value {
        json!({
            "resourceSelectors": [{
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": "WorkloadDeployment",
                "labelSelector": { "matchLabels": { "topology.datum.net/city-code": "DFW" } },
            }],
            "placement": {
                "clusterAffinity": { "labelSelector": { "matchLabels": { "topology.datum.net/city-code": "DFW" } } },
                "clusterTolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
                "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
            },
            "conflictResolution": "Abort",
        })
    }

    #[test]
    fn a_citys_policy_is_written_as_it_is_read() {
        let typed: PropagationPolicySpec = serde_json::from_value(spec()).unwrap();
        assert!(typed.rest.is_empty() && typed.placement.rest.is_empty());
        assert_eq!(serde_json::to_value(&typed).unwrap(), spec());
    }

    #[test]
    fn an_edit_by_hand_is_seen_at_every_level() {
        let ours: PropagationPolicySpec = serde_json::from_value(spec()).unwrap();
        for parent in [
            "",
            "/resourceSelectors/0",
            "/placement",
            "/placement/clusterAffinity",
            "/placement/spreadConstraints/0",
        ] {
            let mut edited = spec();
            edited.pointer_mut(parent).unwrap()["byHand"] = json!({ "a": [1] });
            let edited: PropagationPolicySpec = serde_json::from_value(edited).unwrap();
            assert_ne!(edited, ours, "{parent}");
        }
    }

    #[test]
    fn a_placed_and_an_unplaced_binding_are_read() {
        let placed: ResourceBinding = serde_json::from_value(json!({
            "metadata": { "name": "web-us-dfw-workloaddeployment", "generation": 2 },
            "spec": {
                "resource": { "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
                    "namespace": "ns-1", "name": "web-us-dfw", "uid": "u", "resourceVersion": "7" },
                "clusters": [{ "name": "dfw", "replicas": 2 }],
                "placement": {},
            },
            "status": {
                "schedulerObservedGeneration": 2,
                "aggregatedStatus": [{ "clusterName": "dfw", "applied": true, "health": "Healthy",
                    "status": { "generation": 3, "any": ["thing"] } }],
            },
        }))
        .unwrap();
        assert_eq!(placed.spec.clusters[0].name, "dfw");
        let status = placed.status.unwrap();
        assert_eq!(status.scheduler_observed_generation, Some(2));
        assert_eq!(
            status.aggregated_status[0].status,
            Some(json!({ "generation": 3, "any": ["thing"] }))
        );

        let unplaced: ResourceBinding =
            serde_json::from_value(json!({ "metadata": {}, "spec": { "clusters": null }, "status": {} })).unwrap();
        assert!(unplaced.spec.clusters.is_empty());
    }

    #[test]
    fn a_cluster_may_have_no_id_yet() {
        let cluster: Cluster = serde_json::from_value(json!({
            "metadata": { "name": "dfw" },
            "spec": { "syncMode": "Push", "apiEndpoint": "https://127.0.0.1", "resourceModels": [] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }], "kubernetesVersion": "v1.35.0" },
        }))
        .unwrap();
        assert_eq!(cluster.spec.id, "");
        assert_eq!(cluster.spec.sync_mode, "Push");
    }
}
