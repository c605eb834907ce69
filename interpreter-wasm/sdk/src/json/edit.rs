//! Values that are made, and changes of a value.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Document, Inside, Json, Key, Map, Place, View, text};
use crate::{Error, Object, Quantity, Result};

impl Json {
    /// Sets the value at the pointer. Absent and `null` parents become objects; in an array an index replaces and `-`
    /// appends.
    ///
    /// # Errors
    /// [`Error::InvalidObject`] where a parent is neither object nor array, or an array has no such index.
    pub fn set(&mut self, pointer: &str, value: impl Into<Self>) -> Result<()> {
        *self.at_or_new(pointer)? = value.into();
        Ok(())
    }

    /// Keeps those fields of the object for which `keep` says yes. A value that is no object, and an object that keeps
    /// all, stays as it is.
    pub fn retain_fields(&mut self, mut keep: impl FnMut(&str, &Self) -> bool) {
        if self
            .as_fields()
            .is_none_or(|mut fields| fields.all(|(key, value)| keep(key, value)))
        {
            return;
        }
        if let Some(View::Fields(map)) = self.edit() {
            map.retain(keep);
        }
    }

    /// Sets the field of an object with exactly this key; a value that is no object becomes one.
    pub fn set_member(&mut self, key: &str, value: impl Into<Self>) {
        if !self.is_object() {
            *self = Self::container(View::Fields(Map::default()));
        }
        if let Some(View::Fields(map)) = self.edit()
            && let Some(place) = map.get_or_add(key)
        {
            *place = value.into();
        }
    }

    /// Takes away the value at the pointer and returns it; `None` where there was none.
    ///
    /// # Errors
    /// [`Error::Failed`] for the empty pointer.
    pub fn remove(&mut self, pointer: &str) -> Result<Option<Self>> {
        // A look first: what is absent must not mark its parents as changed.
        if self.get(pointer).is_none() {
            return text::tokens(pointer).map(|_| None);
        }
        let (parent, last) = pointer
            .rsplit_once('/')
            .ok_or_else(|| Error::failed("the whole value cannot be removed from itself"))?;
        let token = text::unescape(last);
        Ok(match self.at_or_new(parent)?.edit() {
            Some(View::Fields(map)) => map.remove(&token),
            Some(View::Items(items)) => text::index(&token)
                .filter(|&index| index < items.len())
                .map(|index| items.remove(index)),
            _ => None,
        })
    }

    /// The value at the pointer, made `null` where there was none.
    fn at_or_new(&mut self, pointer: &str) -> Result<&mut Self> {
        // Walked up to for a message only: that takes as long as the object is large.
        let root = self.origin.clone();
        let mut here = self;
        for (parent, token) in text::tokens(pointer)? {
            here = here.child_or_new(root.as_ref(), parent, &token)?;
        }
        Ok(here)
    }

    fn child_or_new(&mut self, root: Option<&Place>, pointer: &str, token: &str) -> Result<&mut Self> {
        let root = || root.map(Place::path).unwrap_or_default();
        match self.first_byte() {
            b'{' => {}
            b'n' => *self = Self::container(View::Fields(Map::default())),
            b'[' => {
                let length = self.items("")?.map_or(0, <[Self]>::len);
                if token != "-" && text::index(token).is_none_or(|index| index >= length) {
                    let message = format!("expected an index below {length} or -, found {token:?}");
                    return Err(Error::invalid(self.place(&root(), pointer), message));
                }
            }
            _ => return Err(self.mismatch(&root(), pointer, "an object")),
        }
        let child = match self.edit() {
            Some(View::Fields(map)) => map.get_or_add(token),
            Some(View::Items(items)) => {
                let index = text::index(token).unwrap_or_else(|| {
                    items.push(Self::null());
                    items.len() - 1
                });
                items.get_mut(index)
            }
            _ => None,
        };
        child.ok_or_else(|| Error::failed(format!("{pointer}/{token} cannot be set")))
    }

    /// The inside, to be changed: from here on the text is no longer the value. Copies that share it keep it as it is.
    fn edit(&mut self) -> Option<&mut View> {
        self.view();
        let inside: &mut Inside = Arc::make_mut(self.inside.get_mut()?);
        inside.changed = true;
        Some(&mut inside.view)
    }
}

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
        text::quote(value, &mut text);
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
