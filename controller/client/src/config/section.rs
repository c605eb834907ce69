//! Strict reading of one mapping of the file: every key is read by name and type, and what is left over is refused.
//! `null` is as if the key were absent, as in Kubernetes.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::ConfigError;

/// A mapping at a path of the file.
#[derive(Debug)]
pub(super) struct Section<'f> {
    file: &'f Path,
    path: String,
    fields: Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'f> Section<'f> {
    /// The root of a file with this text.
    pub(super) fn root(file: &'f Path, text: &str) -> Result<Self, ConfigError> {
        let value = serde_saphyr::from_str(text).map_err(|error| ConfigError::Syntax {
            file: PathBuf::from(file),
            reason: error.without_snippet().to_string(),
        })?;
        let bare = Self {
            file,
            path: String::new(),
            fields: Map::new(),
            known: Vec::new(),
        };
        match value {
            Value::Object(fields) => Ok(Self { fields, ..bare }),
            other => Err(bare.refuse("the file", format!("must be a mapping, not {}", named(&other)))),
        }
    }

    /// A text; an empty one is as if it were absent.
    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(other) => Err(self.wrong(key, "text; put it in quotes", &other)),
        }
    }

    /// A switch.
    pub(super) fn switch(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(on)),
            Some(other) => Err(self.wrong(key, "true or false, without quotes", &other)),
        }
    }

    /// A port.
    pub(super) fn port(&mut self, key: &'static str) -> Result<Option<u16>, ConfigError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        match port.filter(|port| *port > 0) {
            Some(port) => Ok(Some(port)),
            None => Err(self.wrong(key, "a number from 1 to 65535, without quotes", &value)),
        }
    }

    /// A mapping; `None` where it is absent.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Self>, ConfigError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self {
                file: self.file,
                path: self.join(key),
                fields,
                known: Vec::new(),
            })),
            Some(other) => Err(self.wrong(key, "a mapping", &other)),
        }
    }

    /// Refuses a value that is of the right type: what is wrong, and the remedy.
    pub(super) fn refuse(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::Field {
            file: PathBuf::from(self.file),
            path: self.join(key),
            problem: problem.into(),
        }
    }

    /// Refuses a key that upstream's operator knows and popcell does not serve, when it is set.
    pub(super) fn unsupported(&mut self, key: &'static str, remedy: &str) -> Result<(), ConfigError> {
        match self.take(key) {
            None => Ok(()),
            Some(Value::String(text)) if text.is_empty() => Ok(()),
            Some(Value::Object(fields)) if fields.is_empty() => Ok(()),
            Some(_) => Err(self.refuse(key, format!("is not supported: {remedy}"))),
        }
    }

    /// Refuses keys that nobody asked for.
    pub(super) fn end(self) -> Result<(), ConfigError> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(self.refuse(
                key,
                format!("unknown key: remove it; known here: {}", self.known.join(", ")),
            )),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.fields.remove(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> ConfigError {
        self.refuse(key, format!("must be {expected}; it is {}", named(found)))
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

/// A value in a message. Texts are not shown: one may be a secret in the wrong place.
fn named(value: &Value) -> String {
    match value {
        Value::Null => "empty".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}
