//! What the derive cannot say about a schema: merge keys and immutable fields.

use schemars::Schema;
use serde_json::{Value, json};

/// A list with one item for each `name`, merged item by item by server-side apply.
pub(crate) fn keyed_by_name(list: &mut Schema) {
    keyed_by(list, "name");
}

/// A list with one item for each `type`, merged item by item by server-side apply.
pub(crate) fn keyed_by_type(list: &mut Schema) {
    keyed_by(list, "type");
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
