//! JSON values that stay text until somebody looks.
//!
//! Invariants:
//! - A value that was read knows its place in the text and keeps it; `changed` says that the text is no longer its value.
//! - A scalar is always text. A container without text, or a changed one, always has its `view`.
//! - Numbers are never converted: what is not touched goes out with the digits that came in.
//! - Keys of one object are unique in its view: of duplicates the last one wins.

mod compare;
mod edit;
mod make;
mod pointer;
mod read;
mod scan;
mod string;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use self::scan::Entry;
use crate::{Error, Result};

pub(crate) use self::pointer::push as push_token;

/// Deepest nesting that is read. Kubernetes objects stay below 50.
pub(crate) const MAX_DEPTH: usize = 128;

/// A JSON value; its parts stay text until somebody looks at them.
///
/// Numbers keep their digits, keys their order; of duplicate keys the last one wins. Two values are equal when they mean
/// the same: the order of keys and the spelling of strings do not matter, the digits of numbers do.
///
/// Readers take a JSON pointer (RFC 6901; the empty one is the value itself). Absent and `null` are `None`; a value of
/// another type is [`Error::InvalidObject`] with its absolute path.
#[derive(Clone)]
pub struct Json {
    origin: Option<Place>,
    changed: bool,
    view: OnceLock<View>,
}

/// One text that was read.
#[derive(Debug)]
struct Document {
    text: String,
    tape: Vec<Entry>,
    /// Pointer to the root, for messages.
    base: String,
}

#[derive(Clone)]
struct Place {
    document: Arc<Document>,
    index: usize,
}

/// What is inside a value.
#[derive(Clone)]
enum View {
    Scalar,
    /// A string with escapes, decoded.
    Decoded(String),
    Items(Vec<Json>),
    Fields(Vec<(Key, Json)>),
}

#[derive(Clone)]
enum Key {
    /// Without escapes: its place in the text.
    Read(Place),
    Owned(String),
}

/// The fields of an object, in their order.
pub struct Fields<'a>(std::slice::Iter<'a, (Key, Json)>);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a Json);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Fields<'_> {}

impl Json {
    /// Reads JSON text.
    ///
    /// # Errors
    /// [`Error::InvalidObject`] where the text is not UTF-8 or not JSON, or is nested deeper than 128 levels.
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
        let tape = scan::scan(&text).map_err(|message| Error::invalid(base, message))?;
        let document = Arc::new(Document {
            text,
            tape,
            base: base.to_owned(),
        });
        Ok(Self::read(Place { document, index: 0 }))
    }

    /// The value as JSON text. What was not changed is the text that was read.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.origin.as_ref().map_or(0, |place| place.text().len()));
        self.write(&mut out);
        out
    }

    fn read(place: Place) -> Self {
        Self {
            origin: Some(place),
            changed: false,
            view: OnceLock::new(),
        }
    }

    fn container(view: View) -> Self {
        Self {
            origin: None,
            changed: true,
            view: OnceLock::from(view),
        }
    }

    /// The text, where it still is the value.
    fn raw(&self) -> Option<&str> {
        match &self.origin {
            Some(place) if !self.changed => Some(place.text()),
            _ => None,
        }
    }

    /// Both are the same piece of the same text.
    pub(crate) fn is_same_text(&self, other: &Self) -> bool {
        match (&self.origin, &other.origin) {
            (Some(a), Some(b)) if !self.changed && !other.changed => {
                a.index == b.index && Arc::ptr_eq(&a.document, &b.document)
            }
            _ => false,
        }
    }

    fn view(&self) -> &View {
        self.view
            .get_or_init(|| self.origin.as_ref().map_or(View::Scalar, Place::view))
    }

    fn write(&self, out: &mut String) {
        if let Some(raw) = self.raw() {
            out.push_str(raw);
            return;
        }
        match self.view() {
            View::Fields(fields) => {
                out.push('{');
                for (position, (key, value)) in fields.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    string::quote(key.as_str(), out);
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
            View::Decoded(text) => string::quote(text, out),
            View::Scalar => out.push_str("null"),
        }
    }

    /// The absolute pointer to where the value was read.
    fn path(&self) -> String {
        self.origin.as_ref().map(Place::path).unwrap_or_default()
    }
}

