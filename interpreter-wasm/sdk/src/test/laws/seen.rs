//! What the test files mention, as questions that a law can ask.

use crate::Operation;
use crate::test::cases::Case;
use crate::test::yaml::{Node, Value};
use crate::types::Gvk;

/// So many observed objects are put beside each desired one for Retain, and so many statuses into one aggregation.
const PARTNERS: usize = 4;

/// Every object and every list of status items of some test files. Equal ones are kept once.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    objects: Vec<Object>,
    retained: Vec<(String, Node)>,
    aggregated: Vec<(String, Node)>,
}

#[derive(Debug, Clone)]
struct Object {
    origin: String,
    kind: Gvk,
    node: Node,
}

impl Seen {
    /// Collects what the cases mention.
    pub fn of<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut seen = Self::default();
        for case in cases {
            let origin = |node: &Node| format!("{}:{}", case.file.display(), node.at.line);
            for key in ["desiredObj", "observedObj"] {
                if let Some(node) = case.source.field(key).filter(|node| node.fields().is_some()) {
                    seen.add_object(origin(node), node);
                }
            }
            let parts = |keys: &[&str]| {
                let parts = keys
                    .iter()
                    .filter_map(|key| Some((*key, case.source.field(key)?.clone())));
                Node::made_fields(parts.collect::<Vec<_>>())
            };
            match case.operation {
                Operation::Retain => {
                    seen.retained
                        .push((origin(&case.source), parts(&["desiredObj", "observedObj"])));
                }
                Operation::AggregateStatus => {
                    seen.aggregated.push((
                        origin(&case.source),
                        parts(&["desiredObj", "observedObj", "statusItems"]),
                    ));
                }
                _ => {}
            }
        }
        seen
    }

    fn add_object(&mut self, origin: String, node: &Node) {
        let text = |key| node.field(key).and_then(Node::text).unwrap_or_default();
        let kind = Gvk::of(text("apiVersion"), text("kind"));
        let json = node.to_json();
        if self.objects.iter().all(|known| known.node.to_json() != json) {
            self.objects.push(Object {
                origin,
                kind,
                node: node.clone(),
            });
        }
    }

    /// The questions for an operation, with the place that each comes from. Each is a mapping with the keys of a test
    /// document (`desiredObj`, `observedObj`, `statusItems`).
    pub fn questions(&self, operation: Operation, kinds: &[Gvk]) -> Vec<(String, Node)> {
        let objects: Vec<&Object> = self
            .objects
            .iter()
            .filter(|object| kinds.contains(&object.kind))
            .collect();
        match operation {
            Operation::Retain => self.retained.iter().cloned().chain(pairs(&objects)).collect(),
            Operation::AggregateStatus => self.aggregated.iter().cloned().chain(aggregations(&objects)).collect(),
            _ => objects
                .iter()
                .map(|object| (object.origin.clone(), question(operation, &object.node)))
                .collect(),
        }
    }
}

/// The question about one object, under the key that a test of the operation uses.
fn question(operation: Operation, object: &Node) -> Node {
    let of_member = matches!(operation, Operation::InterpretStatus | Operation::InterpretHealth);
    let key = if of_member { "observedObj" } else { "desiredObj" };
    Node::made_fields([(key, object.clone())])
}

/// Each object beside itself and a few others of its kind.
fn pairs(objects: &[&Object]) -> Vec<(String, Node)> {
    let mut pairs = Vec::new();
    for (index, desired) in objects.iter().enumerate() {
        let others = objects.iter().cycle().skip(index).take(objects.len().min(PARTNERS));
        for observed in others.filter(|other| other.kind == desired.kind) {
            let fields = [
                ("desiredObj", desired.node.clone()),
                ("observedObj", observed.node.clone()),
            ];
            pairs.push((desired.origin.clone(), Node::made_fields(fields)));
        }
    }
    pairs
}

/// Each object with no item, and with the statuses of a few objects of its kind as the items.
fn aggregations(objects: &[&Object]) -> Vec<(String, Node)> {
    let mut questions = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        questions.push((
            object.origin.clone(),
            question(Operation::AggregateStatus, &object.node),
        ));
        let others = objects.iter().cycle().skip(index).take(objects.len().min(PARTNERS));
        let items: Vec<Node> = others
            .filter(|other| other.kind == object.kind)
            .filter_map(|other| other.node.field("status"))
            .enumerate()
            .map(|(index, status)| {
                Node::made_fields([
                    ("clusterName", Node::made_text(format!("member{}", index + 1))),
                    ("applied", Node::made(Value::Bool(true))),
                    ("status", status.clone()),
                ])
            })
            .collect();
        if !items.is_empty() {
            let items = Node::made(Value::Items(items));
            let fields = [("desiredObj", object.node.clone()), ("statusItems", items)];
            questions.push((object.origin.clone(), Node::made_fields(fields)));
        }
    }
    questions
}
