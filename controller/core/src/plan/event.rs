//! Events in a plan.

use popcell_api::kind::Kind;

use super::{Plane, Target};
use crate::object::{Fields, Object};

/// Longest note of an Event that every API server takes, in bytes.
pub const EVENT_NOTE_BYTES: usize = 1024;

/// Longest reason of an Event that every API server takes, in bytes. That of a condition may be longer.
pub const EVENT_REASON_BYTES: usize = 128;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For the record.
    Normal,
    /// An operator should check.
    Warning,
}

/// A Kubernetes Event. Core gives one on transitions only: an unchanged state has no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub about: Target,
    /// The uid of that object.
    pub uid: String,
    /// Normal or Warning.
    pub severity: Severity,
    /// A reason: one word for programs; at most [`EVENT_REASON_BYTES`].
    pub reason: String,
    /// For people; at most [`EVENT_NOTE_BYTES`].
    pub note: String,
}

impl Event {
    /// A Warning about an observed object; a reason or note that is too long is cut at a character: an Event that a server
    /// refuses would be lost.
    pub fn warning(plane: &Plane, kind: Kind, object: &Object, reason: &str, note: &str) -> Self {
        let about = Target::of(plane, kind, object);
        Self::of(&about, object.uid(), Severity::Warning, reason, note)
    }

    /// About an object of this uid, cut likewise.
    pub fn of(about: &Target, uid: &str, severity: Severity, reason: &str, note: &str) -> Self {
        Self {
            about: about.clone(),
            uid: uid.to_owned(),
            severity,
            reason: cut(reason, EVENT_REASON_BYTES).to_owned(),
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
    fn an_event_is_made_of_a_reason_and_a_note_of_any_length() {
        let object: Object = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a" } })).unwrap();
        let event = |reason: &str, note: &str| {
            let event = Event::warning(&Plane::Cell, popcell_api::kind::INSTANCE, &object, reason, note);
            (event.reason.len(), event.note.len())
        };
        assert_eq!(event("Rejected", "no"), (8, 2));
        let long = "é".repeat(2000);
        assert_eq!(event(&long, &long), (EVENT_REASON_BYTES, EVENT_NOTE_BYTES));
    }

    #[test]
    fn a_note_is_cut_at_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
