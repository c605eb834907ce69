//! A patch is accepted exactly when a JSON patch library applies it, it touches nothing forbidden, and no path leads through an
//! empty key, which Karmada's library does not follow.

use popcell_protocol::Operation;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::patch::check;
use crate::compiled_module::wit;

/// Few names, so that paths often meet something.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c/d", "e~f", "0", "1", "2", "-", "01", ""]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 0..4).prop_map(|names| {
        let escaped = |name: &String| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        format!("/spec{}", names.iter().map(escaped).collect::<String>())
    })
}

fn step() -> impl Strategy<Value = (Value, wit::PatchOp)> {
    (0..3, pointer(), value()).prop_map(|(op, path, value)| {
        let with_value = || wit::PathValue {
            path: path.clone(),
            value: value.to_string().into_bytes(),
        };
        match op {
            0 => (
                json!({"op": "add", "path": path, "value": value}),
                wit::PatchOp::Add(with_value()),
            ),
            1 => (
                json!({"op": "replace", "path": path, "value": value}),
                wit::PatchOp::Replace(with_value()),
            ),
            _ => (json!({"op": "remove", "path": path}), wit::PatchOp::Remove(path)),
        }
    })
}

proptest! {
    #[test]
    fn accepted_patches_apply_and_refused_ones_do_not(spec in value(), steps in prop::collection::vec(step(), 0..6)) {
        let mut object = json!({"apiVersion": "v1", "kind": "K", "spec": spec});
        let (plain, steps): (Vec<Value>, Vec<wit::PatchOp>) = steps.into_iter().unzip();
        let through_empty = plain.iter().any(|step| step["path"].as_str().is_some_and(|path| path.contains("//")));
        let accepted = check(Operation::Retain, object.to_string().as_bytes(), steps, 1 << 20, None);
        let patch: json_patch::Patch = serde_json::from_value(Value::Array(plain)).unwrap();
        let applied = json_patch::patch(&mut object, &patch);
        let expected = applied.is_ok() && !through_empty;
        prop_assert_eq!(accepted.is_ok(), expected, "{:?} but {:?}", accepted.err(), applied);
    }

    #[test]
    fn whatever_is_accepted_leaves_the_rest_alone(
        root in prop::sample::select(vec!["apiVersion", "kind", "status", "metadata", "spec"]),
        rest in pointer(),
        value in value(),
        remove in any::<bool>(),
    ) {
        let path = rest.replacen("/spec", &format!("/{root}"), 1);
        let before = json!({
            "apiVersion": "v1", "kind": "K", "status": {"a": {}},
            "metadata": {"a": {}, "labels": {"a": "x"}}, "spec": {"a": {}},
        });
        let step = if remove {
            wit::PatchOp::Remove(path.clone())
        } else {
            wit::PatchOp::Add(wit::PathValue { path: path.clone(), value: value.to_string().into_bytes() })
        };
        let accepted = |operation| check(operation, before.to_string().as_bytes(), vec![step.clone()], 1 << 20, None).is_ok();
        if accepted(Operation::AggregateStatus) {
            prop_assert_eq!(root, "status");
        }
        if accepted(Operation::Retain) || accepted(Operation::ReviseReplica) {
            prop_assert_eq!(root, "spec");
        }
    }
}
