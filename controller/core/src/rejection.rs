//! What a server refused of an earlier reconcile, in its own words, for the status of whoever asked for it.
//!
//! A reconcile that was refused is decided again with the refusal in view: its status says so, and its writes stay in the
//! plan, so that they are tried again.

use std::fmt::Write;

use crate::conditions::MESSAGE_BYTES;
use crate::plan::{Action, Plan, Plane, Target, cut};

/// What no action of a plan is.
const STATUS: &str = "status";

/// One write that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The object that was to be written.
    pub target: Target,
    /// What was tried: `create`, `patch`, `delete` or `status`.
    pub verb: &'static str,
    words: String,
}

impl Rejection {
    /// The server's words are made fit to be shown: on one line, and no longer than a condition takes.
    pub fn new(target: &Target, verb: &'static str, words: &str) -> Self {
        Self {
            target: target.clone(),
            verb,
            words: cut(&shown(words), MESSAGE_BYTES).to_owned(),
        }
    }

    /// The same of the status of an object, which is not shown in it.
    pub fn of_status(target: &Target, words: &str) -> Self {
        Self::new(target, STATUS, words)
    }

    /// For people.
    pub fn message(&self) -> String {
        let what = match self.verb {
            "create" => "creation",
            "delete" => "deletion",
            STATUS => "change of the status",
            _ => "change",
        };
        let Target { plane, kind, name, .. } = &self.target;
        // Users do not know that there is a hub.
        let server = match plane {
            Plane::Hub => "platform".to_owned(),
            plane => plane.to_string(),
        };
        format!(
            "The {server} rejects the {what} of {} {name}: {}",
            kind.kind, self.words
        )
    }

    /// Whether it is about the same write, whatever the server says.
    pub fn is_like(&self, other: &Self) -> bool {
        self.target == other.target && self.verb == other.verb
    }

    fn is_of(&self, action: &Action) -> bool {
        self.verb == action.verb() && self.target == *action.target()
    }
}

/// The first of them that is about a write of this plan: a write that is no longer planned is no longer refused.
pub(crate) fn of_plan<'a>(plan: &Plan, rejected: &'a [Rejection]) -> Option<&'a Rejection> {
    rejected
        .iter()
        .find(|one| plan.writes().any(|action| one.is_of(action)))
}

/// What was refused of an action before.
pub(crate) fn of_action<'a>(action: &Action, rejected: &'a [Rejection]) -> Option<&'a Rejection> {
    rejected.iter().find(|one| one.is_of(action))
}

/// A text on one line: what would break it, steer a terminal or turn the direction of a text is escaped.
pub fn shown(words: &str) -> String {
    let mut shown = String::with_capacity(words.len());
    for one in words.chars() {
        let turns = matches!(one, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if one.is_control() || turns {
            // Writing to a text does not fail.
            let _ = write!(shown, "{}", one.escape_default());
        } else {
            shown.push(one);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::INSTANCE;

    use super::*;

    fn target() -> Target {
        Target::namespaced(&Plane::Cell, INSTANCE, "ns-1", "web-0")
    }

    #[test]
    fn a_refusal_names_plane_verb_object_and_the_words_of_the_server() {
        for (verb, what) in [("create", "creation"), ("patch", "change"), ("delete", "deletion")] {
            let expected = format!("The cell rejects the {what} of Instance web-0: not here");
            assert_eq!(Rejection::new(&target(), verb, "not here").message(), expected);
        }
    }

    #[test]
    fn words_stay_on_one_line_and_within_the_limit_of_a_condition() {
        let said = Rejection::new(&target(), "create", "a\nb\t\u{1b}[31m\u{202e}é");
        assert!(
            said.message().ends_with(r"web-0: a\nb\t\u{1b}[31m\u{202e}é"),
            "{}",
            said.message()
        );
        let status = Rejection::of_status(&target(), "no");
        assert_eq!(
            status.message(),
            "The cell rejects the change of the status of Instance web-0: no"
        );
        let long = Rejection::new(&target(), "create", &"é".repeat(MESSAGE_BYTES));
        assert!(long.message().len() <= MESSAGE_BYTES + 100);
    }
}
