//! JSON values that stay text until they are read.
//!
//! Not serde_json 1: a module is a fresh instance for every call, so reading the object is most of what a call costs (how
//! strings are scanned and templates read was a third of an InterpretReplica: 18.8 us before, 12.4 after; InterpretHealth
//! takes 9.1), and `serde_json::Value` allocates for every node of it, also for those that is not read (managedFields).
//! And what is not touched has to go out as it came, numbers with their digits and keys in their order, while errors name the
//! place where a value was read: serde_json would need `arbitrary_precision`, `preserve_order` and readers beside it.
//!
//! Invariants:
//! - A value that was read knows its place in the text and keeps it; once it was changed the text is no longer its value.
//! - A scalar is always text. A container without text, or a changed one, always has its inside.
//! - Numbers are never converted: what is not touched goes out with the digits that came in.
//! - Keys of one object are unique in its view: of duplicates the last one wins.
//! - Work and memory are linear in the text, whatever its shape: a copy shares what is inside, comparing looks at texts,
//!   and no lookup goes through all fields of a large object.

mod compare;
mod edit;
mod map;
mod place;
mod read;
mod scan;
mod text;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};

use self::place::{Document, Place};
use crate::{Error, Result};

pub(crate) use self::map::Map;
#[cfg(feature = "test")]
pub(crate) use self::text::unescape;
pub use popcell_contract::json::MAX_DEPTH;
pub(crate) use popcell_contract::json::push_token;

/// A JSON value; its parts stay text until they are read.
///
/// Numbers keep their digits, keys their order; of duplicate keys the last one wins. Two values are equal when they mean
/// the same: the order of keys and the spelling of strings do not matter, the digits of numbers do.
///
/// Readers take a JSON pointer (RFC 6901; the empty one is the value itself). Absent and `null` are `None`; a value of
/// another type is [`Error::InvalidObject`] with its absolute path.
#[derive(Clone)]
pub struct Json {
    origin: Option<Place>,
    /// What is inside, once it was read. Copies share it until one is changed.
    inside: OnceLock<Arc<Inside>>,
}

#[derive(Clone)]
struct Inside {
    /// The text is no longer the value.
    changed: bool,
    view: View,
}

/// What is inside a value.
#[derive(Clone)]
enum View {
    Scalar,
    /// A string with escapes, decoded.
    Decoded(String),
    Items(Vec<Json>),
    Fields(Map),
}

#[derive(Clone)]
enum Key {
    /// Without escapes: its place in the text.
    Read(Place),
    Owned(String),
}

/// The fields of an object, in their order.
pub struct Fields<'a> {
    map: &'a Map,
    at: usize,
    left: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a Json);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.map.places() {
            let field = self.map.place(self.at);
            self.at += 1;
            if field.is_some() {
                self.left = self.left.saturating_sub(1);
                return field;
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

impl Json {
    /// Reads JSON text.
    ///
    /// # Errors
    /// [`Error::InvalidObject`] where the text is not UTF-8 or not JSON, or is nested deeper than [`MAX_DEPTH`]
    /// levels.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self> {
        Self::parse_at(text.as_ref().to_vec(), "")
    }

    /// Reads JSON text that lies at the pointer `base` in something larger: the paths of errors begin there.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn parse_at(text: Vec<u8>, base: &str) -> Result<Self> {
        let text = String::from_utf8(text).map_err(|error| {
            Error::invalid(
                base,
                format!("not UTF-8 text at byte {}", error.utf8_error().valid_up_to()),
            )
        })?;
        if text.len() > place::MAX_TEXT {
            return Err(Error::invalid(base, "longer than 2 GiB"));
        }
        let tape = scan::scan(&text)
            .map_err(|unreadable| Error::invalid(format!("{base}{}", unreadable.place), unreadable.message))?;
        Ok(Self::read(Place::root(Document::new(text, tape, base))))
    }

    /// The value as JSON text. What was not changed is the text that was read.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.text_length());
        self.write(&mut out);
        out
    }

    /// At least as many bytes as the text has where nothing needs an escape.
    pub(crate) fn text_length(&self) -> usize {
        if let Some(raw) = self.raw() {
            return raw.len();
        }
        match self.view() {
            View::Scalar => 4,
            View::Decoded(text) => text.len() + 2,
            View::Items(items) => 2 + items.iter().map(|item| item.text_length() + 1).sum::<usize>(),
            View::Fields(map) => {
                2 + map
                    .iter()
                    .map(|(key, value)| key.len() + value.text_length() + 4)
                    .sum::<usize>()
            }
        }
    }

    fn read(place: Place) -> Self {
        Self {
            origin: Some(place),
            inside: OnceLock::new(),
        }
    }

    fn container(view: View) -> Self {
        Self {
            origin: None,
            inside: OnceLock::from(Arc::new(Inside { changed: true, view })),
        }
    }

    fn is_changed(&self) -> bool {
        self.inside.get().is_some_and(|inside| inside.changed)
    }

    /// The place of the text, where it still is the value.
    fn place_of_text(&self) -> Option<&Place> {
        self.origin.as_ref().filter(|_| !self.is_changed())
    }

    /// The text, where it still is the value.
    pub(crate) fn raw(&self) -> Option<&str> {
        self.place_of_text().map(|place| place.raw().text())
    }

    /// Both are the same piece of the same text, or share what is inside.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if let (Some(one), Some(other)) = (self.inside.get(), other.inside.get())
            && Arc::ptr_eq(one, other)
        {
            return true;
        }
        match (self.place_of_text(), other.place_of_text()) {
            (Some(one), Some(other)) => one.is(other),
            _ => false,
        }
    }

    fn view(&self) -> &View {
        static SCALAR: View = View::Scalar;
        if let Some(inside) = self.inside.get() {
            return &inside.view;
        }
        match self.origin.as_ref().filter(|place| place.raw().has_inside()) {
            Some(place) => {
                let made = || {
                    Arc::new(Inside {
                        changed: false,
                        view: place.view(),
                    })
                };
                &self.inside.get_or_init(made).view
            }
            None => &SCALAR,
        }
    }

    fn write(&self, out: &mut String) {
        if let Some(raw) = self.raw() {
            out.push_str(raw);
            return;
        }
        match self.view() {
            View::Fields(map) => {
                out.push('{');
                for (position, (key, value)) in map.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    text::quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            View::Items(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            View::Decoded(text) => text::quote(text, out),
            View::Scalar => out.push_str("null"),
        }
    }

    /// The absolute pointer to where the value was read.
    fn path(&self) -> String {
        self.origin.as_ref().map(Place::path).unwrap_or_default()
    }
}

impl Key {
    fn as_str(&self) -> &str {
        match self {
            Self::Read(place) => place.raw().inner(),
            Self::Owned(text) => text,
        }
    }

    /// For comparing: the order of UTF-8 is that of its bytes.
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Read(place) => place.raw().inner_bytes(),
            Self::Owned(text) => text.as_bytes(),
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
