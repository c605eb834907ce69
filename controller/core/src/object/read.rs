//! Objects from the text of a server.
//!
//! Invariants: splitting a text into its fields needs no more stack however deeply it nests; errors name a place and never
//! a value, which may be a secret.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::TypeMeta;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Data, Excess, Object};
use crate::limits::{DEPTH, depth};

/// Why the text of an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON object.
    #[error("failed to read an object: no JSON object at line {line}, column {column}")]
    NoObject {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// Its metadata has a field of a wrong type.
    #[error("failed to read an object: metadata has a field of a wrong type at column {column} of it")]
    Metadata {
        /// Column within the metadata, from 1.
        column: usize,
    },
    /// It exceeds a limit, and what of it must be kept as a whole is too much.
    #[error(
        "failed to keep an object that exceeds a limit: its owners and finalizers take {bytes} bytes, the limit is {limit}"
    )]
    Listed {
        /// Their size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no room even for the least of it.
    #[error("failed to keep an object: there are too many for which there is no room")]
    NoRoom,
}

/// The fields of a JSON object as texts, in their order.
struct Split<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Split<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<'a>(PhantomData<&'a ()>);

        impl<'de> Visitor<'de> for Fields<'de> {
            type Value = Split<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Split(fields))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

fn split(text: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Split<'_>>(text).map(|split| split.0)
}

/// A field of a JSON object as its text, however deeply it nests.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = split(text).ok()?;
    fields
        .iter()
        .rev()
        .find(|(key, _)| key == name)
        .map(|(_, text)| text.get())
}

/// A JSON object of these fields.
fn joined<'a>(fields: impl Iterator<Item = &'a (String, &'a RawValue)>) -> String {
    let mut text = String::from("{");
    for (key, value) in fields {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    text
}

/// An object from its text, without `managedFields`: metadata decoded, the rest as it is.
pub(super) fn object(text: &str) -> Result<Object, ReadError> {
    let fields = split(text).map_err(|error| ReadError::NoObject {
        line: error.line(),
        column: error.column(),
    })?;
    let of = |name: &str| fields.iter().rev().find(|(key, _)| key == name).map(|(_, text)| *text);
    let string = |name: &str| of(name).and_then(|text| serde_json::from_str::<String>(text.get()).ok());
    let (metadata, size) = match of("metadata") {
        Some(text) => metadata(text.get())?,
        None => Default::default(),
    };
    let rest = joined(
        fields
            .iter()
            .filter(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str())),
    );
    // Metadata has a form of its own, and managedFields nest deeper than what they are about.
    let levels = depth(&rest);
    let types = string("apiVersion").zip(string("kind"));
    Ok(Object {
        types: types.map(|(api_version, kind)| TypeMeta { api_version, kind }),
        metadata: metadata.into(),
        bytes: size + rest.len(),
        data: Data::text(rest),
        excess: (levels > DEPTH).then_some(Excess::Depth { levels }),
    })
}

/// Metadata without `managedFields`, and the bytes of its text.
fn metadata(text: &str) -> Result<(ObjectMeta, usize), ReadError> {
    let unreadable = |error: serde_json::Error| ReadError::Metadata { column: error.column() };
    if text == "null" {
        return Ok(Default::default());
    }
    let fields = split(text).map_err(unreadable)?;
    let kept = joined(fields.iter().filter(|(key, _)| key != "managedFields"));
    let metadata = serde_json::from_str(&kept).map_err(unreadable)?;
    Ok((metadata, kept.len()))
}

/// Namespace, name and resourceVersion of an object whose metadata cannot be read as a whole.
pub(super) fn address(text: &str) -> [Option<String>; 3] {
    const POINTERS: [&str; 3] = ["/metadata/namespace", "/metadata/name", "/metadata/resourceVersion"];
    let picked = pick(text, &POINTERS);
    POINTERS.map(|pointer| picked.pointer(pointer)?.as_str().map(str::to_owned))
}

/// The value of an object's text. A field of it that nests too deeply is skipped; the others are there.
pub(super) fn value(text: &str) -> Value {
    let mut value = Map::new();
    for (key, text) in split(text).unwrap_or_default() {
        if depth(text.get()) < DEPTH
            && let Ok(decoded) = serde_json::from_str(text.get())
        {
            value.insert(key, decoded);
        }
    }
    Value::Object(value)
}

/// Whether the field at a JSON pointer without escapes nests too deeply to be decoded ([`pick`]).
pub(super) fn is_deep(text: &str, pointer: &str) -> bool {
    let Some(rest) = pointer.strip_prefix('/') else {
        return depth(text) >= DEPTH;
    };
    let (name, below) = rest
        .split_once('/')
        .map_or((rest, None), |(name, _)| (name, Some(&rest[name.len()..])));
    field(text, name).is_some_and(|text| is_deep(text, below.unwrap_or_default()))
}

/// Fields of an object's text by JSON pointers without escapes, each at its place in a new value. Nothing else is decoded.
pub(super) fn pick(text: &str, pointers: &[&str]) -> Value {
    let mut picked = Map::new();
    let Ok(fields) = split(text) else {
        return Value::Object(picked);
    };
    for (key, text) in fields {
        let below: Vec<&str> = pointers
            .iter()
            .filter_map(|pointer| pointer.strip_prefix('/')?.strip_prefix(key.as_str()))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .collect();
        if below.is_empty() {
            continue;
        }
        let whole = below.contains(&"") && depth(text.get()) < DEPTH;
        let whole = whole.then(|| serde_json::from_str(text.get()).ok()).flatten();
        // Of a field that nests too deeply there may be parts.
        let part =
            || Some(pick(text.get(), &below)).filter(|value| value.as_object().is_some_and(|map| !map.is_empty()));
        if let Some(value) = whole.or_else(part) {
            picked.insert(key, value);
        }
    }
    Value::Object(picked)
}
