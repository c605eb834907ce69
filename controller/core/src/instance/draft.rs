//! The conditions of an Instance as they are to be: ours change, all others stay as they were found. What they get to is reported
//! at the transition, and counted.

use jiff::Timestamp;
use popcell_api::conditions::{self as types, reasons};
use popcell_api::{events, kind};
use serde_json::{Map, Value, json};

use crate::conditions::{self, Condition};
use crate::metrics::quota_failures;
use crate::object::{Fields, Object};
use crate::plan::{Event, Note, Plan, Plane};

/// Longest reason that the schema takes.
const REASON_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct Draft<'a> {
    instance: &'a Object,
    now: Timestamp,
    conditions: Vec<Value>,
}

impl<'a> Draft<'a> {
    pub(super) fn of(instance: &'a Object, now: Timestamp) -> Self {
        Self {
            instance,
            now,
            conditions: instance.at("/status").map(conditions::all).unwrap_or_default().to_vec(),
        }
    }

    pub(super) fn get(&self, type_: &str) -> Option<&Value> {
        self.all().find(|one| conditions::text(one, "type") == type_)
    }

    /// Status of a condition; empty where there is none.
    pub(super) fn status_of(&self, type_: &str) -> &str {
        self.get(type_).map_or("", |one| conditions::text(one, "status"))
    }

    pub(super) fn reason_of(&self, type_: &str) -> &str {
        self.get(type_).map_or("", |one| conditions::text(one, "reason"))
    }

    pub(super) fn message_of(&self, type_: &str) -> &str {
        self.get(type_).map_or("", |one| conditions::text(one, "message"))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.conditions.iter()
    }

    /// Puts a condition of ours in, of the Instance's generation.
    pub(super) fn set(&mut self, condition: &Condition) {
        let rendered = condition.render(self.instance.at("/status"), self.instance.generation(), self.now);
        conditions::put(&mut self.conditions, rendered);
    }

    /// Adds Warnings and counts for reasons that the Instance gets to by this draft: an unchanged one is not reported again.
    pub(super) fn report_transitions(&self, plan: &mut Plan) {
        let watched: [(&str, &[&str]); 2] = [
            (types::QUOTA_GRANTED, &events::QUOTA_FAILURES),
            (types::READY, &events::STUCK),
        ];
        for (type_, named) in watched {
            let reason = self.reason_of(type_);
            let before = conditions::of(self.instance, type_).map(|old| conditions::text(old, "reason"));
            if before == Some(reason) || !named.contains(&reason) {
                continue;
            }
            let message = self.message_of(type_);
            plan.events.push(Event::warning(
                &Plane::Cell,
                kind::INSTANCE,
                self.instance,
                reason,
                message,
            ));
            plan.notes.extend(counted(reason).map(Note::QuotaFailed));
        }
    }

    /// The whole status.
    pub(super) fn status(self) -> Value {
        let old = self.instance.at("/status").and_then(Value::as_object);
        let mut status = old.cloned().unwrap_or_else(Map::new);
        status.insert("conditions".to_owned(), json!(self.conditions));
        Value::Object(status)
    }
}

/// What an Instance's own status says of quota, before this reconcile.
pub(super) fn quota_granted(instance: &Object) -> Option<&Value> {
    conditions::of(instance, types::QUOTA_GRANTED)
}

/// Whether the schema takes a text as the reason of a condition. What a server stored passes; an object that was read
/// past a schema may hold anything, and a write of it would be refused forever.
pub(super) fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.len() <= REASON_BYTES
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(word)
        && bytes.iter().all(|byte| word(byte) || b",:".contains(byte))
}

/// The value of the label `reason` of `compute_quota_eval_failures_total`.
fn counted(reason: &str) -> Option<&'static str> {
    Some(match reason {
        reasons::QUOTA_BACKEND_UNAVAILABLE => quota_failures::BACKEND_UNAVAILABLE,
        reasons::QUOTA_PROJECT_NOT_FOUND => quota_failures::PROJECT_NOT_FOUND,
        reasons::QUOTA_NAMESPACE_NOT_FOUND => quota_failures::NAMESPACE_NOT_FOUND,
        reasons::QUOTA_MISCONFIGURED => quota_failures::MISCONFIGURED,
        reasons::QUOTA_PROJECT_ID_UNRESOLVABLE => quota_failures::PROJECT_ID_UNRESOLVABLE,
        reasons::QUOTA_NO_BUDGET => quota_failures::NO_BUDGET,
        _ => return None,
    })
}
