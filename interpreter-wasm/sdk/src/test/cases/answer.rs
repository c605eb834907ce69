//! An answer in the words of a test file. Its patch is applied as strictly as Karmada does (RFC 6902): parents exist, what is
//! replaced or removed is there.

use crate::json::unescape;
use crate::module::{Aggregation, Change, Input, Output};
use crate::test::yaml::{Node, Value};
use crate::types::PatchOp;
use crate::{Component, Dependency, Json, NodeClaim, Operation, Quantity, Requirements};

/// An answer as the parts that `output` knows it by.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The parts; a part that is not there (no requirements) is skipped.
    pub parts: Vec<(&'static str, Node)>,
    /// Whether the object is left as it is; only for the operations that may change it.
    pub unchanged: Option<bool>,
    /// How many parts of the reported statuses AggregateStatus left out; `None` for other operations, and where the one
    /// who answers cannot say it (a webhook).
    pub left_out: Option<u32>,
}

impl Answer {
    /// The part with this key.
    pub fn part(&self, key: &str) -> Option<&Node> {
        self.parts.iter().find(|(name, _)| *name == key).map(|(_, part)| part)
    }

    /// The answer as one mapping.
    pub fn to_node(&self) -> Node {
        Node::made_fields(self.shown())
    }

    /// The parts, and what was skipped where there is something.
    pub fn shown(&self) -> Vec<(&'static str, Node)> {
        let left_out = self.left_out.filter(|parts| *parts > 0);
        let left_out = left_out.map(|parts| ("leftOut", number(parts.into())));
        self.parts.iter().cloned().chain(left_out).collect()
    }
}

/// The answer of an operation in the words of a test file.
///
/// # Errors
/// When the output is one of another operation, or its patch does not fit the object.
pub fn answer(operation: Operation, input: &Input, output: &Output) -> Result<Answer, String> {
    let parts = match (operation, output) {
        (Operation::InterpretReplica, Output::Replicas(found)) => {
            let mut parts = vec![("replica", number(found.replicas))];
            parts.extend(optional("requires", found.requirements.as_ref(), requirements));
            parts
        }
        (Operation::InterpretComponent, Output::Components(found)) => {
            vec![("components", list(found.iter().map(component)))]
        }
        (Operation::ReviseReplica, Output::Change(change)) => vec![("revised", changed(input, change)?)],
        (Operation::Retain, Output::Change(change)) => vec![("retained", changed(input, change)?)],
        (Operation::AggregateStatus, Output::Change(change) | Output::Aggregation(Aggregation { change, .. })) => {
            vec![("aggregatedStatus", changed(input, change)?)]
        }
        (Operation::InterpretStatus, Output::Status(found)) => vec![("status", Node::of(found))],
        (Operation::InterpretHealth, Output::Health(found)) => vec![("healthy", Node::made(Value::Bool(*found)))],
        (Operation::InterpretDependency, Output::Dependencies(found)) => {
            vec![("dependencies", list(found.iter().map(dependency)))]
        }
        (operation, other) => return Err(format!("{operation} got the answer of another operation: {other:?}")),
    };
    Ok(Answer {
        parts,
        unchanged: output.change().map(|change| matches!(change, Change::Unchanged)),
        left_out: match output {
            Output::Aggregation(aggregation) => Some(aggregation.left_out),
            _ => None,
        },
    })
}

fn changed(input: &Input, change: &Change) -> Result<Node, String> {
    match change {
        Change::Unchanged => Ok(Node::of(&input.object)),
        Change::Patch(steps) => apply(&input.object, steps).map(|after| Node::of(&after)),
    }
}

fn number(value: i64) -> Node {
    Node::made(Value::Number(value.to_string()))
}

fn list(items: impl Iterator<Item = Node>) -> Node {
    Node::made(Value::Items(items.collect()))
}

/// A field for what is there.
fn optional<T>(key: &'static str, found: Option<&T>, node: impl FnOnce(&T) -> Node) -> Option<(&'static str, Node)> {
    found.map(|found| (key, node(found)))
}

fn text(text: &String) -> Node {
    Node::made_text(text)
}

fn requirements(found: &Requirements) -> Node {
    let amount = |(name, amount): (&String, &Quantity)| (name.clone(), Node::made_text(amount.to_string()));
    let amounts = Some(&found.resource_request).filter(|amounts| !amounts.is_empty());
    let fields = [
        optional("nodeClaim", found.node_claim.as_ref(), node_claim),
        optional("resourceRequest", amounts, |amounts| {
            Node::made_fields(amounts.iter().map(amount))
        }),
        optional("namespace", found.namespace.as_ref(), text),
        optional("priorityClassName", found.priority_class_name.as_ref(), text),
    ];
    Node::made_fields(fields.into_iter().flatten())
}

