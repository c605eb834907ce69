//! An object under a patch, read only where the patch touches it.

use std::collections::HashMap;

use popcell_protocol::kind_name;
use serde_json::value::RawValue;

use super::work::{Failure, Work};

/// A JSON value; unread parts are still text.
pub(super) enum Node<'a> {
    Raw(&'a str),
    Object(HashMap<String, Node<'a>>),
    Array(Vec<Node<'a>>),
}

/// One step of a patch, applied in the order given. The message says why Karmada's patch library would fail.
pub(super) enum Step<'a> {
    Add(&'a str),
    Replace(&'a str),
    Remove,
}

impl<'a> Node<'a> {
    /// Applies a step at a path of at least one name.
    pub(super) fn apply(&mut self, path: &[String], step: &Step<'a>, work: &mut Work) -> Result<(), Failure> {
        let Some((last, parents)) = path.split_last() else {
            return Err("would replace the whole object".to_owned().into());
        };
        let mut node = self;
        for name in parents {
            node = node
                .child(name, work)?
                .ok_or_else(|| format!("{name:?}, on the way, does not exist"))?;
        }
        node.open(work)?;
        match node {
            Self::Object(fields) => Ok(apply_to_object(fields, last, step)?),
            Self::Array(items) => apply_to_array(items, last, step, work),
            Self::Raw(text) => Err(format!("its parent is {}", kind_name(text)).into()),
        }
    }

    /// The text of what is at a path, if it is there and unread; `Some("")` if it was read.
    pub(super) fn find(&mut self, path: &[String], work: &mut Work) -> Result<Option<&'a str>, Failure> {
        let mut node = self;
        for name in path {
            match node.child(name, work)? {
                Some(child) => node = child,
                None => return Ok(None),
            }
        }
        Ok(Some(match node {
            Self::Raw(text) => text,
            _ => "",
        }))
    }

    /// `None` where there is none, or where this cannot be read.
    fn child(&mut self, name: &str, work: &mut Work) -> Result<Option<&mut Self>, Failure> {
        match self.open(work) {
            Ok(()) | Err(Failure::Refused(_)) => {}
            Err(failure) => return Err(failure),
        }
        Ok(match self {
            Self::Object(fields) => fields.get_mut(name),
            Self::Array(items) => index(name).and_then(|index| items.get_mut(index)),
            // Also where it could not be read.
            Self::Raw(_) => None,
        })
    }

    /// Reads one level of a value that is still text. Of duplicate keys the last counts, as for Karmada.
    fn open(&mut self, work: &mut Work) -> Result<(), Failure> {
        let Self::Raw(text) = self else { return Ok(()) };
        let text: &'a str = text;
        work.pay(text.len())?;
        let unreadable = |error: serde_json::Error| format!("its parent cannot be read: {error}");
        match text.trim_ascii_start().as_bytes().first() {
            Some(b'{') => {
                let fields: HashMap<String, &'a RawValue> = serde_json::from_str(text).map_err(unreadable)?;
                *self = Self::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name, Self::Raw(value.get())))
                        .collect(),
                );
            }
            Some(b'[') => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).map_err(unreadable)?;
                *self = Self::Array(items.into_iter().map(|value| Self::Raw(value.get())).collect());
            }
            _ => {}
        }
        Ok(())
    }
}

fn apply_to_object<'a>(fields: &mut HashMap<String, Node<'a>>, name: &str, step: &Step<'a>) -> Result<(), String> {
    match step {
        Step::Add(value) => {
            fields.insert(name.to_owned(), Node::Raw(value));
        }
        Step::Replace(value) => *fields.get_mut(name).ok_or_else(missing)? = Node::Raw(value),
        Step::Remove => {
            fields.remove(name).ok_or_else(missing)?;
        }
    }
    Ok(())
}

fn apply_to_array<'a>(items: &mut Vec<Node<'a>>, name: &str, step: &Step<'a>, work: &mut Work) -> Result<(), Failure> {
    let length = items.len();
    let at = if name == "-" { Some(length) } else { index(name) };
    let outside = || format!("{name:?} is no position in an array of {length}");
    // What stands behind the place moves.
    let mut moved = |at: usize| work.pay(length - at);
    match step {
        Step::Add(value) => {
            let at = at.filter(|at| *at <= length).ok_or_else(outside)?;
            moved(at)?;
            items.insert(at, Node::Raw(value));
        }
        Step::Replace(value) => *at.and_then(|at| items.get_mut(at)).ok_or_else(outside)? = Node::Raw(value),
        Step::Remove => {
            let at = at.filter(|at| *at < length).ok_or_else(outside)?;
            moved(at)?;
            drop(items.remove(at));
        }
    }
    Ok(())
}

fn missing() -> String {
    "does not exist".to_owned()
}

/// RFC 6901: digits without leading zeros.
fn index(name: &str) -> Option<usize> {
    let is_number = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
    name.parse().ok().filter(|_| is_number)
}
