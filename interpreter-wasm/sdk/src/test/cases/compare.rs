//! When an answer is the expected one. The rules are Karmada's (`deepEqual` in thirdparty_test.go).

use crate::Quantity;
use crate::test::yaml::{Field, Node, Value};

/// The value that leaves a field out of the comparison.
const EXCLUDE: &str = "{{EXCLUDE}}";

/// The expected part and the answer's, both in canonical order and without what is not compared; `None` when they are
/// equal.
pub(super) fn difference(key: &str, expected: &Node, got: &Node) -> Option<(Node, Node)> {
    let (mut expected, mut got) = (expected.clone(), got.clone());
    match key {
        "requires" => align_requirements(&mut expected, &mut got),
        "components" => {
            sort_items(&mut expected, &["name"]);
            sort_items(&mut got, &["name"]);
            if let (Value::Items(expected), Value::Items(got)) = (&mut expected.value, &mut got.value) {
                expected
                    .iter_mut()
                    .zip(got)
                    .for_each(|(expected, got)| align_component(expected, got));
            }
        }
        "dependencies" => {
            for side in [&mut expected, &mut got] {
                without_empty(side);
                sort_items(side, &["apiVersion", "kind", "namespace", "name"]);
            }
        }
        _ => leave_out_excluded(&mut expected, &mut got),
    }
    let (expected, got) = (expected.sorted(), got.sorted());
    if same(&expected, &got) {
        None
    } else {
        Some((expected, got))
    }
}

/// Equal in JSON's types; floats by value, integers by digits (`2` is not `2.0`: Karmada refuses the second).
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => {
            let float = |digits: &str| digits.contains(['.', 'e', 'E']);
            one == other || (float(one) && float(other) && one.parse::<f64>() == other.parse::<f64>())
        }
        (Value::Items(one), Value::Items(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Fields(one), Value::Fields(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| one.key == other.key && same(&one.value, &other.value))
        }
        _ => false,
    }
}

/// Takes the fields that are written as `{{EXCLUDE}}` out of both sides.
fn leave_out_excluded(expected: &mut Node, got: &mut Node) {
    match (&mut expected.value, &mut got.value) {
        (Value::Fields(expected), Value::Fields(got)) => {
            let excluded = |field: &Field| field.value.text() == Some(EXCLUDE);
            got.retain(|got| !expected.iter().any(|field| field.key == got.key && excluded(field)));
            expected.retain(|field| !excluded(field));
            for field in expected {
                if let Some(other) = got.iter_mut().find(|other| other.key == field.key) {
                    leave_out_excluded(&mut field.value, &mut other.value);
                }
            }
        }
        (Value::Items(expected), Value::Items(got)) => {
            expected
                .iter_mut()
                .zip(got)
                .for_each(|(expected, got)| leave_out_excluded(expected, got));
        }
        _ => {}
    }
}

fn align_component(expected: &mut Node, got: &mut Node) {
    let requirements = |side| field_mut(side, "replicaRequirements");
    if let (Some(expected), Some(got)) = (requirements(expected), requirements(got)) {
        align_requirements(expected, got);
    }
    without_empty(expected);
    without_empty(got);
}

fn field_mut<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Value::Fields(fields) = &mut node.value else {
        return None;
    };
    let field = fields.iter_mut().find(|field| field.key == key)?;
    Some(&mut field.value)
}

/// Leaves out what is empty, and writes equal amounts in the words of the expectation.
fn align_requirements(expected: &mut Node, got: &mut Node) {
    without_empty(expected);
    without_empty(got);
    let (Some(expected), Some(got)) = (expected.field("resourceRequest"), field_mut(got, "resourceRequest")) else {
        return;
    };
    let Value::Fields(amounts) = &mut got.value else {
        return;
    };
    for amount in amounts {
        if let Some(expected) = expected.field(&amount.key)
            && quantity(expected).is_some_and(|expected| Some(expected) == quantity(&amount.value))
        {
            amount.value = expected.clone();
        }
    }
}

fn quantity(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Takes out what Go's `omitempty` would not write: nothing, empty text, empty lists and mappings.
fn without_empty(node: &mut Node) {
    match &mut node.value {
        Value::Fields(fields) => {
            for field in fields.iter_mut() {
                without_empty(&mut field.value);
            }
            fields.retain(|field| match &field.value.value {
                Value::Null => false,
                Value::Text(text) => !text.is_empty(),
                Value::Items(items) => !items.is_empty(),
                Value::Fields(fields) => !fields.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            });
        }
        Value::Items(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// Orders a list by the text of these fields, and by all of it where they are equal.
fn sort_items(node: &mut Node, keys: &[&str]) {
    let Value::Items(items) = &mut node.value else { return };
    items.sort_by_cached_key(|item| {
        let text = |key: &&str| item.field(key).and_then(Node::text).unwrap_or_default().to_owned();
        (keys.iter().map(text).collect::<Vec<_>>(), item.sorted().to_json())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::yaml::documents;

    fn differs(key: &str, expected: &str, got: &str) -> bool {
        let node = |text: &str| documents(text).unwrap().remove(0);
        difference(key, &node(expected), &node(got)).is_some()
    }

    #[test]
    fn quantities_compare_by_amount() {
        assert!(!differs(
            "requires",
            "{resourceRequest: {cpu: 0.5, memory: 1Gi}}",
            "{resourceRequest: {cpu: 500m, memory: '1073741824'}, nodeClaim: {}}"
        ));
        assert!(differs(
            "requires",
            "{resourceRequest: {cpu: 0.5}}",
            "{resourceRequest: {cpu: 501m}}"
        ));
        assert!(differs(
            "requires",
            "{resourceRequest: {cpu: 1}}",
            "{resourceRequest: {cpu: 1, memory: 1}}"
        ));
        assert!(!differs(
            "components",
            "[{name: b, replicas: 1}, {name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '1'}}}]",
            "[{name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 1000m}}}, {name: b, replicas: 1}]"
        ));
    }

    #[test]
    fn dependencies_compare_in_any_order() {
        assert!(!differs(
            "dependencies",
            "[{apiVersion: v1, kind: Secret, name: a}, {apiVersion: v1, kind: ConfigMap, name: z}]",
            "[{apiVersion: v1, kind: ConfigMap, name: z}, {apiVersion: v1, kind: Secret, name: a, namespace: ''}]"
        ));
        assert!(differs(
            "dependencies",
            "[{apiVersion: v1, kind: Secret, name: a}]",
            "[]"
        ));
    }

    #[test]
    fn excluded_fields_are_skipped_by_path() {
        assert!(!differs(
            "revised",
            "{a: '{{EXCLUDE}}', b: [{c: '{{EXCLUDE}}', d: 1}]}",
            "{a: 5, b: [{c: 7, d: 1}]}"
        ));
        assert!(!differs("revised", "{a: '{{EXCLUDE}}', b: 1}", "{b: 1}"));
        assert!(differs("revised", "{x: {a: '{{EXCLUDE}}'}, a: 1}", "{x: {a: 2}, a: 2}"));
    }

    #[test]
    fn other_values_compare_as_json() {
        assert!(!differs("status", "{a: 1, b: 1.50}", "{b: 1.5, a: 1}"));
        assert!(differs("status", "{a: 2}", "{a: 2.0}"));
        assert!(differs("status", "{a: 9007199254740993}", "{a: 9007199254740992}"));
        assert!(differs("status", "{a: '1'}", "{a: 1}"));
        assert!(differs("status", "{a: []}", "{}"));
    }
}
