//! Changes of a value.

use super::{Json, Key, View, pointer};
use crate::{Error, Result};

impl Json {
    /// Sets the value at the pointer. Absent and `null` parents become objects; in an array an index replaces and `-`
    /// appends.
    ///
    /// # Errors
    /// [`Error::InvalidObject`] where a parent is neither object nor array, or an array has no such index.
    pub fn set(&mut self, pointer: &str, value: impl Into<Self>) -> Result<()> {
        let root = self.path();
        let mut here = self;
        for (parent, token) in pointer::tokens(pointer)? {
            here = here.child_or_new(&root, parent, &token)?;
        }
        *here = value.into();
        Ok(())
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
        let root = self.path();
        let mut here = self;
        for (above, token) in pointer::tokens(parent)? {
            here = here.child_or_new(&root, above, &token)?;
        }
        let token = pointer::unescape(last);
        Ok(match here.edit() {
            Some(View::Fields(fields)) => {
                let position = fields.iter().position(|(key, _)| key.as_str() == token);
                position.map(|position| fields.remove(position).1)
            }
            Some(View::Items(items)) => pointer::index(&token)
                .filter(|&index| index < items.len())
                .map(|index| items.remove(index)),
            _ => None,
        })
    }

    fn child_or_new(&mut self, root: &str, pointer: &str, token: &str) -> Result<&mut Self> {
        match self.first_byte() {
            b'{' => {}
            b'n' => *self = Self::container(View::Fields(Vec::new())),
            b'[' => {
                let length = self.items("")?.map_or(0, <[Self]>::len);
                if token != "-" && pointer::index(token).is_none_or(|index| index >= length) {
                    let message = format!("expected an index below {length} or -, found {token:?}");
                    return Err(Error::invalid(self.place(root, pointer), message));
                }
            }
            _ => return Err(self.mismatch(root, pointer, "an object")),
        }
        let child = match self.edit() {
            Some(View::Fields(fields)) => {
                let position = fields
                    .iter()
                    .position(|(key, _)| key.as_str() == token)
                    .unwrap_or_else(|| {
                        fields.push((Key::Owned(token.to_owned()), Self::null()));
                        fields.len() - 1
                    });
                fields.get_mut(position).map(|(_, value)| value)
            }
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

    /// The inside, to be changed: from here on the text is no longer the value.
    fn edit(&mut self) -> Option<&mut View> {
        self.view();
        self.changed = true;
        self.view.get_mut()
    }
}
