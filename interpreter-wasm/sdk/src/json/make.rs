//! Values that are made, not read.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Document, Json, Key, Map, Place, View, string};
use crate::{Object, Quantity};

impl Json {
    /// `null`.
    pub fn null() -> Self {
        Self {
            origin: None,
            inside: OnceLock::new(),
        }
    }

    /// An object of these fields; of equal keys the last one wins.
    pub fn object<K: Into<String>, V: Into<Self>>(fields: impl IntoIterator<Item = (K, V)>) -> Self {
        let fields = fields
            .into_iter()
            .map(|(key, value)| (Key::Owned(key.into()), value.into()))
            .collect();
        Self::container(View::Fields(Map::of(fields)))
    }

    /// An array of these items.
    pub fn array<V: Into<Self>>(items: impl IntoIterator<Item = V>) -> Self {
        Self::container(View::Items(items.into_iter().map(Into::into).collect()))
    }

    /// A value whose text is known to be a JSON scalar.
    fn scalar(text: String) -> Self {
        Self::read(Place::root(Document::of_scalar(text)))
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::scalar(value.to_string())
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Self {
        Self::scalar(value.to_string())
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::scalar(value.to_string())
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        let mut text = String::with_capacity(value.len() + 2);
        string::quote(value, &mut text);
        Self::scalar(text)
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        value.as_str().into()
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Self {
        Self::container(View::Items(items))
    }
}

impl<V: Into<Json>> From<BTreeMap<String, V>> for Json {
    fn from(fields: BTreeMap<String, V>) -> Self {
        Self::object(fields)
    }
}

impl<V: Into<Json>> From<Option<V>> for Json {
    /// `None` is `null`.
    fn from(value: Option<V>) -> Self {
        value.map_or_else(Self::null, Into::into)
    }
}

impl From<&Json> for Json {
    fn from(value: &Json) -> Self {
        value.clone()
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        object.into_json()
    }
}

impl From<&Quantity> for Json {
    fn from(quantity: &Quantity) -> Self {
        quantity.to_string().into()
    }
}
