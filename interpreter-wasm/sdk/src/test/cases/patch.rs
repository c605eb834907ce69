//! Applies an answer's patch as strictly as Karmada does (RFC 6902): parents exist, what is replaced or removed is there.

use crate::json::unescape;
use crate::test::yaml::{Field, Node, Value};
use crate::types::PatchOp;

/// The node after the steps.
pub(super) fn apply(object: &Node, steps: &[PatchOp]) -> Result<Node, String> {
    let mut after = object.clone();
    for step in steps {
        let applied = match step {
            PatchOp::Add { path, value } => set(&mut after, path, Node::of(value), true),
            PatchOp::Replace { path, value } => set(&mut after, path, Node::of(value), false),
            PatchOp::Remove { path } => remove(&mut after, path),
        };
        applied.map_err(|message| format!("the patch cannot be applied: {} {message}", step.path()))?;
    }
    Ok(after)
}

fn set(root: &mut Node, path: &str, value: Node, add: bool) -> Result<(), String> {
    if path.is_empty() {
        *root = value;
        return Ok(());
    }
    let (parent, key) = parent(root, path)?;
    match &mut parent.value {
        Value::Fields(fields) => match fields.iter_mut().find(|field| field.key == key) {
            Some(field) => field.value = value,
            None if add => fields.push(Field {
                key,
                at: value.at,
                value,
            }),
            None => return Err("does not exist".to_owned()),
        },
        Value::Items(items) => {
            if key == "-" && add {
                items.push(value);
                return Ok(());
            }
            let index = key.parse::<usize>().map_err(|_| format!("has no index {key:?}"))?;
            if add && index <= items.len() {
                items.insert(index, value);
            } else {
                *items.get_mut(index).ok_or("does not exist")? = value;
            }
        }
        _ => return Err("has a parent that is neither object nor list".to_owned()),
    }
    Ok(())
}

fn remove(root: &mut Node, path: &str) -> Result<(), String> {
    let (parent, key) = parent(root, path)?;
    let removed = match &mut parent.value {
        Value::Fields(fields) => {
            let before = fields.len();
            fields.retain(|field| field.key != key);
            fields.len() < before
        }
        Value::Items(items) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    };
    if removed {
        Ok(())
    } else {
        Err("does not exist".to_owned())
    }
}

/// The node above the last token of `path`, and that token.
fn parent<'a>(root: &'a mut Node, path: &str) -> Result<(&'a mut Node, String), String> {
    let (above, last) = path.rsplit_once('/').ok_or("is not a JSON pointer")?;
    let mut node = root;
    for token in above.split('/').skip(1) {
        let key = unescape(token);
        node = match &mut node.value {
            Value::Fields(fields) => fields
                .iter_mut()
                .find(|field| field.key == key)
                .map(|field| &mut field.value),
            Value::Items(items) => key.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        }
        .ok_or("has no parent")?;
    }
    Ok((node, unescape(last).into_owned()))
}
