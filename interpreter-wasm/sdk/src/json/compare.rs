//! Equality of meaning: the order of keys and the spelling of strings do not matter, the digits of numbers do.

use super::{Json, View};

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        if self.is_same_text(other) {
            return true;
        }
        if let (Some(a), Some(b)) = (self.raw(), other.raw())
            && a == b
        {
            return true;
        }
        if self.first_byte() == b'"' && other.first_byte() == b'"' {
            return self.as_text() == other.as_text();
        }
        match (self.view(), other.view()) {
            (View::Fields(a), View::Fields(b)) => {
                a.len() == b.len() && a.iter().all(|(key, value)| other.member(key.as_str()) == Some(value))
            }
            (View::Items(a), View::Items(b)) => a == b,
            (View::Scalar, View::Scalar) => self.is_null() && other.is_null(),
            _ => false,
        }
    }
}

impl Eq for Json {}
