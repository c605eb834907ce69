//! Odd documents, such as other people's modules have met: a field that is missing, null or of another type. And the way
//! back: a document that breaks a law made as small as possible, so that a person sees what matters.

use crate::test::yaml::{Node, Value};

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
