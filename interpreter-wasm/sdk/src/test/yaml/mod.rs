//! YAML as Kubernetes reads it, with the place of every value.
//!
//! On granit-parser 2.2, the parser under serde-saphyr, and not on serde-saphyr or another reader into serde's types: those
//! lose the place of a value, which every message names, and pass numbers through `i64` and `f64`, while a test has to hand a
//! module the digits that were written.
//!
//! Invariants:
//! - numbers keep their digits: nothing passes through a float, so 9007199254740993 and `2.0` stay what they are;
//! - every node knows the line and column where it was written, also behind an alias;
//! - a key that is written twice is an error here (the author of a test wants to hear of it), although objects that
//!   arrive from a cluster take the last one.

mod read;
mod scalar;

use std::fmt;

use crate::Json;
use crate::json::unescape;

pub use read::documents;

/// A place in a file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// One value of a document and where it was written.
#[derive(Debug, Clone)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where it begins.
    pub at: Position,
}

/// What can be written: JSON's types, numbers as text in JSON's grammar.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true`, `false` and the older spellings that Kubernetes still takes (`yes`, `off`, ...).
    Bool(bool),
    /// A number, in JSON's grammar, digits kept.
    Number(String),
    /// Text.
    Text(String),
    /// A sequence.
    Items(Vec<Node>),
    /// A mapping, in the order of the file.
    Fields(Vec<Field>),
}

/// One entry of a mapping.
#[derive(Debug, Clone)]
pub struct Field {
    /// The key.
    pub key: String,
    /// Where the key begins.
    pub at: Position,
    /// The value.
    pub value: Node,
}

/// Why a text is not YAML that Kubernetes would take, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// Where.
    pub at: Position,
    /// What is wrong.
    pub message: String,
}

impl YamlError {
    pub(super) fn new(at: Position, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

impl Node {
    /// A node that no file holds.
    pub fn made(value: Value) -> Self {
        Self {
            value,
            at: Position { line: 0, column: 0 },
        }
    }

    /// Text that no file holds.
    pub fn made_text(text: impl Into<String>) -> Self {
        Self::made(Value::Text(text.into()))
    }

    /// A mapping that no file holds.
    pub fn made_fields<K: Into<String>>(fields: impl IntoIterator<Item = (K, Self)>) -> Self {
        let field = |(key, value): (K, Self)| Field {
            key: key.into(),
            at: value.at,
            value,
        };
        Self::made(Value::Fields(fields.into_iter().map(field).collect()))
    }

    /// The node of a JSON value.
    pub fn of(json: &Json) -> Self {
        if json.is_null() {
            return Self::made(Value::Null);
        }
        if let Ok(Some(fields)) = json.fields("") {
            return Self::made_fields(fields.map(|(key, value)| (key, Self::of(value))));
        }
        Self::made(match (json.items(""), json.text(""), json.bool("")) {
            (Ok(Some(items)), _, _) => Value::Items(items.iter().map(Self::of).collect()),
            (_, Ok(Some(text)), _) => Value::Text(text.to_owned()),
            (_, _, Ok(Some(value))) => Value::Bool(value),
            _ => Value::Number(json.to_text()),
        })
    }

    /// The value of a field, when this is a mapping that has it.
    pub fn field(&self, key: &str) -> Option<&Node> {
        self.fields()?
            .iter()
            .find(|field| field.key == key)
            .map(|field| &field.value)
    }

    /// The entries, when this is a mapping.
    pub fn fields(&self) -> Option<&[Field]> {
        match &self.value {
            Value::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// The text, when this is text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether nothing was written.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value at a JSON pointer (RFC 6901), or the deepest one on the way that exists.
    pub fn nearest(&self, pointer: &str) -> &Node {
        let mut node = self;
        for token in pointer.split('/').skip(1) {
            let key = unescape(token);
            let next = match &node.value {
                Value::Items(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => node.field(&key),
            };
            let Some(next) = next else { return node };
            node = next;
        }
        node
    }

    /// The node as JSON text.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(digits) => out.push_str(digits),
            Value::Text(text) => out.push_str(&json_text(text)),
            Value::Items(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Fields(fields) => {
                out.push('{');
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&json_text(&field.key));
                    out.push(':');
                    field.value.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// The same value with the keys of every mapping sorted: two nodes that mean the same give the same text.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let value = match &self.value {
            Value::Items(items) => Value::Items(items.iter().map(Self::sorted).collect()),
            Value::Fields(fields) => {
                let mut fields: Vec<Field> = fields
                    .iter()
                    .map(|field| Field {
                        key: field.key.clone(),
                        at: field.at,
                        value: field.value.sorted(),
                    })
                    .collect();
                fields.sort_by(|one, other| one.key.cmp(&other.key));
                Value::Fields(fields)
            }
            other => other.clone(),
        };
        Self { value, at: self.at }
    }

    /// How many values this is, itself included.
    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Items(items) => items.iter().map(Node::count).sum(),
            Value::Fields(fields) => fields.iter().map(|field| field.value.count()).sum(),
            _ => 0,
        }
    }
}

impl fmt::Display for Node {
    /// Names the value for a message: `"two"`, `3`, `a mapping`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => formatter.write_str("nothing"),
            Value::Items(_) => formatter.write_str("a list"),
            Value::Fields(_) => formatter.write_str("a mapping"),
            Value::Bool(_) | Value::Number(_) | Value::Text(_) => formatter.write_str(&self.to_json()),
        }
    }
}

