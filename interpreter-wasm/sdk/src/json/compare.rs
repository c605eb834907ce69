//! Equality of meaning: the order of keys and the spelling of strings do not matter, the digits of numbers do.
//!
//! Two values that are text are compared as text, without looking into them: that costs time in proportion to their size
//! and next to no memory, whatever their shape.

use std::borrow::Cow;

use super::place::Raw;
use super::{Json, View, string};

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
        (b'"', b'"') => text(a) == text(b),
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

/// Each value is compared once: a second look at every level would make it a power of the depth.
fn same_fields(a: Raw<'_>, b: Raw<'_>) -> bool {
    if have_one_order(a, b) {
        let (mut a, mut b) = (a.children(), b.children());
        while let (Some(_), Some(_)) = (a.next(), b.next()) {
            let (Some(one), Some(other)) = (a.next(), b.next()) else {
                return false;
            };
            if !same(one, other) {
                return false;
            }
        }
        return true;
    }
    let (a, b) = (sorted(a), sorted(b));
    a.len() == b.len()
        && a.iter()
            .zip(&b)
            .all(|((one, a), (other, b))| one == other && same(*a, *b))
}

/// Whether both have the same keys in the same, ascending order, as Go writes them, so that no key is there twice.
fn have_one_order(a: Raw<'_>, b: Raw<'_>) -> bool {
    let (mut a, mut b) = (a.children(), b.children());
    let mut before: Option<&str> = None;
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) => {
                let rises = before.is_none_or(|before| before < one.inner());
                if one.is_escaped() || other.is_escaped() || one.inner() != other.inner() || !rises {
                    return false;
                }
                before = Some(one.inner());
            }
            _ => return false,
        }
        a.next();
        b.next();
    }
}

/// The fields by key; of duplicates the last one.
fn sorted(object: Raw<'_>) -> Vec<(Cow<'_, str>, Raw<'_>)> {
    let mut fields = Vec::new();
    let mut children = object.children();
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        fields.push((text(key), value));
    }
    // Stable, and backwards: the last of one key stands first and stays.
    fields.reverse();
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.dedup_by(|(later, _), (kept, _)| later == kept);
    fields
}

fn text(string: Raw<'_>) -> Cow<'_, str> {
    if string.is_escaped() {
        Cow::Owned(string::unquote(string.inner()))
    } else {
        Cow::Borrowed(string.inner())
    }
}
