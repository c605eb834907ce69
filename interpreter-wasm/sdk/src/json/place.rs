//! Where a value lies in the text that was read, and what is inside it.

use std::sync::{Arc, Mutex, PoisonError};

use super::scan::{self, Entry};
use super::{Json, Key, Map, View, push_token, text};

/// One text that was read.
#[derive(Debug)]
pub(super) struct Document {
    text: String,
    tape: Vec<Entry>,
    /// Pointer to the root, for messages.
    base: String,
    /// For each level the last child that was looked for, so that messages about many children do not cost their square.
    hints: Mutex<Vec<Hint>>,
}

/// One value in a text.
#[derive(Clone)]
pub(super) struct Place {
    document: Arc<Document>,
    spot: Spot,
}

/// Where a value begins, and where it ends: for objects and arrays the number of their entry on the tape, else the first
/// byte after the value, with [`ESCAPED`] for a string that has to be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    start: u32,
    rest: u32,
}

const ESCAPED: u32 = 1 << 31;

/// The longest text that can be read: places have 32 bits, one of which is [`ESCAPED`].
pub(super) const MAX_TEXT: usize = ESCAPED as usize - 1;

/// A value in a borrowed text: a walk over it allocates no memory.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    document: &'a Document,
    spot: Spot,
}

/// A child that was found before: the walk over its siblings goes on from there.
#[derive(Debug, Clone, Copy)]
struct Hint {
    parent: u32,
    /// Where the child begins; in an object its key.
    at: usize,
    /// The next entry on the tape there.
    entry: usize,
    ordinal: usize,
}

impl Document {
    pub(super) fn new(text: String, tape: Vec<Entry>, base: &str) -> Self {
        Self {
            text,
            tape,
            base: base.to_owned(),
            hints: Mutex::default(),
        }
    }

    /// The text of one scalar, which is known to be valid.
    pub(super) fn of_scalar(text: String) -> Self {
        Self::new(text, Vec::new(), "")
    }

    /// The whole value; `null` where there is no text.
    fn root(&self) -> Spot {
        let mut inside = Inside {
            document: self,
            at: 0,
            entry: 0,
        };
        inside.next().map_or(Spot { start: 0, rest: 0 }, |root| root.spot)
    }
}

impl Place {
    pub(super) fn root(document: Document) -> Self {
        let spot = document.root();
        Self {
            document: Arc::new(document),
            spot,
        }
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        Raw {
            document: &self.document,
            spot: self.spot,
        }
    }

    /// Another value of the same text.
    fn at(&self, raw: Raw<'_>) -> Self {
        Self {
            document: Arc::clone(&self.document),
            spot: raw.spot,
        }
    }

    /// Whether both are the same piece of the same text.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.spot == other.spot && Arc::ptr_eq(&self.document, &other.document)
    }

    /// What is inside, one level of it.
    pub(super) fn view(&self) -> View {
        let raw = self.raw();
        match raw.first_byte() {
            b'"' if raw.is_escaped() => View::Decoded(text::unquote(raw.inner())),
            b'[' => {
                // Counted first: a vector that grows has up to three times the memory for a moment.
                let mut items = Vec::with_capacity(raw.count());
                items.extend(raw.children().map(|item| Json::read(self.at(item))));
                View::Items(items)
            }
            b'{' => {
                let mut fields = Vec::with_capacity(raw.count());
                let mut children = raw.children();
                while let (Some(key), Some(value)) = (children.next(), children.next()) {
                    fields.push((self.key(key), Json::read(self.at(value))));
                }
                View::Fields(Map::of(fields))
            }
            _ => View::Scalar,
        }
    }

    fn key(&self, raw: Raw<'_>) -> Key {
        if raw.is_escaped() {
            Key::Owned(text::unquote(raw.inner()))
        } else {
            Key::Read(self.at(raw))
        }
    }

    /// Walks down to the place; only for messages.
    pub(super) fn path(&self) -> String {
        let document = &*self.document;
        let mut path = document.base.clone();
        let mut hints = document.hints.lock().unwrap_or_else(PoisonError::into_inner);
        let mut here = Raw {
            document,
            spot: document.root(),
        };
        for level in 0.. {
            if here.spot.start >= self.spot.start {
                break;
            }
            let hint = hints.get(level).copied();
            let Some((child, found)) = here.toward(self.spot.start, hint, &mut path) else {
                break;
            };
            match hints.get_mut(level) {
                Some(hint) => *hint = found,
                None => hints.push(found),
            }
            here = child;
        }
        path
    }
}

impl<'a> Raw<'a> {
    /// The first byte of the value; `n` where there is no text.
    pub(super) fn first_byte(self) -> u8 {
        let text = self.document.text.as_bytes();
        text.get(self.spot.start as usize).copied().unwrap_or(b'n')
    }

    fn is_container(self) -> bool {
        matches!(self.first_byte(), b'{' | b'[')
    }