/// A text as a JSON string, quotes included.
fn json_text(text: &str) -> String {
    Json::from(text).to_text()
}

/// The node as block style YAML, two spaces deep per level, ending in a line break. Reading it again gives the node.
pub fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match inline(node) {
        Some(text) => {
            out.push_str(&text);
            out.push('\n');
        }
        None => block(node, 0, &mut out),
    }
    out
}

/// The node on one line, where that is the usual way to write it.
fn inline(node: &Node) -> Option<String> {
    Some(match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(digits) => digits.clone(),
        Value::Text(text) => text_scalar(text),
        Value::Items(items) if items.is_empty() => "[]".to_owned(),
        Value::Fields(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Items(_) | Value::Fields(_) => return None,
    })
}

fn block(node: &Node, depth: usize, out: &mut String) {
    match &node.value {
        Value::Fields(fields) => {
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                out.push_str(&text_scalar(&field.key));
                out.push(':');
                nested(&field.value, depth, out);
            }
        }
        Value::Items(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                out.push_str("- ");
                match inline(item) {
                    Some(text) => {
                        out.push_str(&text);
                        out.push('\n');
                    }
                    None => block(item, depth + 1, out),
                }
            }
        }
        _ => {}
    }
}

/// What follows `key:`. A list stands at the depth of its key, as Kubernetes writes it.
fn nested(value: &Node, depth: usize, out: &mut String) {
    if let Some(text) = inline(value) {
        out.push(' ');
        out.push_str(&text);
        out.push('\n');
        return;
    }
    let depth = if matches!(value.value, Value::Items(_)) {
        depth
    } else {
        depth + 1
    };
    out.push('\n');
    indent(depth, out);
    block(value, depth, out);
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// The text without quotes where it would be read as the same text again, else as a JSON string.
fn text_scalar(text: &str) -> String {
    let harmless = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '_' | '-');
    let plain = text.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '.' | '/' | '_'))
        && text.chars().all(harmless)
        && matches!(scalar::resolve(text, true, None), Ok(scalar::Scalar::Text(_)));
    if plain { text.to_owned() } else { json_text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_it_would_read() {
        let text = "apiVersion: example.io/v1\nspec:\n  none: {}\n  list:\n  - a: 1\n    b: \"2\"\n  - - x\n    - null\n  \
                    \"on\": true\n  empty: \"\"\n  dash: \"-\"\n  big: 9007199254740993\n";
        let node = documents(text).unwrap().remove(0);
        assert_eq!(to_yaml(&node), text);
        assert_eq!(documents(&to_yaml(&node)).unwrap()[0].to_json(), node.to_json());
    }

    #[test]
    fn quotes_what_would_change_its_meaning() {
        for (text, written) in [
            ("yes", "\"yes\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("a\nb", "\"a\\nb\""),
        ] {
            assert_eq!(text_scalar(text), written);
        }
    }
}
