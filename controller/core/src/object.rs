//! Objects as they are kept: typed metadata, the rest as text until it is read ([`Data`]).
//!
//! A field that is absent, null or of another type reads as "not there". So one object that cannot be read harms itself
//! only, and specs and statuses pass each hop whole.

mod data;
mod metadata;
mod raw;
mod read;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use kube::core::{ApiResource, TypeMeta};
use popcell_api::kind::Kind;
use popcell_api::labels;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::limits::Excess;
use crate::limits::lookups;
pub use data::Data;
pub use metadata::Metadata;
pub use raw::{EventLine, List, ListMetadata, Listed, Raw, Unreadable};
pub use read::ReadError;

/// How many bytes of owners and finalizers are kept of an object that exceeds a limit.
const LISTED: usize = 16 * 1024;
/// How many of them, and of its lookups, where hardly anything is kept.
const STRIPPED: usize = 1024;

/// Any object of an API server.
///
/// A clone is cheap while nothing of it is changed, and shares nothing that was decoded by looking at the data.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// `apiVersion` and `kind`, where both are there.
    pub types: Option<TypeMeta>,
    /// `metadata`, without `managedFields` where it was read from a server.
    pub metadata: Metadata,
    /// Everything else.
    pub data: Data,
    excess: Option<Excess>,
    bytes: usize,
}

