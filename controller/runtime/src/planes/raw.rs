//! What a watch yields: any JSON object that has a name.
//!
//! Invariant: decoding fails only for what is no JSON object. kube ends a whole list for one object that does not decode;
//! here such an object harms itself only (design.md 7.1).

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use popcell_core::object::Object;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// An object, or why it cannot be read. `METADATA`: only its metadata is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Raw<const METADATA: bool> {
    /// Name, namespace and version always; all of it where the object can be read.
    address: ObjectMeta,
    pub(crate) object: Result<Box<Object>, String>,
}

impl<const METADATA: bool> Raw<METADATA> {
    pub(crate) fn namespace(&self) -> &str {
        self.address.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.address.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> &str {
        self.address.resource_version.as_deref().unwrap_or_default()
    }
}

impl<const METADATA: bool> Raw<METADATA> {
    /// Throws away all but address, uid, versions and these fields.
    pub(crate) fn keep(&mut self, pointers: &[&str]) {
        let Ok(object) = &mut self.object else { return };
        let whole = std::mem::replace(&mut object.data, json!({}));
        for pointer in pointers {
            if let Some(value) = whole.pointer(pointer) {
                put(&mut object.data, pointer, value.clone());
            }
        }
        let metadata = &mut object.metadata;
        (metadata.labels, metadata.annotations) = (None, None);
        (metadata.owner_references, metadata.finalizers) = (None, None);
    }
}

/// Puts a value where a JSON pointer without escapes says; parents are made.
fn put(root: &mut Value, pointer: &str, value: Value) {
    let mut place = root;
    for part in pointer.split('/').skip(1) {
        let Value::Object(fields) = place else { return };
        place = fields.entry(part).or_insert_with(|| json!({}));
    }
    *place = value;
}

impl<'de, const METADATA: bool> Deserialize<'de> for Raw<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        // The largest part of many objects, and nobody here reads it.
        if let Some(metadata) = value.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let address = ObjectMeta {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            resource_version: text("/metadata/resourceVersion"),
            ..ObjectMeta::default()
        };
        let object = serde_json::from_value(value).map_err(|error| error.to_string());
        Ok(Self { address, object })
    }
}

impl<const METADATA: bool> Resource for Raw<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        METADATA
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.as_ref().map_or(&self.address, |object| &object.metadata)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object
            .as_mut()
            .map_or(&mut self.address, |object| &mut object.metadata)
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectList;
    use popcell_core::object::Fields;

    use super::*;

    #[test]
    fn c02_one_unreadable_object_leaves_the_others_of_its_list() {
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "7" },
            "items": [
                { "metadata": { "name": "good", "managedFields": [{ "manager": "x" }] }, "spec": { "unknown": [1, null] } },
                { "metadata": { "name": "bad", "namespace": "n", "labels": "no map" } },
                { "spec": 3 },
            ],
        });
        let list: ObjectList<Raw<false>> = serde_json::from_value(list).unwrap();
        let [good, bad, bare] = list.items.as_slice() else {
            panic!("{list:?}")
        };
        let object = good.object.as_ref().unwrap();
        assert_eq!(object.at("/spec/unknown"), Some(&json!([1, null])));
        assert_eq!(object.metadata.managed_fields, None);
        assert_eq!((bad.namespace(), bad.name()), ("n", "bad"));
        assert!(bad.object.as_ref().unwrap_err().contains("map"), "{:?}", bad.object);
        assert_eq!(bare.name(), "");
    }
}
