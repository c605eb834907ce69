//! Events in a plan.

use popcell_api::kind::Kind;

use super::{Plane, Target};
use crate::object::{Fields, Object};

/// Longest note of an Event that every API server takes, in bytes.
pub const EVENT_NOTE_BYTES: usize = 1024;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// A Kubernetes Event. Core gives one on transitions only: an unchanged world has no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub about: Target,
    /// The uid of that object.
    pub uid: String,
    /// Normal or Warning.
    pub severity: Severity,
    /// A reason: one word for programs.
    pub reason: String,
    /// For people; at most [`EVENT_NOTE_BYTES`].
    pub note: String,
}

impl Event {
    /// A Warning about an observed object; a note that is too long is cut at a character.
    pub fn warning(plane: &Plane, kind: Kind, object: &Object, reason: &str, note: &str) -> Self {
        Self {
            about: Target::of(plane, kind, object),
            uid: object.uid().to_owned(),
            severity: Severity::Warning,
            reason: reason.to_owned(),
            note: cut(note, EVENT_NOTE_BYTES).to_owned(),
        }
    }
}

/// The longest start of a text that is at most `bytes` long and ends at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_at_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
