//! All of an object but its types and metadata: text until the first read, a value from then on.
//!
//! Invariants: a clone shares the text and nothing that was decoded from it, so what a store keeps stays text; a value that
//! is changed has no text any more; what nests too deeply is absent, and the fields beside it are there.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use super::read;

/// A JSON pointer, and what is there; null where nothing is.
type Picked = (&'static str, Value);

/// What an absent value reads as.
static NULL: Value = Value::Null;

/// The fields of an object beside `apiVersion`, `kind` and `metadata`. Without either form it is null.
#[derive(Default)]
pub struct Data {
    value: Option<Value>,
    text: Option<Text>,
}

struct Text {
    whole: Arc<str>,
    /// Fields that are looked at far more often than the rest.
    picked: Option<Arc<[Picked]>>,
    decoded: OnceLock<Value>,
}

impl Text {
    fn new(text: String) -> Self {
        Self {
            whole: Arc::from(text),
            picked: None,
            decoded: OnceLock::new(),
        }
    }
}

impl Data {
    /// Text that is decoded at the first read: a JSON object.
    pub(super) fn text(text: String) -> Self {
        Self {
            value: None,
            text: Some(Text::new(text)),
        }
    }

    /// Decodes these fields now, by JSON pointer, so that looking at them decodes nothing.
    pub(super) fn pick(&mut self, pointers: &'static [&'static str]) {
        if let Some(text) = &mut self.text {
            let found = read::pick(&text.whole, pointers);
            let picked = pointers
                .iter()
                .map(|pointer| (*pointer, found.pointer(pointer).cloned().unwrap_or_default()));
            text.picked = (!pointers.is_empty()).then(|| picked.collect());
        }
    }

    /// Keeps these fields only.
    pub(super) fn keep(&mut self, pointers: &[&str]) {
        *self = Self::text(self.part(pointers).to_string());
    }

    /// These fields, of which nothing else is decoded.
    pub(super) fn part(&self, pointers: &[&str]) -> Value {
        match &self.text {
            Some(text) => read::pick(&text.whole, pointers),
            None => read::pick(&self.to_string(), pointers),
        }
    }

    /// Whether any of these fields, by JSON pointers, nests too deeply to be decoded as a whole.
    pub(super) fn is_deep(&self, pointers: &[&str]) -> bool {
        let text = self.text.as_ref();
        text.is_some_and(|text| pointers.iter().any(|pointer| read::is_deep(&text.whole, pointer)))
    }

    /// Keeps the fields of the first of these selections that takes at most so many bytes, or none. What is larger as it stands
    /// is not decoded: its values take many times its text.
    pub(super) fn keep_largest(&mut self, selections: &[Vec<&str>], bytes: usize) {
        let whole = self.as_text();
        let is_larger = |pointer: &&str| {
            let field = pointer.strip_prefix('/').and_then(|field| whole.text_of(field));
            field.is_some_and(|text| text.len() > bytes)
        };
        for selection in selections.iter().filter(|one| !one.iter().any(is_larger)) {
            *self = whole.clone();
            self.keep(selection);
            if self.bytes() <= bytes {
                return;
            }
        }
        *self = whole;
        self.keep(&[]);
    }

    /// The bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        match &self.text {
            Some(text) => text.whole.len(),
            None => self.to_string().len(),
        }
    }

    /// A value by JSON pointer, without decoding the rest where it is one of those picked.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        let mut picked = self
            .text
            .iter()
            .flat_map(|text| text.picked.iter().flat_map(|all| all.iter()));
        match picked.find(|(picked, _)| *picked == pointer) {
            Some((_, found)) => Some(found),
            None => self.pointer(pointer),
        }
    }

    /// Whether it came as text, and was not changed.
    pub(super) fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// Whether more than what was picked has been looked at.
    #[cfg(test)]
    pub(crate) fn is_decoded(&self) -> bool {
        self.text.as_ref().is_none_or(|text| text.decoded.get().is_some())
    }

    /// A field as its text, where there is any.
    pub(super) fn text_of(&self, field: &str) -> Option<&str> {
        read::field(&self.text.as_ref()?.whole, field)
    }

    /// The same as text, whatever it was before.
    pub(super) fn as_text(&self) -> Self {
        match &self.text {
            Some(_) => self.clone(),
            None => Self::text(self.to_string()),
        }
    }
}

impl Deref for Data {
    type Target = Value;

    fn deref(&self) -> &Value {
        match (&self.value, &self.text) {
            (Some(value), _) => value,
            (None, Some(text)) => text.decoded.get_or_init(|| read::value(&text.whole)),
            (None, None) => &NULL,
        }
    }
}

impl DerefMut for Data {
    fn deref_mut(&mut self) -> &mut Value {
        let Self { value, text } = self;
        let decoded = text.take().map(|text| match text.decoded.into_inner() {
            Some(decoded) => decoded,
            None => read::value(&text.whole),
        });
        value.get_or_insert_with(|| decoded.unwrap_or_default())
    }
}

impl Clone for Data {
    fn clone(&self) -> Self {
        let text = self.text.as_ref().map(|text| Text {
            whole: Arc::clone(&text.whole),
            picked: text.picked.clone(),
            decoded: OnceLock::new(),
        });
        Self {
            value: self.value.clone(),
            text,
        }
    }
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        Self {
            value: Some(value),
            text: None,
        }
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl PartialEq<Value> for Data {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
