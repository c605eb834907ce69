//! Odd documents, such as other people's modules have met: a field that is missing, null or of another type.

use crate::test::yaml::{Node, Value};

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
pub(super) type Path = Vec<usize>;

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

/// The places below the objects and below the status of the items. The parts of the question itself stay.
fn paths(document: &Node) -> Vec<Path> {
    let mut found = Vec::new();
    for (index, field) in document.fields().unwrap_or_default().iter().enumerate() {
        collect(&field.value, &mut vec![index], &mut found);
    }
    found
}

/// Every place below `node`, parents before children.
pub(super) fn collect(node: &Node, path: &mut Path, found: &mut Vec<Path>) {
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
pub(super) fn changed(document: &Node, path: &[usize], value: Option<Value>) -> Option<Node> {
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
