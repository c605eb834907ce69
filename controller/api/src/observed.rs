//! Reading objects of other owners: what is absent, null or of a newer release must not make an object unreadable.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize};

/// A status of which only the conditions are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConditionsOnly {
    /// Conditions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Vec<ObservedCondition>,
}

/// A condition of an object of another owner. All but the type may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`; empty when it is not said.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    /// Cause, for programs.
    #[serde(default, deserialize_with = "null_as_default")]
    pub reason: String,
    /// Details for people.
    #[serde(default, deserialize_with = "null_as_default")]
    pub message: String,
    /// Generation of the object that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Go writes an empty list or map as null where its field is not marked `omitempty`.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_with_nothing_but_its_type_is_read() {
        let bare: ObservedCondition = serde_json::from_value(json!({ "type": "Available" })).unwrap();
        assert_eq!(bare.type_, "Available");
        let nulls = json!({ "type": "Available", "status": null, "message": null, "lastTransitionTime": null, "x": 1 });
        assert_eq!(serde_json::from_value::<ObservedCondition>(nulls).unwrap(), bare);
    }
}
