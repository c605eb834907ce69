//! Cluster (Karmada's pkg/apis/cluster/v1alpha1/types.go). Fields that popcell does not read are ignored.

use kube::core::object::Object;
use serde::{Deserialize, Serialize};

use crate::observed::ConditionsOnly;

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
