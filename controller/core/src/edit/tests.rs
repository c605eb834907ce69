use super::*;
use crate::object::Excess;

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn applied(object: &Object, patch: &Patch) -> Value {
    let mut whole = serde_json::to_value(object).unwrap();
    json_patch::patch(&mut whole, &patch.patch).unwrap();
    whole
}

#[test]
fn owned_keys_are_merged_and_others_stay() {
    for metadata in [
        json!({ "name": "a", "uid": "u", "resourceVersion": "1" }),
        json!({ "name": "a", "uid": "u", "resourceVersion": "1", "labels": { "x": "y", "k/1": "old" },
            "annotations": { "gone": "1" }, "finalizers": ["other"], "ownerReferences": [
            { "apiVersion": "v1", "kind": "K", "name": "n", "uid": "o" }] }),
    ] {
        let before = object(json!({ "metadata": metadata, "spec": { "a": 1 } }));
        let edit = || {
            Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &before)
                .label("k/1", "v")
                .label("k~2", "w")
                .annotation("note", Some("n"))
                .annotation("gone", None)
                .with_finalizer("f")
                .spec(&json!({ "b": 2 }))
        };
        let after = object(applied(&before, &edit().patch().unwrap()));
        assert_eq!((after.label("k/1"), after.label("k~2")), (Some("v"), Some("w")));
        assert_eq!(after.label("x"), before.label("x"));
        assert_eq!((after.annotation("note"), after.annotation("gone")), (Some("n"), None));
        assert!(after.has_finalizer("f"));
        assert_eq!(after.has_finalizer("other"), before.has_finalizer("other"));
        assert_eq!(after.data, json!({ "spec": { "b": 2 } }));

        let again = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &after)
            .label("k/1", "v")
            .annotation("gone", None)
            .with_finalizer("f")
            .spec(&json!({ "b": 2 }));
        assert!(again.is_empty() && again.patch().is_none());
        let without = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &after).without_finalizer("f");
        let without = object(applied(&after, &without.patch().unwrap()));
        assert!(!without.has_finalizer("f"));
        assert_eq!(without.has_finalizer("other"), before.has_finalizer("other"));
    }
}

#[test]
fn of_an_object_that_is_kept_in_part_no_field_is_lost() {
    let whole = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" }, "spec": {
        "cityCode": "DFW", "placementName": "us", "workloadRef": { "name": "site", "uid": "w" },
        "scaleSettings": { "minReplicas": 5, "other": true }, "template": { "spec": { "large": "x".repeat(5_000) } } } });
    let mut kept = object(whole.clone());
    kept.exceeds(Excess::CellBytes { limit: 1 }, kind::WORKLOAD_DEPLOYMENT)
        .unwrap();
    let stored = kept.at("/spec").cloned().unwrap();
    assert!(stored.get("template").is_none());
    let written = |spec: &Value| {
        let edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &kept).spec(spec);
        let mut on_server = whole.clone();
        json_patch::patch(&mut on_server, &edit.patch().unwrap().patch).unwrap();
        on_server["spec"].clone()
    };
    // Fewer replicas of what is kept.
    let mut fewer = stored;
    fewer["scaleSettings"]["minReplicas"] = json!(2);
    let mut expected = whole["spec"].clone();
    expected["scaleSettings"]["minReplicas"] = json!(2);
    assert_eq!(written(&fewer), expected);
    // All that is asked for.
    expected["template"] = json!({ "spec": {} });
    assert_eq!(written(&expected), expected);
}

#[test]
fn a_patch_fails_on_an_object_that_moved() {
    let before = object(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" } }));
    let patch = Edit::of(&Plane::Hub, kind::INSTANCE, &before)
        .label("a", "b")
        .patch()
        .unwrap();
    for moved in [
        json!({ "uid": "u", "resourceVersion": "2" }),
        json!({ "uid": "v", "resourceVersion": "1" }),
    ] {
        let mut moved = json!({ "metadata": moved });
        assert!(json_patch::patch(&mut moved, &patch.patch).is_err());
    }
}

#[test]
fn the_first_status_write_carries_its_zeros() {
    let bare = object(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" } }));
    let status = json!({ "replicas": 0, "readyReplicas": 0 });
    let patch = Edit::status(&Plane::Hub, kind::WORKLOAD, &bare, status.clone()).unwrap();
    assert!(patch.status);
    let after = object(applied(&bare, &patch));
    assert_eq!(after.at("/status"), Some(&status));
    assert_eq!(Edit::status(&Plane::Hub, kind::WORKLOAD, &after, status), None);
}

#[test]
fn an_owner_of_an_earlier_life_is_replaced() {
    let reference = |uid: &str, name: &str| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "K".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    };
    let mut before = object(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" } }));
    before.metadata.owner_references = Some(vec![reference("old", "n"), reference("other", "m")]);
    let patch = Edit::of(&Plane::Hub, kind::INSTANCE, &before)
        .owner(&reference("new", "n"))
        .patch();
    let after = object(applied(&before, &patch.unwrap()));
    assert_eq!(
        after.metadata.owner_references,
        Some(vec![reference("other", "m"), reference("new", "n")])
    );
}

fn gated(gates: Value) -> Object {
    object(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "controller": { "templateHash": "h", "schedulingGates": gates } } }))
}