impl Object {
    /// An object of a kind that has a name only.
    pub fn new(name: &str, resource: &ApiResource) -> Self {
        Self {
            types: Some(TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            }),
            metadata: Metadata::from(ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            }),
            ..Self::default()
        }
    }

    /// With these fields beside its metadata.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Data::from(data);
        self
    }

    /// In a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.metadata.namespace = Some(namespace.to_owned());
        self
    }

    /// From the text that a server sent; the data stays text.
    ///
    /// # Errors
    /// It is no object, or its metadata has a field of a wrong type. How deeply the data nests is no error: see
    /// [`Object::excess`].
    pub fn read(text: &str) -> Result<Self, ReadError> {
        read::object(text)
    }

    /// Namespace, name and resourceVersion in a text that [`Object::read`] refuses, as far as they can be read.
    pub fn address_in(text: &str) -> [Option<String>; 3] {
        read::address(text)
    }

    /// The object with its data as text and nothing decoded, as it is kept.
    #[must_use]
    pub fn as_text(&self) -> Self {
        Self {
            data: self.data.as_text(),
            ..self.clone()
        }
    }

    /// The object with these fields beside its metadata only, by JSON pointers: looking at them decodes nothing else.
    #[must_use]
    pub fn only(&self, pointers: &[&str]) -> Self {
        Self {
            data: Data::from(self.data.part(pointers)),
            ..self.clone()
        }
    }

    /// Throws away all but address, uid, versions and these fields, by JSON pointers. What nests too deeply beside them is
    /// no trouble any more.
    pub fn keep(&mut self, pointers: &[&str]) {
        if matches!(self.excess, Some(Excess::Depth { .. })) && !self.data.is_deep(pointers) {
            self.excess = None;
        }
        self.data.keep(pointers);
        let metadata = &mut *self.metadata;
        (metadata.labels, metadata.annotations) = (None, None);
        (metadata.owner_references, metadata.finalizers) = (None, None);
        self.bytes = self.data.bytes();
    }

    /// Decodes these fields now, by JSON pointers: looking at them later decodes nothing.
    pub fn pick(&mut self, pointers: &'static [&'static str]) {
        self.data.pick(pointers);
    }

    /// Its owner references.
    pub fn owners(&self) -> &[OwnerReference] {
        self.metadata.owner_references.as_deref().unwrap_or_default()
    }

    /// The owner that is its controller.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owners().iter().find(|one| one.controller == Some(true))
    }

    /// The first of its owners of a kind.
    pub fn owner_of(&self, kind: Kind) -> Option<&OwnerReference> {
        self.owners().iter().find(|one| one.kind == kind.kind)
    }

    /// What it has too much of: such an object is not carried further, and nothing is deleted or replaced for what it does not
    /// show. Its data lacks fields that nest too deeply; of one that is too large, nothing but its [`lookups`] may be there.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// Says that it has too much of something, and keeps of it what that can be said with: spec and status where they are
    /// small, or else its [`lookups`] with or without its status; of its metadata what we read.
    ///
    /// # Errors
    /// Its owners and finalizers are more than can be kept: nothing is decided on it.
    pub fn exceeds(&mut self, excess: Excess, kind: Kind) -> Result<(), ReadError> {
        if excess.is_of_room() || self.excess.is_none() {
            self.excess = Some(excess);
        }
        let beside: [&[&str]; 4] = [&["/spec", "/status"], &["/status"], &["/spec"], &[]];
        let parts = beside.map(|fields| [lookups(kind), fields].concat());
        self.data.keep_largest(&parts, excess.kept_bytes());
        self.trim(LISTED)
    }

    /// Keeps of what exceeds a limit nothing but its [`lookups`], where they are short, and what says whose it is: less than
    /// 3 KiB.
    ///
    /// # Errors
    /// As those of [`Self::exceeds`], sooner.
    pub fn strip(&mut self, kind: Kind) -> Result<(), ReadError> {
        self.data.keep_largest(&[lookups(kind).to_vec()], STRIPPED);
        self.metadata.trim_to_least();
        self.trim(STRIPPED)
    }

    /// Keeps of its metadata what decisions read: it is never written.
    pub fn keep_read_only(&mut self) {
        self.metadata.trim();
        (self.metadata.owner_references, self.metadata.finalizers) = (None, None);
    }

    /// Throws away metadata that others may make as large as they like.
    fn trim(&mut self, limit: usize) -> Result<(), ReadError> {
        self.metadata.trim();
        let metadata = serde_json::to_string(&self.metadata).map_or(0, |text| text.len());
        self.bytes = metadata + self.data.bytes();
        match self.metadata.listed_bytes() {
            bytes if bytes > limit => Err(ReadError::Listed { bytes, limit }),
            _ => Ok(()),
        }
    }

    /// Whether two states of an object have the same spec. Of one that exceeds a limit the texts are compared, since a spec
    /// that nests too deeply is not decoded.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        let has_text = self.has_spec_text_of(other);
        has_text || self.excess.or(other.excess).is_none() && self.at("/spec") == other.at("/spec")
    }

    /// The same by their texts, for which nothing is decoded. A server writes what did not change as it did before.
    pub fn has_spec_text_of(&self, other: &Self) -> bool {
        let are_texts = self.data.is_text() && other.data.is_text();
        are_texts && self.data.text_of("spec") == other.data.text_of("spec")
    }

    /// The bytes that its data takes as text.
    pub fn data_bytes(&self) -> usize {
        self.data.bytes()
    }

    /// The bytes that a field takes as text; 0 where it is not there, or was changed.
    pub fn field_bytes(&self, field: &str) -> usize {
        self.data.text_of(field).map_or(0, str::len)
    }

    /// Its size in bytes of text without `managedFields`, as it is kept; 0 for one that was made here.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        (&self.types, &self.metadata, &self.data) == (&other.types, &other.metadata, &other.data)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(types) = &self.types {
            map.serialize_entry("apiVersion", &types.api_version)?;
            map.serialize_entry("kind", &types.kind)?;
        }
        map.serialize_entry("metadata", &*self.metadata)?;
        for (key, value) in self.data.as_object().into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// By serde_json only, whose texts need not be decoded.
impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::read(text.get()).map_err(D::Error::custom)
    }
}

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
    /// Whether it carries our marker: only such objects are ever deleted by us in a remote plane.
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
        self.data.at(pointer).filter(|value| !value.is_null())
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
    fn a_field_that_is_null_or_of_another_type_reads_as_absent() {
        for rest in [
            json!({}),
            json!({ "spec": null, "status": null }),
            json!({ "spec": { "cityCode": 7, "n": "7", "list": {} } }),
            json!({ "spec": [], "status": "x" }),
        ] {
            let mut object: Object = serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
            object.data = rest.into();
            assert_eq!(object.text("/spec/cityCode"), None);
            assert_eq!(object.int("/spec/n"), None);
            assert!(object.items("/spec/list").is_empty());
            assert_eq!((object.uid(), object.namespace(), object.deleting()), ("", "", false));
        }
    }
}
