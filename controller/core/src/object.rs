//! Objects as they are kept: typed metadata, the rest as JSON (design.md 7.1).
//!
//! A field that is absent, null or of another type reads as "not there". So one object that cannot be read harms itself
//! only, and specs and statuses pass each hop whole.

use k8s_openapi::jiff::Timestamp;
pub use kube::core::DynamicObject as Object;
use popcell_api::labels;
use serde_json::Value;

/// Views of single fields. Readers of text give `""` where nothing is there: no name, uid or version is ever empty.
pub trait Fields {
    /// `metadata.name`.
    fn name(&self) -> &str;
    /// `metadata.namespace`; empty for objects of the cluster.
    fn namespace(&self) -> &str;
    /// `metadata.uid`; empty only before the object was created.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// `metadata.generation`.
    fn generation(&self) -> Option<i64>;
    /// A label.
    fn label(&self, key: &str) -> Option<&str>;
    /// An annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Whether `metadata.deletionTimestamp` is set.
    fn deleting(&self) -> bool;
    /// Whether it carries the finalizer.
    fn has_finalizer(&self, finalizer: &str) -> bool;
    /// Whether it carries our marker (design.md 7.6): only such objects are ever deleted by us in a remote plane.
    fn marked(&self) -> bool;
    /// When it was created.
    fn created(&self) -> Option<Timestamp>;
    /// A value outside metadata by JSON pointer; null reads as absent.
    fn at(&self, pointer: &str) -> Option<&Value>;
    /// A text outside metadata.
    fn text(&self, pointer: &str) -> Option<&str>;
    /// An integer outside metadata.
    fn int(&self, pointer: &str) -> Option<i64>;
    /// A list outside metadata; empty where there is none.
    fn items(&self, pointer: &str) -> &[Value];
}

impl Fields for Object {
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata.finalizers.iter().flatten().any(|one| one == finalizer)
    }

    fn marked(&self) -> bool {
        self.label(labels::MANAGED_BY) == Some(labels::MANAGED_BY_POPCELL)
    }

    fn created(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.data.pointer(pointer).filter(|value| !value.is_null())
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    fn int(&self, pointer: &str) -> Option<i64> {
        self.at(pointer)?.as_i64()
    }

    fn items(&self, pointer: &str) -> &[Value] {
        self.at(pointer)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c15_what_is_absent_null_or_of_another_type_is_not_there() {
        for rest in [
            json!({}),
            json!({ "spec": null, "status": null }),
            json!({ "spec": { "cityCode": 7, "n": "7", "list": {} } }),
            json!({ "spec": [], "status": "x" }),
        ] {
            let mut object: Object = serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
            object.data = rest;
            assert_eq!(object.text("/spec/cityCode"), None);
            assert_eq!(object.int("/spec/n"), None);
            assert!(object.items("/spec/list").is_empty());
            assert_eq!((object.uid(), object.namespace(), object.deleting()), ("", "", false));
        }
    }
}
