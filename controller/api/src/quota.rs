//! Milo's quota system, group `quota.miloapis.com`: claims as popcell writes them, and reads them; other fields are ignored.

use serde::{Deserialize, Deserializer, Serialize};

/// API group.
pub const GROUP: &str = "quota.miloapis.com";
/// Version.
pub const VERSION: &str = "v1alpha1";

/// The condition of a claim: whether it is granted. A claim is born False/PendingEvaluation, which is no denial.
pub const GRANTED: &str = "Granted";

/// Resource type of the number of instances; each claim asks for one.
pub const INSTANCES: &str = "compute.datumapis.com/instances";
/// Resource type of processor time, in thousandths of a processor.
pub const VCPUS: &str = "compute.datumapis.com/vcpus";
/// Resource type of memory, in MiB.
pub const MEMORY: &str = "compute.datumapis.com/memory";

/// A share of a project's budget, for one Instance, in the project's own control plane; all of it or nothing is granted.
///
/// Both references are optional and may be empty objects: claims that others made are read as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClaimSpec {
    /// Whose budget it is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// Amounts, one for each resource type.
    #[serde(default, deserialize_with = "null_as_default")]
    pub requests: Vec<ResourceRequest>,
    /// What it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<ObjectReference>,
}

/// Identity of an object; each part is empty where it is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// An amount of one resource type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequest {
    /// Resource type.
    pub resource_type: String,
    /// Amount, in the base unit of the resource type; never negative.
    pub amount: i64,
}

/// Go writes an empty list as null where its field is not marked `omitempty`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_manager;
    use serde_json::json;

    #[test]
    fn references_of_a_claim_may_be_absent_null_or_empty() {
        for spec in [
            json!({}),
            json!({ "requests": null, "resourceRef": null, "consumerRef": null }),
            json!({ "requests": [], "resourceRef": {}, "consumerRef": {} }),
        ] {
            let spec: ResourceClaimSpec = serde_json::from_value(spec).unwrap();
            let of_nobody = ObjectReference::default();
            assert_eq!(spec.consumer_ref.unwrap_or_default(), of_nobody);
            assert_eq!(spec.resource_ref.unwrap_or_default(), of_nobody);
        }
    }

    #[test]
    fn a_claim_is_written_as_the_quota_system_takes_it() {
        let project = ObjectReference {
            api_group: resource_manager::GROUP.to_owned(),
            kind: resource_manager::PROJECT_KIND.to_owned(),
            name: "p1".to_owned(),
            namespace: String::new(),
        };
        let request = |resource_type: &str, amount| ResourceRequest {
            resource_type: resource_type.to_owned(),
            amount,
        };
        let spec = ResourceClaimSpec {
            consumer_ref: Some(project.clone()),
            requests: vec![request(INSTANCES, 1), request(VCPUS, 1000), request(MEMORY, 2048)],
            resource_ref: Some(project),
        };
        let project = json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p1" });
        assert_eq!(
            serde_json::to_value(spec).unwrap(),
            json!({
                "consumerRef": project,
                "requests": [
                    { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
                    { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
                    { "resourceType": "compute.datumapis.com/memory", "amount": 2048 },
                ],
                "resourceRef": project,
            })
        );
    }
}