    fn end(self) -> usize {
        if self.is_container() {
            let entry = self.document.tape.get(self.spot.rest as usize);
            entry.map_or(0, |entry| entry.end as usize)
        } else {
            (self.spot.rest & !ESCAPED) as usize
        }
    }

    pub(super) fn text(self) -> &'a str {
        let text = self.document.text.get(self.spot.start as usize..self.end());
        text.filter(|text| !text.is_empty()).unwrap_or("null")
    }

    /// What is between the quotes of a string.
    pub(super) fn inner(self) -> &'a str {
        let text = self.text();
        text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
    }

    /// As [`Raw::inner`], for comparing.
    pub(super) fn inner_bytes(self) -> &'a [u8] {
        let (start, end) = (self.spot.start as usize + 1, self.end().saturating_sub(1));
        self.document.text.as_bytes().get(start..end).unwrap_or_default()
    }

    /// Whether this is a string that has to be decoded.
    pub(super) fn is_escaped(self) -> bool {
        !self.is_container() && self.spot.rest & ESCAPED != 0
    }

    /// Whether there is anything inside that a view would hold.
    pub(super) fn has_inside(self) -> bool {
        self.is_container() || self.is_escaped()
    }

    /// The values directly inside an object or array; of an object each key and then its value.
    pub(super) fn children(self) -> Inside<'a> {
        let (at, entry) = if self.is_container() {
            (self.spot.start as usize + 1, self.spot.rest as usize + 1)
        } else {
            (usize::MAX, 0)
        };
        Inside {
            document: self.document,
            at,
            entry,
        }
    }

    /// How many items or fields are directly inside. More, where strings look like more; exact where that would be dear.
    #[expect(clippy::naive_bytecount, reason = "a crate for one line would be in every module")]
    fn count(self) -> usize {
        let text = self.text().as_bytes();
        let is_object = self.first_byte() == b'{';
        let entry = self.document.tape.get(self.spot.rest as usize);
        let has_inner = entry.is_some_and(|entry| entry.next > self.spot.rest + 1);
        if has_inner || (!is_object && text.contains(&b'"')) {
            let values = self.children().count();
            return if is_object { values / 2 } else { values };
        }
        // Each field has a colon, and between two items there is a comma.
        let mark = if is_object { b':' } else { b',' };
        let marks = text.iter().filter(|byte| **byte == mark).count();
        // A field has at least five bytes, an item two: text full of marks is no reason to reserve for more.
        let most = if is_object { text.len() / 5 } else { text.len() / 2 };
        (marks + usize::from(!is_object)).min(most + 1)
    }

    /// The child in which the byte `target` lies; appends its name to the path.
    fn toward(self, target: u32, hint: Option<Hint>, path: &mut String) -> Option<(Self, Hint)> {
        let target = target as usize;
        let is_object = self.first_byte() == b'{';
        let mut children = self.children();
        let mut ordinal = 0;
        if let Some(hint) = hint.filter(|hint| hint.parent == self.spot.start && hint.at <= target) {
            children.at = hint.at;
            children.entry = hint.entry;
            ordinal = hint.ordinal;
        }
        loop {
            let before = children.entry;
            let first = children.next()?;
            let (key, child) = if is_object {
                (Some(first), children.next()?)
            } else {
                (None, first)
            };
            if target < child.end() {
                match key {
                    Some(key) if key.is_escaped() => push_token(path, &text::unquote(key.inner())),
                    Some(key) => push_token(path, key.inner()),
                    None => push_token(path, &ordinal.to_string()),
                }
                let hint = Hint {
                    parent: self.spot.start,
                    at: first.spot.start as usize,
                    entry: before,
                    ordinal,
                };
                return Some((child, hint));
            }
            ordinal += 1;
        }
    }
}

/// A walk over values beside each other in a text that is known to be valid.
pub(super) struct Inside<'a> {
    document: &'a Document,
    at: usize,
    entry: usize,
}

impl<'a> Iterator for Inside<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        let bytes = self.document.text.as_bytes();
        let mut start = self.at;
        while scan::is_between(*bytes.get(start)?) {
            start += 1;
        }
        let rest = bytes.get(start..)?;
        let (end, tail) = match rest.first()? {
            b'}' | b']' => return None,
            b'{' | b'[' => {
                let entry = self.document.tape.get(self.entry)?;
                let tail = u32::try_from(self.entry).ok()?;
                self.entry = entry.next as usize;
                (entry.end as usize, tail)
            }
            b'"' => {
                let (length, escaped) = scan::string_length(rest);
                let end = start + length;
                let tail = u32::try_from(end).ok()?;
                (end, if escaped { tail | ESCAPED } else { tail })
            }
            _ => {
                let end = start + scan::scalar_length(rest);
                (end, u32::try_from(end).ok()?)
            }
        };
        self.at = end;
        Some(Raw {
            document: self.document,
            spot: Spot {
                start: u32::try_from(start).ok()?,
                rest: tail,
            },
        })
    }
}