impl Place {
    fn entry(&self) -> Option<&Entry> {
        self.document.tape.get(self.index)
    }

    fn at(&self, index: usize) -> Self {
        Self {
            document: Arc::clone(&self.document),
            index,
        }
    }

    fn text(&self) -> &str {
        self.entry()
            .and_then(|entry| self.document.text.get(entry.start..entry.end))
            .unwrap_or("null")
    }

    /// What is between the quotes of a string.
    fn inner(&self) -> &str {
        let text = self.text();
        text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
    }

    fn is_escaped(&self) -> bool {
        self.entry().is_some_and(|entry| entry.escaped)
    }

    /// Indices of the entries directly inside, each after all that is inside the one before.
    fn inside(&self) -> impl Iterator<Item = usize> {
        let (first, end) = self.entry().map_or((0, 0), |entry| (self.index + 1, entry.next));
        let tape = &self.document.tape;
        let step = move |&index: &usize| tape.get(index).map(|entry| entry.next).filter(|&next| next < end);
        std::iter::successors((first < end).then_some(first), step)
    }

    fn view(&self) -> View {
        match self.text().as_bytes().first() {
            Some(b'"') if self.is_escaped() => View::Decoded(string::unquote(self.inner())),
            Some(b'[') => View::Items(self.inside().map(|index| Json::read(self.at(index))).collect()),
            Some(b'{') => {
                let mut fields = Vec::new();
                let mut inside = self.inside();
                while let (Some(key), Some(value)) = (inside.next(), inside.next()) {
                    fields.push((Key::read(self.at(key)), Json::read(self.at(value))));
                }
                View::Fields(last_of_duplicates(fields))
            }
            _ => View::Scalar,
        }
    }

    /// Walks down to the place; only for messages.
    fn path(&self) -> String {
        let mut path = self.document.base.clone();
        let mut here = self.at(0);
        while here.index != self.index {
            let is_object = here.text().starts_with('{');
            let inside: Vec<usize> = here.inside().collect();
            let Some(position) = inside.iter().rposition(|&index| index <= self.index) else {
                break;
            };
            let Some(&child) = inside.get(position) else { break };
            let key = if is_object {
                position.checked_sub(1).and_then(|key| inside.get(key))
            } else {
                None
            };
            match key {
                Some(&key) => pointer::push(&mut path, Key::read(self.at(key)).as_str()),
                None => pointer::push(&mut path, &position.to_string()),
            }
            here = self.at(child);
        }
        path
    }
}

impl Key {
    fn read(place: Place) -> Self {
        if place.is_escaped() {
            Self::Owned(string::unquote(place.inner()))
        } else {
            Self::Read(place)
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Read(place) => place.inner(),
            Self::Owned(text) => text,
        }
    }
}

fn last_of_duplicates(fields: Vec<(Key, Json)>) -> Vec<(Key, Json)> {
    if all_differ(&fields) {
        return fields;
    }
    let mut later = BTreeSet::new();
    let mut is_last: Vec<bool> = fields.iter().rev().map(|(key, _)| later.insert(key.as_str())).collect();
    if later.len() == fields.len() {
        return fields;
    }
    // The flags lie in the reverse order of the fields.
    fields.into_iter().filter(|_| is_last.pop().unwrap_or(true)).collect()
}

/// Whether the lengths and the first and last letters alone tell all keys apart; `false` says nothing.
fn all_differ(fields: &[(Key, Json)]) -> bool {
    let mut seen = 0_u128;
    fields.iter().all(|(key, _)| {
        let key = key.as_str().as_bytes();
        let (first, last) = (key.first().copied().unwrap_or(0), key.last().copied().unwrap_or(0));
        let mark = 1 << ((usize::from(first) * 31 + usize::from(last) * 7 + key.len()) % 128);
        let is_new = seen & mark == 0;
        seen |= mark;
        is_new
    })
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
