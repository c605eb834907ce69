//! The conditions of an Instance as they are to be: ours change, all others stay as they were found.

use jiff::Timestamp;
use popcell_api::conditions as types;
use serde_json::{Map, Value, json};

use crate::conditions::{self, Condition};
use crate::object::{Fields, Object};

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
    conditions::find(instance.at("/status")?, types::QUOTA_GRANTED)
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
