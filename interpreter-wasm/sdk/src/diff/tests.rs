use proptest::prelude::*;

use super::*;
use crate::json::tests::texts;

/// What the oracle makes of the patch.
fn apply(before: &Object, patch: &[PatchOp]) -> Object {
    let steps = patch.iter().map(|step| match step {
        PatchOp::Add { path, value } => Json::object([
            ("op", "add".into()),
            ("path", path.as_str().into()),
            ("value", value.clone()),
        ]),
        PatchOp::Replace { path, value } => Json::object([
            ("op", "replace".into()),
            ("path", path.as_str().into()),
            ("value", value.clone()),
        ]),
        PatchOp::Remove { path } => Json::object([("op", Json::from("remove")), ("path", path.as_str().into())]),
    });
    let patch: json_patch::Patch = serde_json::from_str(&Json::array(steps).to_text()).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&before.to_text()).unwrap();
    json_patch::patch(&mut document, &patch).unwrap();
    object(&document.to_string())
}

/// What Karmada's library makes of the patch: evanphx/json-patch v5.9.11, `findObject` and the three operations, of which
/// the container of a path is found name by name, and an empty name on the way finds the object itself.
fn apply_like_karmada(before: &Object, patch: &[PatchOp]) -> Object {
    let mut document: serde_json::Value = serde_json::from_str(&before.to_text()).unwrap();
    for step in patch {
        let names: Vec<String> = step
            .path()
            .split('/')
            .skip(1)
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        let (key, parents) = names.split_last().expect("the root is never replaced");
        let mut here = &mut document;
        for name in parents {
            if !name.is_empty() {
                here = here
                    .get_mut(name)
                    .filter(|value| !value.is_null())
                    .expect("every parent is there");
            }
        }
        let fields = here.as_object_mut().expect("the difference does not go into arrays");
        let value = |value: &Json| serde_json::from_str::<serde_json::Value>(&value.to_text()).unwrap();
        match step {
            PatchOp::Add { value: new, .. } => drop(fields.insert(key.clone(), value(new))),
            PatchOp::Replace { value: new, .. } => {
                assert!(
                    key.is_empty() || fields.contains_key(key),
                    "{} is not there",
                    step.path()
                );
                fields.insert(key.clone(), value(new));
            }
            PatchOp::Remove { .. } => drop(fields.remove(key).expect("it is there")),
        }
    }
    object(&document.to_string())
}

fn object(text: &str) -> Object {
    Object::parse(text).unwrap()
}

fn paths(before: &str, after: &str) -> Vec<String> {
    let patch = diff(&object(before), &object(after));
    let name = |step: &PatchOp| match step {
        PatchOp::Add { path, value } => format!("add {path} {value}"),
        PatchOp::Replace { path, value } => format!("replace {path} {value}"),
        PatchOp::Remove { path } => format!("remove {path}"),
    };
    patch.iter().map(name).collect()
}

/// Objects of one shape, so that two of them have something in common. Numbers small enough for the oracle to keep.
fn objects() -> impl Strategy<Value = Object> {
    let scalar = prop_oneof![
        Just("null"),
        Just("1"),
        Just("2"),
        Just("\"a\""),
        Just("{}"),
        Just("[]"),
        Just("true")
    ];
    let value = scalar.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "a",
            "b",
            "labels",
            "x/y",
            "~",
            "~1",
            "0",
            "-",
            "\u{e9}\u{1f980}",
            "/",
            "",
        ]);
        prop_oneof![
            prop::collection::btree_map(key, inner.clone(), 0..4).prop_map(|fields| Json::object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, Json::parse(value).unwrap()))
            )
            .to_text()),
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
        ]
    });
    prop::collection::btree_map(prop::sample::select(vec!["spec", "status", "other", ""]), value, 0..4).prop_map(
        |fields| {
            object(
                &Json::object(
                    fields
                        .into_iter()
                        .map(|(key, value)| (key, Json::parse(value).unwrap())),
                )
                .to_text(),
            )
        },
    )
}

