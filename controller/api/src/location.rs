//! References to Locations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of a Location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocationReference {
    /// Name of the Location.
    pub name: String,
    /// Namespace of the Location, on servers where Locations are namespaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
