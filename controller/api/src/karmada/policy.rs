//! PropagationPolicy (Karmada's pkg/apis/policy/v1alpha1/propagation_types.go).
//!
//! Policies are compared whole, so that an edit by hand is seen whatever it adds: every level keeps the fields that
//! popcell does not know.

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::object::{NotUsed, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::observed::null_as_default;

/// An existing object in the member that Karmada does not manage is left alone.
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
}