proptest! {
    #[test]
    fn no_edit_no_patch(text in texts()) {
        let before = object(&format!(r#"{{"spec": {text}}}"#));
        prop_assert_eq!(diff(&before, &before.clone()), []);
        prop_assert_eq!(diff(&before, &object(&before.to_text())), []);
        let mut after = before.clone();
        after.set("/spec", Json::parse(&text).unwrap()).unwrap();
        after.set("/status/new", 1).unwrap();
        after.remove("/status").unwrap();
        prop_assert_eq!(diff(&before, &after), []);
    }

    #[test]
    fn the_patch_makes_after_of_before(before in objects(), after in objects()) {
        let patch = diff(&before, &after);
        prop_assert_eq!(apply(&before, &patch), after.clone());
        prop_assert_eq!(apply_like_karmada(&before, &patch), after.clone());
        prop_assert!(patch.iter().all(|step| !step.path().contains("//")), "{:?}", patch);
        prop_assert_eq!(patch.is_empty(), before == after);
    }
}

#[test]
fn patches_are_small() {
    let before = r#"{"spec": {"replicas": 2, "l": [1, 2], "same": {"deep": 1}, "gone": 1}, "n": null}"#;
    let after = r#"{"spec": {"same": {"deep": 1}, "replicas": 3, "l": [1, 2, 3], "new": {"a": {}}}, "n": {"a": 1}}"#;
    assert_eq!(
        paths(before, after),
        [
            "replace /spec/replicas 3",
            "replace /spec/l [1, 2, 3]",
            "remove /spec/gone",
            r#"add /spec/new {"a": {}}"#,
            r#"replace /n {"a": 1}"#
        ]
    );
}

#[test]
fn numbers_are_compared_by_their_digits() {
    assert_eq!(paths(r#"{"a": 1.0}"#, r#"{"a": 1}"#), ["replace /a 1"]);
    assert_eq!(
        paths(
            r#"{"a": 123456789012345678901234567890}"#,
            r#"{"a": 123456789012345678901234567890}"#
        ),
        [""; 0]
    );
}

#[test]
fn labels_and_annotations_are_never_changed_as_a_whole() {
    let with = r#"{"metadata": {"labels": {"a": "1", "karmada.io/x": "2"}}}"#;
    let gone = ["remove /metadata/labels/a", "remove /metadata/labels/karmada.io~1x"];
    assert_eq!(paths(with, r#"{"metadata": {}}"#), gone);
    assert_eq!(paths(with, r#"{"metadata": {"labels": null}}"#), gone);
    assert_eq!(paths(with, r#"{"metadata": {"labels": {}}}"#), gone);
    assert_eq!(
        paths(r#"{"metadata": {}}"#, with),
        [r#"add /metadata/labels {"a": "1", "karmada.io/x": "2"}"#]
    );
    assert_eq!(
        paths(
            r#"{"metadata": {"labels": null}}"#,
            r#"{"metadata": {"labels": {"a": "1"}}}"#
        ),
        [r#"add /metadata/labels {"a": "1"}"#]
    );
    assert_eq!(
        paths(r#"{"spec": {"labels": {"a": "1"}}}"#, r#"{"spec": {}}"#),
        ["remove /spec/labels"]
    );
}

#[test]
fn what_is_below_an_empty_key_is_replaced_with_it() {
    let before = r#"{"spec": {"": {"a": {"b": 1}, "c": 2}, "d": 1}}"#;
    let after = r#"{"spec": {"": {"a": {"b": 3}, "c": 2}, "d": 1}}"#;
    assert_eq!(paths(before, after), [r#"replace /spec/ {"a": {"b": 3}, "c": 2}"#]);
    // The key itself may come and go.
    assert_eq!(paths(before, r#"{"spec": {"d": 1}}"#), ["remove /spec/"]);
    assert_eq!(
        paths(r#"{"spec": {}}"#, r#"{"spec": {"": {"a": 1}}}"#),
        [r#"add /spec/ {"a": 1}"#]
    );
    assert_eq!(
        paths(r#"{"": {"a": 1}}"#, r#"{"": {"a": 2}}"#),
        [r#"replace / {"a": 2}"#]
    );
    // A key that ends in a slash is not empty.
    assert_eq!(
        paths(r#"{"a/": {"b": 1}}"#, r#"{"a/": {"b": 2}}"#),
        ["replace /a~1/b 2"]
    );
}

/// `{"status": {"k0": <value>, ...}}` with so many keys.
fn wide(keys: usize, value: &str) -> Object {
    let fields: Vec<String> = (0..keys).map(|key| format!("\"k{key}\":{value}")).collect();
    object(&format!("{{\"status\":{{{}}}}}", fields.join(",")))
}

#[test]
fn a_patch_is_never_much_longer_than_what_it_changes() {
    let after = wide(20_000, "2");
    let patch = diff(&wide(20_000, "1"), &after);
    assert!(
        matches!(&patch[..], [PatchOp::Replace { path, .. }] if path == "/status"),
        "{} steps",
        patch.len()
    );
    // A few changes in a wide map are steps.
    let mut after = wide(20_000, "1");
    for key in ["k7", "k7000", "new"] {
        after.set(&format!("/status/{key}"), 5).unwrap();
    }
    assert_eq!(diff(&wide(20_000, "1"), &after).len(), 3);
    // Labels are never replaced, however many change.
    let labels = |value: &str| wide(1500, value).to_text().replacen("status", "labels", 1);
    let with = |value: &str| object(&format!(r#"{{"metadata": {}}}"#, labels(value)));
    assert_eq!(diff(&with(r#""a""#), &with(r#""b""#)).len(), 1500);
}
