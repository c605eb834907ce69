//! What the test files mention, as questions that a law can ask; and odd documents made of them, such as other people's
//! modules have met: a field that is missing, null or of another type. And the way back: a document that breaks a law
//! made as small as possible, so that a person sees what matters.

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

/// So often a smaller document is tried; each try asks the module.
const MAX_TRIES: usize = 2_000;

/// What a field can become. The first is "missing".
fn oddities() -> [Option<Value>; 7] {
    [
        None,
        Some(Value::Null),
        Some(Value::Text("odd".to_owned())),
        Some(Value::Number("2.0".to_owned())),
        Some(Value::Items(Vec::new())),
        Some(Value::Fields(Vec::new())),
        Some(Value::Items(vec![Node::made(Value::Null)])),
    ]
}

/// Where a value stands: the position of the entry at each level.
type Path = Vec<usize>;

/// The odd documents of some seeds with the index of their seed, at most `limit`, evenly spread.
pub(super) fn spread(seeds: &[(String, Node)], limit: usize) -> Vec<(usize, Node)> {
    let places: Vec<(usize, Path)> = seeds
        .iter()
        .enumerate()
        .flat_map(|(index, (_, document))| paths(document).into_iter().map(move |path| (index, path)))
        .collect();
    let oddities = oddities();
    let all = places.len() * oddities.len();
    // A step that shares no factor with the number of oddities meets all of them.
    let mut step = all.div_ceil(limit.max(1)).max(1);
    while step > 1 && step.is_multiple_of(oddities.len()) {
        step += 1;
    }
    (0..all)
        .step_by(step)
        .filter_map(|number| {
            let (index, path) = places.get(number / oddities.len())?;
            let oddity = oddities.get(number % oddities.len())?;
            Some((*index, changed(&seeds.get(*index)?.1, path, oddity.clone())?))
        })
        .collect()
}

/// The smallest document found for which `breaks` is still true, by leaving out one value after the other. Places
/// above others are tried first, so that large parts go early.
pub(super) fn smallest(document: &Node, breaks: impl Fn(&Node) -> bool) -> Node {
    let mut best = document.clone();
    let mut tries = 0;
    loop {
        let mut places = Vec::new();
        collect(&best, &mut Vec::new(), &mut places);
        let smaller = places.into_iter().find_map(|path| {
            tries += 1;
            if tries > MAX_TRIES {
                return None;
            }
            changed(&best, &path, None).filter(|smaller| breaks(smaller))
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// The places below the objects and below the status of the items. The parts of the question itself stay.
fn paths(document: &Node) -> Vec<Path> {
    let mut found = Vec::new();
    for (index, field) in document.fields().unwrap_or_default().iter().enumerate() {
        collect(&field.value, &mut vec![index], &mut found);
    }
    found
}

/// Every place below `node`, parents before children.
fn collect(node: &Node, path: &mut Path, found: &mut Vec<Path>) {
    let children: Vec<&Node> = match &node.value {
        Value::Fields(fields) => fields.iter().map(|field| &field.value).collect(),
        Value::Items(items) => items.iter().collect(),
        _ => return,
    };
    for (index, child) in children.into_iter().enumerate() {
        path.push(index);
        found.push(path.clone());
        collect(child, path, found);
        path.pop();
    }
}

/// The document with another value at a place, or without it.
fn changed(document: &Node, path: &[usize], value: Option<Value>) -> Option<Node> {
    let mut document = document.clone();
    let (last, above) = path.split_last()?;
    let mut node = &mut document;
    for index in above {
        node = child(node, *index)?;
    }
    match value {
        Some(value) => child(node, *last)?.value = value,
        None => match &mut node.value {
            Value::Fields(fields) if *last < fields.len() => drop(fields.remove(*last)),
            Value::Items(items) if *last < items.len() => drop(items.remove(*last)),
            _ => return None,
        },
    }
    Some(document)
}

fn child(node: &mut Node, index: usize) -> Option<&mut Node> {
    match &mut node.value {
        Value::Fields(fields) => fields.get_mut(index).map(|field| &mut field.value),
        Value::Items(items) => items.get_mut(index),
        _ => None,
    }
}
