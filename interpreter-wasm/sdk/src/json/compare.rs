//! Equality of meaning: the order of keys and the spelling of strings do not matter, the digits of numbers do.
//!
//! Two values that are text are compared as text, without looking into them: that costs time in proportion to their size
//! and next to no memory, whatever their shape.

use std::borrow::Cow;

use super::map::{Marked, sort_marks};
use super::place::Raw;
use super::{Json, View, text};

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        if self.is_same(other) {
            return true;
        }
        if let (Some(a), Some(b)) = (self.place_of_text(), other.place_of_text()) {
            let (a, b) = (a.raw(), b.raw());
            return a.text() == b.text() || same(a, b);
        }
        if self.first_byte() == b'"' && other.first_byte() == b'"' {
            return self.as_text() == other.as_text();
        }
        match (self.view(), other.view()) {
            (View::Fields(a), View::Fields(b)) => {
                let mut next = 0;
                a.len() == b.len() && a.iter().all(|(key, value)| b.get_near(key, &mut next) == Some(value))
            }
            (View::Items(a), View::Items(b)) => a == b,
            (View::Scalar, View::Scalar) => self.is_null() && other.is_null(),
            _ => false,
        }
    }
}

impl Eq for Json {}

fn same(a: Raw<'_>, b: Raw<'_>) -> bool {
    match (a.first_byte(), b.first_byte()) {
        (b'"', b'"') => decoded(a) == decoded(b),
        (b'{', b'{') => same_fields(a, b),
        (b'[', b'[') => {
            let (mut a, mut b) = (a.children(), b.children());
            loop {
                match (a.next(), b.next()) {
                    (Some(a), Some(b)) if same(a, b) => {}
                    (None, None) => return true,
                    _ => return false,
                }
            }
        }
        (one, other) => one == other && a.text() == b.text(),
    }
}

/// Objects of text with one order of keys, as two from one writer have, are compared in that order.
fn same_fields(a: Raw<'_>, b: Raw<'_>) -> bool {
    have_one_order(a, b).unwrap_or_else(|| same_sets(a, b))
}

/// Whether both mean the same, where both have the same keys in the same order; `None` where that does not tell it.
fn have_one_order(a: Raw<'_>, b: Raw<'_>) -> Option<bool> {
    // The keys alone first: each value is compared once, since a second time at every level would be a power of the depth.
    let (mut one, mut other) = (a.children(), b.children());
    let (mut before, mut rises) = (None, true);
    while let (Some(x), Some(y)) = (one.next(), other.next()) {
        if x.is_escaped() || y.is_escaped() || x.inner_bytes() != y.inner_bytes() {
            return None;
        }
        rises = rises && before.is_none_or(|before| before < x.inner_bytes());
        before = Some(x.inner_bytes());
        one.next();
        other.next();
    }
    let have_one_length = one.next().is_none() && other.next().is_none();
    if !have_one_length || !rises {
        return None;
    }
    let (mut one, mut other) = (a.children(), b.children());
    while let (Some(_), Some(_)) = (one.next(), other.next()) {
        let (Some(x), Some(y)) = (one.next(), other.next()) else {
            break;
        };
        if !same(x, y) {
            return Some(false);
        }
    }
    Some(true)
}

fn same_sets(a: Raw<'_>, b: Raw<'_>) -> bool {
    let (a, b) = (sorted(a), sorted(b));
    a.len() == b.len()
        && a.iter()
            .zip(&b)
            .all(|((one, a), (other, b))| one == other && same(*a, *b))
}

/// The fields in an order that depends on the keys alone; of duplicates the last one.
fn sorted(object: Raw<'_>) -> Vec<(Cow<'_, str>, Raw<'_>)> {
    let mut fields = Vec::new();
    let mut children = object.children();
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        fields.push((decoded(key), value));
    }
    let key = |position: usize| fields.get(position).map_or("", |(key, _)| &**key);
    let mark = |position| Marked::new(key(position), u32::try_from(position).unwrap_or(u32::MAX));
    let mut marks: Vec<Marked> = (0..fields.len()).map(mark).collect();
    sort_marks(&mut marks, key);
    // Backwards, so that the last of one key comes first and stays.
    marks.reverse();
    marks.dedup_by(|later, kept| key(later.position()) == key(kept.position()));
    marks
        .iter()
        .filter_map(|mark| fields.get(mark.position()).cloned())
        .collect()
}

fn decoded(string: Raw<'_>) -> Cow<'_, str> {
    if string.is_escaped() {
        Cow::Owned(text::unquote(string.inner()))
    } else {
        Cow::Borrowed(string.inner())
    }
}