fn node_claim(claim: &NodeClaim) -> Node {
    let labels = Some(&claim.node_selector).filter(|labels| !labels.is_empty());
    let tolerations = Some(&claim.tolerations).filter(|tolerations| !tolerations.is_empty());
    let fields = [
        optional("hardNodeAffinity", claim.hard_node_affinity.as_ref(), Node::of),
        optional("nodeSelector", labels, |labels| {
            Node::made_fields(labels.iter().map(|(key, value)| (key, text(value))))
        }),
        optional("tolerations", tolerations, |tolerations| {
            list(tolerations.iter().map(Node::of))
        }),
    ];
    Node::made_fields(fields.into_iter().flatten())
}

fn component(found: &Component) -> Node {
    let fields = [
        Some(("name", text(&found.name))),
        Some(("replicas", number(found.replicas))),
        optional("replicaRequirements", found.requirements.as_ref(), requirements),
    ];
    Node::made_fields(fields.into_iter().flatten())
}

fn dependency(found: &Dependency) -> Node {
    let fields = [
        Some(("apiVersion", text(&found.api_version))),
        Some(("kind", text(&found.kind))),
        optional("namespace", found.namespace.as_ref(), text),
        optional("name", found.name.as_ref(), text),
        optional("labelSelector", found.label_selector.as_ref(), Node::of),
    ];
    Node::made_fields(fields.into_iter().flatten())
}

/// The object after the steps.
fn apply(object: &Json, steps: &[PatchOp]) -> Result<Json, String> {
    let mut after = object.clone();
    for step in steps {
        apply_step(&mut after, step)
            .map_err(|message| format!("the patch cannot be applied: {} {message}", step.path()))?;
    }
    Ok(after)
}

fn apply_step(root: &mut Json, step: &PatchOp) -> Result<(), String> {
    let (value, adds) = match step {
        PatchOp::Add { value, .. } => (Some(value), true),
        PatchOp::Replace { value, .. } => (Some(value), false),
        PatchOp::Remove { .. } => (None, false),
    };
    let path = step.path();
    if let ("", Some(value)) = (path, value) {
        *root = value.clone();
        return Ok(());
    }
    let (above, last) = path.rsplit_once('/').ok_or("is not a JSON pointer")?;
    let key = unescape(last);
    let parent = root.get(above).ok_or("has no parent")?;
    let done = if let Some(items) = parent.as_items() {
        let mut items = items.to_vec();
        apply_to_items(&mut items, &key, value, adds)?;
        root.set(above, items)
    } else if !parent.is_object() {
        return Err("has a parent that is neither object nor list".to_owned());
    } else if !adds && parent.member(&key).is_none() {
        return Err("does not exist".to_owned());
    } else if let Some(value) = value {
        root.set(path, value)
    } else {
        root.remove(path).map(drop)
    };
    done.map_err(|error| error.to_string())
}

fn apply_to_items(items: &mut Vec<Json>, key: &str, value: Option<&Json>, adds: bool) -> Result<(), String> {
    let Some(value) = value else {
        let index = key.parse().ok().filter(|index| *index < items.len());
        items.remove(index.ok_or("does not exist")?);
        return Ok(());
    };
    if key == "-" && adds {
        items.push(value.clone());
        return Ok(());
    }
    let index = key.parse::<usize>().map_err(|_| format!("has no index {key:?}"))?;
    if adds && index <= items.len() {
        items.insert(index, value.clone());
    } else {
        *items.get_mut(index).ok_or("does not exist")? = value.clone();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;
    use crate::types::Gvk;

    #[test]
    fn what_was_skipped_is_shown_where_there_is_something() {
        let input = Input {
            kind: Gvk::of("v1", "A"),
            object: Object::parse("{}").unwrap(),
            observed: None,
            replicas: 0,
            items: Vec::new(),
        };
        let shown = |left_out| {
            let output = Output::Aggregation(Aggregation {
                change: Change::Unchanged,
                left_out,
            });
            let answer = answer(Operation::AggregateStatus, &input, &output).unwrap();
            answer.to_node().to_json()
        };
        assert_eq!(shown(2), r#"{"aggregatedStatus":{},"leftOut":2}"#);
        assert_eq!(shown(0), r#"{"aggregatedStatus":{}}"#);
    }
}
