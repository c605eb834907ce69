//! Amounts of resources in CRD schemas.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Amounts by resource name, such as `cpu` or `memory`.
pub type Quantities = BTreeMap<String, Quantity>;

/// What Kubernetes accepts as a quantity written as a string (k8s.io/apimachinery, pkg/api/resource).
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// One quantity. The schema that comes with the Kubernetes types checks nothing: this one refuses `lots`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "pattern": PATTERN, "x-kubernetes-int-or-string": true })
}

/// A map of quantities.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity(generator) })
}
