//! Raw statuses: counts of Instances, and conditions, which are read by type, compared by type, and set without touching those
//! of others; which reason is the worst, and which transitions are reported as events.
//!
//! Why: `docs/decisions/12-reasons-where-users-look.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions::{self as types, reasons};
use popcell_api::kind::Kind;
use serde_json::{Map, Value, json};

use crate::names::INVALID_NAME;
use crate::object::{Fields, Object};
use crate::plan::{Event, Plane, cut};

/// What Available was called before: old Instances have it, it means nothing, and it is carried to no other plane.
pub(crate) const RUNNING: &str = "Running";

/// Longest message of a condition: what its schema takes in characters, in bytes.
pub const MESSAGE_BYTES: usize = 32_768;

/// Fields of the counts of Instances, in the order in which they are written. The schema requires each of them.
pub(crate) const COUNTS: [&str; 5] = [
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
];

/// Reasons that only a change by the user ends, or a fault of a site: always shown before "on its way".
pub const BLOCKING: u8 = 3;

/// One condition as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub type_: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Cause, for programs.
    pub reason: String,
    /// Details for people.
    pub message: String,
}

impl Condition {
    /// True or False.
    pub fn new(type_: &'static str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: if holds { "True" } else { "False" },
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// As JSON, its message within [`MESSAGE_BYTES`]. The time of the last transition stays while the status does; `old` is
    /// the status that it goes into.
    pub fn render(&self, old: Option<&Value>, generation: Option<i64>, now: Timestamp) -> Value {
        let since = old
            .and_then(|status| find(status, self.type_))
            .filter(|condition| text(condition, "status") == self.status)
            .map(|condition| text(condition, "lastTransitionTime"))
            .filter(|since| !since.is_empty())
            .map_or_else(|| seconds(now), str::to_owned);
        let mut condition = json!({
            "type": self.type_,
            "status": self.status,
            "reason": self.reason,
            "message": cut(&self.message, MESSAGE_BYTES),
            "lastTransitionTime": since,
        });
        if let (Some(generation), Some(fields)) = (generation, condition.as_object_mut()) {
            fields.insert("observedGeneration".to_owned(), json!(generation));
        }
        condition
    }
}

/// A time as metav1.Time writes it: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How long ago a time is; no time at all where that is in the future, which a clock that is behind sees.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// A text inside a condition; empty where there is none.
pub fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The conditions of a status; what is no list reads as none.
pub fn all(status: &Value) -> &[Value] {
    status
        .get("conditions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The condition of one type.
pub fn find<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    all(status).iter().find(|condition| text(condition, "type") == type_)
}

/// The condition of one type in the status of an object.
pub fn of<'a>(object: &'a Object, type_: &str) -> Option<&'a Value> {
    find(object.at("/status")?, type_)
}

/// Whether an object has the condition with this status; without the condition it has not.
pub fn says(object: &Object, type_: &str, status: &str) -> bool {
    of(object, type_).is_some_and(|condition| text(condition, "status") == status)
}

/// Puts a rendered condition in the place of the one of its type, or behind the others.
pub fn put(conditions: &mut Vec<Value>, condition: Value) {
    let type_ = text(&condition, "type").to_owned();
    match conditions.iter_mut().find(|one| text(one, "type") == type_) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Puts a rendered condition into a status.
pub(crate) fn put_in(status: &mut Map<String, Value>, condition: Value) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        put(list, condition);
    }
}

/// Takes the condition of a type out of a status.
pub(crate) fn take_out(status: &mut Map<String, Value>, type_: &str) {
    if let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        list.retain(|condition| text(condition, "type") != type_);
    }
}

/// The status of `source` as it goes to `onto`, a copy on another plane, whole: a generation that a condition names is the
/// copy's where the condition was current, and the one before where it was not. Only the old condition [`RUNNING`] stays
/// behind. `None` while the source has no status.
pub(crate) fn carried(source: &Object, onto: &Object) -> Option<Value> {
    let mut status = source.at("/status").filter(|status| status.is_object())?.clone();
    let own = onto.generation().unwrap_or_default();
    if let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        list.retain(|condition| text(condition, "type") != RUNNING);
        for condition in list.iter_mut().filter_map(Value::as_object_mut) {
            let Some(seen) = condition.get("observedGeneration").and_then(Value::as_i64) else {
                condition.remove("observedGeneration");
                continue;
            };
            let current = Some(seen) == source.generation();
            let shown = if current { own } else { (own - 1).max(0) };
            condition.insert("observedGeneration".to_owned(), json!(shown));
        }
    }
    Some(status)
}

/// Whether two statuses say the same: conditions in any order, at every level where they occur. An absent status is an
/// empty one.
pub fn same_status(left: Option<&Value>, right: &Value) -> bool {
    let empty = Value::Object(Map::new());
    same(left.unwrap_or(&empty), right)
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| {
                    right.get(key).is_some_and(|other| match (key.as_str(), value, other) {
                        ("conditions", Value::Array(left), Value::Array(right)) => same_set(left, right),
                        _ => same(value, other),
                    })
                })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

fn same_set(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len()
        && left.iter().all(|one| {
            right
                .iter()
                .any(|other| text(other, "type") == text(one, "type") && other == one)
        })
}

