//! Readers of a value and its parts.

use super::{Fields, Json, Map, View, text};
use crate::{Error, Quantity, Result};

/// Longest piece of a value that a message repeats, in characters.
const MAX_FOUND: usize = 40;

impl Json {
    /// The value at the pointer; `null` counts as present.
    pub fn get(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        // Before anything else: a list may have many values that have nothing inside.
        if !matches!(self.first_byte(), b'{' | b'[') {
            return None;
        }
        let mut value = self;
        for token in pointer.strip_prefix('/')?.split('/') {
            value = value.child(&text::unescape(token))?;
        }
        Some(value)
    }

    /// The field of an object with exactly this key.
    pub fn member(&self, key: &str) -> Option<&Self> {
        match self.view() {
            View::Fields(map) => map.get(key),
            _ => None,
        }
    }

    /// An integer, exactly: `2.0` and `1e3` are errors, as is what does not fit 64 bits.
    pub fn int(&self, pointer: &str) -> Result<Option<i64>> {
        self.typed(pointer, "an integer", |value| {
            let raw = value.raw().filter(|_| value.is_number())?;
            raw.parse().ok()
        })
    }

    /// A string, decoded.
    pub fn text(&self, pointer: &str) -> Result<Option<&str>> {
        self.typed(pointer, "a string", Self::as_text)
    }

    /// A boolean.
    pub fn bool(&self, pointer: &str) -> Result<Option<bool>> {
        self.typed(pointer, "a boolean", |value| match value.raw()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// The items of an array.
    pub fn items(&self, pointer: &str) -> Result<Option<&[Self]>> {
        self.typed(pointer, "an array", Self::as_items)
    }

    /// The fields of an object.
    pub fn fields(&self, pointer: &str) -> Result<Option<Fields<'_>>> {
        self.typed(pointer, "an object", Self::as_fields)
    }

    /// A Kubernetes quantity: a string, or a number as Kubernetes accepts it too.
    pub fn quantity(&self, pointer: &str) -> Result<Option<Quantity>> {
        self.typed(pointer, "a quantity", |value| match value.as_text() {
            Some(text) => text.parse().ok(),
            None => value.raw().filter(|_| value.is_number())?.parse().ok(),
        })
    }

    /// The string that the value is, decoded; `None` for every other type.
    pub fn as_text(&self) -> Option<&str> {
        let raw = self.place_of_text()?.raw();
        if raw.first_byte() != b'"' {
            return None;
        }
        if !raw.is_escaped() {
            return Some(raw.inner());
        }
        match self.view() {
            View::Decoded(text) => Some(text),
            _ => None,
        }
    }

    /// The fields of the object that the value is; `None` for every other type.
    pub fn as_fields(&self) -> Option<Fields<'_>> {
        match self.view() {
            View::Fields(map) => Some(Fields {
                map,
                at: 0,
                left: map.len(),
            }),
            _ => None,
        }
    }

    /// The items of the array that the value is; `None` for every other type.
    pub fn as_items(&self) -> Option<&[Self]> {
        match self.view() {
            View::Items(items) => Some(items),
            _ => None,
        }
    }

    /// The fields of the object that the value is, for those who look up many of another's.
    pub(crate) fn as_map(&self) -> Option<&Map> {
        match self.view() {
            View::Fields(map) => Some(map),
            _ => None,
        }
    }

    /// The type for messages: `"an object"`, `"an integer"`, ...
    pub fn kind_name(&self) -> &'static str {
        match self.first_byte() {
            b'{' => "an object",
            b'[' => "an array",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'n' => "null",
            _ if self.raw().is_some_and(|raw| raw.contains(['.', 'e', 'E'])) => "a number",
            _ => "an integer",
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.first_byte() == b'n'
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.first_byte() == b'{'
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.first_byte() == b'['
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self.first_byte(), b'-' | b'0'..=b'9')
    }

    /// What a message says was found: scalars by their text, containers by their type.
    pub(crate) fn found(&self) -> String {
        match self.raw() {
            Some(raw) if !self.is_object() && !self.is_array() => match raw.char_indices().nth(MAX_FOUND) {
                Some((end, _)) => format!("{}...", raw.get(..end).unwrap_or_default()),
                None => raw.to_owned(),
            },
            _ => self.kind_name().to_owned(),
        }
    }

    /// The error that this value, read at `pointer` below `root`, has another type than expected.
    pub(super) fn mismatch(&self, root: &str, pointer: &str, expected: &str) -> Error {
        let range = if expected == "an integer" && self.kind_name() == expected {
            " of 64 bits"
        } else {
            ""
        };
        Error::invalid(
            self.place(root, pointer),
            format!("expected {expected}{range}, found {}", self.found()),
        )
    }

    /// Where the value was read; one that was made is where it was put.
    pub(super) fn place(&self, root: &str, pointer: &str) -> String {
        let path = self.path();
        if path.is_empty() {
            format!("{root}{pointer}")
        } else {
            path
        }
    }

    pub(super) fn first_byte(&self) -> u8 {
        if let Some(place) = self.place_of_text() {
            return place.raw().first_byte();
        }
        match self.view() {
            View::Fields(_) => b'{',
            View::Items(_) => b'[',
            View::Decoded(_) => b'"',
            View::Scalar => b'n',
        }
    }

    fn child(&self, token: &str) -> Option<&Self> {
        match self.view() {
            View::Items(items) => items.get(text::index(token)?),
            _ => self.member(token),
        }
    }

    fn typed<'a, T>(
        &'a self,
        pointer: &str,
        expected: &str,
        read: impl Fn(&'a Self) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut value = self;
        for (parent, token) in text::tokens(pointer)? {
            let is_index = value.is_array() && text::index(&token).is_some();
            if !value.is_object() && !is_index {
                return if value.is_null() {
                    Ok(None)
                } else {
                    Err(value.mismatch(&self.path(), parent, "an object"))
                };
            }
            match value.child(&token) {
                Some(child) => value = child,
                None => return Ok(None),
            }
        }
        if value.is_null() {
            return Ok(None);
        }
        read(value)
            .map(Some)
            .ok_or_else(|| value.mismatch(&self.path(), pointer, expected))
    }
}
