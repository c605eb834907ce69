//! An object under a patch, read only where the patch touches it, and how much that may cost: a module cannot make the
//! host work longer than it may itself.

use std::collections::HashMap;
use std::time::Instant;

use popcell_protocol::kind_name;
use serde_json::value::RawValue;

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

/// What any check may cost.
const BASE: usize = 16 << 20;
/// What it may cost beyond that for each byte of the object and of the patch. A patch that reads an object level by level
/// costs its size for each level; one that moves the items of a long array costs their number for each step.
const PER_BYTE: usize = 16;
/// How much is done between two looks at the clock. Ordinary patches never look.
const LOOK: usize = 256 << 10;

/// Why a step of a patch is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Karmada's patch library would refuse it, for this reason.
    Refused(String),
    /// It takes more work than any patch of this size needs.
    TooMuchWork,
    /// The time of the call is over.
    Deadline,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// What is left to one check.
#[derive(Debug)]
pub(super) struct Work {
    left: usize,
    until_look: usize,
    deadline: Option<Instant>,
}

impl Work {
    /// For an object and a patch of so many bytes together.
    pub(super) fn new(bytes: usize, deadline: Option<Instant>) -> Self {
        Self {
            left: BASE.saturating_add(bytes.saturating_mul(PER_BYTE)),
            until_look: LOOK,
            deadline,
        }
    }

    /// Pays for bytes that are read or items that are moved, before that is done.
    pub(super) fn pay(&mut self, units: usize) -> Result<(), Failure> {
        self.left = self.left.checked_sub(units).ok_or(Failure::TooMuchWork)?;
        if let Some(until_look) = self.until_look.checked_sub(units) {
            self.until_look = until_look;
            return Ok(());
        }
        self.until_look = LOOK;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Failure::Deadline),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_limit_grows_with_the_object() {
        let mut work = Work::new(10, None);
        assert_eq!(work.pay(BASE), Ok(()));
        assert_eq!(work.pay(10 * PER_BYTE), Ok(()));
        assert_eq!(work.pay(1), Err(Failure::TooMuchWork));
    }

    #[test]
    fn a_deadline_that_is_over_ends_what_is_long_and_not_what_is_short() {
        let over = Instant::now().checked_sub(Duration::from_secs(1));
        let mut work = Work::new(0, over);
        assert_eq!(work.pay(LOOK), Ok(()));
        assert_eq!(work.pay(1), Err(Failure::Deadline));
        let later = Instant::now().checked_add(Duration::from_mins(1));
        let mut work = Work::new(0, later);
        assert_eq!(work.pay(LOOK), Ok(()));
        assert_eq!(work.pay(1), Ok(()));
    }
}
