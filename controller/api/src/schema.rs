//! What the derive cannot say about a schema: merge keys, immutable fields, conditions with their checks, quantities.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A list with one item for each `name`, merged item by item by server-side apply.
pub(crate) fn keyed_by_name(list: &mut Schema) {
    keyed_by(list, "name");
}

fn keyed_by(list: &mut Schema, key: &str) {
    list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    list.insert("x-kubernetes-list-map-keys".to_owned(), json!([key]));
}

/// The value of `x-kubernetes-validations` for a field that never changes.
pub(crate) fn immutable(field: &str) -> Value {
    json!([{
        "rule": "self == oldSelf",
        "message": format!("{field} is immutable: create another WorkloadDeployment"),
    }])
}

/// An object of which nothing is known.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Conditions, one for each type, with the checks of metav1.Condition, which the Kubernetes types carry without.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    let mut list = json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed."
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Details for people; may be empty."
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "Generation of the object on this plane that the condition speaks of."
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Cause of the last change, for programs."
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds."
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "What it is about; one condition for each type."
                }
            }
        }
    });
    keyed_by(&mut list, "type");
    list
}

/// Amounts by resource name, such as `cpu` or `memory`.
pub type Quantities = BTreeMap<String, Quantity>;

/// What Kubernetes accepts as a quantity written as a string (k8s.io/apimachinery, pkg/api/resource).
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// One quantity. The schema that comes with the Kubernetes types checks nothing: this one refuses `lots`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "pattern": PATTERN, "x-kubernetes-int-or-string": true })
}

/// A quantity above 0 and at most `most`.
pub(crate) fn positive_quantity(_: &mut SchemaGenerator, most: &str) -> Schema {
    let compared = |with: &str, sign: &str| format!("quantity(string(self)).compareTo(quantity('{with}')) {sign} 0");
    json_schema!({
        "pattern": PATTERN,
        "x-kubernetes-int-or-string": true,
        "maxLength": 32,
        "x-kubernetes-validations": [
            { "rule": compared("0", ">"), "message": "must be above 0" },
            { "rule": compared(most, "<="), "message": format!("must be at most {most}") },
        ],
    })
}

/// A map of quantities.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity(generator) })
}