#[test]
fn a_gate_is_removed_alone_and_without_gates_nothing_changes() {
    let gate = |name: &str| json!({ "name": name });
    for (gates, left) in [
        (json!([gate("Network"), gate("Quota")]), Some(json!([gate("Network")]))),
        (json!([gate("Quota"), gate("Other")]), Some(json!([gate("Other")]))),
        (json!([gate("Quota")]), Some(json!([]))),
        (
            json!([gate("Quota"), gate("Network"), gate("Quota")]),
            Some(json!([gate("Network")])),
        ),
        (json!([gate("Network"), null, "Quota", {}]), None),
        (json!([]), None),
        (json!(null), None),
        (json!("Quota"), None),
    ] {
        let before = gated(gates.clone());
        let patch = without_gates(&Plane::Cell, &before, &["Quota"]);
        let after = patch.map(|patch| object(applied(&before, &patch)));
        let found = after
            .as_ref()
            .map(|after| after.data.pointer("/spec/controller/schedulingGates").unwrap());
        assert_eq!(found, left.as_ref(), "{gates}");
        assert!(after.is_none_or(|after| without_gates(&Plane::Cell, &after, &["Quota"]).is_none()));
    }
    for spec in [
        json!(null),
        json!({}),
        json!({ "controller": null }),
        json!({ "controller": [] }),
    ] {
        let bare = object(json!({ "metadata": { "name": "a", "uid": "u" }, "spec": spec }));
        assert_eq!(without_gates(&Plane::Cell, &bare, &["Quota"]), None);
    }
}

#[test]
fn several_gates_go_at_once_in_whatever_order_they_are() {
    for gates in [["A", "B", "C"], ["C", "B", "A"], ["B", "A", "C"]] {
        let all: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
        let before = gated(json!(all));
        let patch = without_gates(&Plane::Cell, &before, &["A", "C"]).unwrap();
        let after = object(applied(&before, &patch));
        assert_eq!(
            after.items("/spec/controller/schedulingGates"),
            [json!({ "name": "B" })]
        );
        assert_eq!(without_gates(&Plane::Cell, &after, &[]), None);
    }
}

#[test]
fn a_gate_is_taken_from_an_object_whose_status_moved_and_from_no_other() {
    let gate = |name: &str| json!({ "name": name });
    let patch = without_gates(
        &Plane::Cell,
        &gated(json!([gate("Network"), gate("Quota")])),
        &["Quota"],
    )
    .unwrap();
    let send = |uid: &str, gates: Value| {
        let mut now = json!({ "metadata": { "name": "a", "uid": uid, "resourceVersion": "9" },
            "spec": { "controller": { "schedulingGates": gates } } });
        json_patch::patch(&mut now, &patch.patch).map(|()| now)
    };
    assert!(!patch.status);
    assert!(send("u", json!([gate("Network"), gate("Quota")])).is_ok());
    assert!(send("v", json!([gate("Network"), gate("Quota")])).is_err());
    assert!(send("u", json!([gate("Quota")])).is_err());
    assert!(send("u", json!([gate("Quota"), gate("Network")])).is_err());
    assert!(send("u", json!([])).is_err());
}

#[test]
fn finalizers_go_together_and_only_as_they_were_seen() {
    let mut before = gated(json!([{ "name": "Quota" }]));
    before.metadata.finalizers = Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    let strip = |object: &Object| {
        Edit::by_value(&Plane::Cell, kind::INSTANCE, object)
            .without_finalizers(&["a", "c", "d"])
            .without_gates(&["Quota"])
            .patch()
    };
    let patch = strip(&before).unwrap();
    let after = object(applied(&before, &patch));
    assert_eq!(after.metadata.finalizers, Some(vec!["b".to_owned()]));
    assert!(after.items("/spec/controller/schedulingGates").is_empty());
    assert_eq!(strip(&after), None);

    let mut grown = serde_json::to_value(&before).unwrap();
    grown["metadata"]["resourceVersion"] = json!("2");
    assert!(json_patch::patch(&mut grown.clone(), &patch.patch).is_ok());
    grown["metadata"]["finalizers"] = json!(["a", "b", "c", "new"]);
    assert!(json_patch::patch(&mut grown, &patch.patch).is_err());
}
