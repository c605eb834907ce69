//! Changes of a value.

use std::sync::Arc;

use super::{Inside, Json, Map, Place, View, pointer};
use crate::{Error, Result};

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
            return pointer::tokens(pointer).map(|_| None);
        }
        let (parent, last) = pointer
            .rsplit_once('/')
            .ok_or_else(|| Error::failed("the whole value cannot be removed from itself"))?;
        let token = pointer::unescape(last);
        Ok(match self.at_or_new(parent)?.edit() {
            Some(View::Fields(map)) => map.remove(&token),
            Some(View::Items(items)) => pointer::index(&token)
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
        for (parent, token) in pointer::tokens(pointer)? {
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
                if token != "-" && pointer::index(token).is_none_or(|index| index >= length) {
                    let message = format!("expected an index below {length} or -, found {token:?}");
                    return Err(Error::invalid(self.place(&root(), pointer), message));
                }
            }
            _ => return Err(self.mismatch(&root(), pointer, "an object")),
        }
        let child = match self.edit() {
            Some(View::Fields(map)) => map.get_or_add(token),
            Some(View::Items(items)) => {
                let index = pointer::index(token).unwrap_or_else(|| {
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
