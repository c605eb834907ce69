//! ResourceBinding (Karmada's pkg/apis/work/v1alpha2/binding_types.go). Only read; other fields are ignored.

use kube::core::object::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::observed::{ObservedCondition, null_as_default};

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
}