/// Priority of a reason: the higher, the more it hides others. Unknown reasons are 0.
pub fn priority(reason: &str) -> u8 {
    match reason {
        reasons::PROVISIONING_INSTANCES | reasons::PROVISIONING => 1,
        reasons::PROVISIONING_NETWORK => 2,
        reasons::PENDING_QUOTA | reasons::QUOTA_EXCEEDED => BLOCKING,
        reasons::REJECTED => 4,
        reasons::IMAGE_UNAVAILABLE
        | reasons::INSTANCE_CRASHING
        | reasons::CONFIGURATION_ERROR
        | reasons::REFERENCED_DATA_NOT_READY => 5,
        reasons::NETWORK_NOT_FOUND | reasons::NO_MATCHING_LOCATION | reasons::INSTANCE_TYPE_NOT_FOUND => 6,
        reasons::NETWORK_FAILED_TO_CREATE => 7,
        _ if needs_an_edit(reason) => 8,
        _ => 0,
    }
}

/// Whether only a change of the object, or of the one that it conflicts with, ends it.
pub fn needs_an_edit(reason: &str) -> bool {
    matches!(
        reason,
        reasons::INVALID_CITY_CODE
            | reasons::CITY_CODE_CONFLICT
            | reasons::NAME_CONFLICT
            | reasons::LIMIT_EXCEEDED
            | INVALID_NAME
    )
}

/// A Warning when the object gets to a reason of Available that needs action; an unchanged one is not reported again.
pub(crate) fn blocked_event(plane: &Plane, kind: Kind, object: &Object, status: &Value) -> Option<Event> {
    let new = find(status, types::AVAILABLE)?;
    let reason = text(new, "reason");
    let same = said(object, types::AVAILABLE) == Some(reason);
    if !same && priority(reason) > BLOCKING {
        let message = text(new, "message");
        return Some(Event::warning(plane, kind, object, reason, message));
    }
    rejected_event(plane, kind, object, status)
}

/// A Warning when a server begins to reject what has to be written for the object, whatever runs meanwhile.
pub(crate) fn rejected_event(plane: &Plane, kind: Kind, object: &Object, status: &Value) -> Option<Event> {
    let reported = [types::AVAILABLE, types::REPLICAS_READY];
    if reported
        .iter()
        .any(|type_| said(object, type_) == Some(reasons::REJECTED))
    {
        return None;
    }
    let mut new = reported.iter().filter_map(|type_| find(status, type_));
    let new = new.find(|one| text(one, "reason") == reasons::REJECTED)?;
    let message = text(new, "message");
    Some(Event::warning(plane, kind, object, reasons::REJECTED, message))
}

/// The reason of a condition before this reconcile.
fn said<'a>(object: &'a Object, type_: &str) -> Option<&'a str> {
    of(object, type_).map(|old| text(old, "reason"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_conditions_and_keys_is_no_difference() {
        let one = json!({ "a": 1, "conditions": [{ "type": "A", "status": "True" }, { "type": "B" }],
            "placements": [{ "conditions": [{ "type": "C" }, { "type": "D" }] }] });
        let other = json!({ "conditions": [{ "type": "B" }, { "status": "True", "type": "A" }], "a": 1,
            "placements": [{ "conditions": [{ "type": "D" }, { "type": "C" }] }] });
        assert!(same_status(Some(&one), &other));
        let grown = json!({ "a": 1, "conditions": [{ "type": "A", "status": "True" }, { "type": "B" }, { "type": "E" }],
            "placements": [{ "conditions": [{ "type": "C" }, { "type": "D" }] }] });
        assert!(!same_status(Some(&one), &grown));
        assert!(same_status(None, &json!({})) && !same_status(None, &json!({ "replicas": 0 })));
    }

    #[test]
    fn a_message_is_cut_at_the_limit_of_a_condition_only() {
        let message = |length: usize| {
            let condition = Condition::new("Available", false, "A", "é".repeat(length));
            let rendered = condition.render(None, None, Timestamp::UNIX_EPOCH);
            text(&rendered, "message").len()
        };
        assert_eq!(message(1024), 2048);
        assert_eq!(message(MESSAGE_BYTES / 2), MESSAGE_BYTES);
        assert_eq!(message(MESSAGE_BYTES), MESSAGE_BYTES);
    }

    #[test]
    fn the_time_of_a_condition_stays_while_its_status_does() {
        let early: Timestamp = "2026-01-01T00:00:00.25Z".parse().unwrap();
        let late: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let first = Condition::new("Available", false, "A", "a").render(None, Some(1), early);
        assert_eq!(first["lastTransitionTime"], "2026-01-01T00:00:00Z");
        let status = json!({ "conditions": [first] });
        let same = Condition::new("Available", false, "B", "b").render(Some(&status), Some(2), late);
        assert_eq!(
            (&same["lastTransitionTime"], &same["reason"]),
            (&json!("2026-01-01T00:00:00Z"), &json!("B"))
        );
        let changed = Condition::new("Available", true, "C", "c").render(Some(&status), None, late);
        assert_eq!(changed["lastTransitionTime"], "2026-01-01T00:01:00Z");
        assert!(changed.get("observedGeneration").is_none());
    }
}
