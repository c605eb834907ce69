use serde_json::json;

use super::*;
use crate::project::manifest;

fn role(labels: &Value) -> Manifest {
    let object = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "a", "labels": labels }, "rules": [] });
    manifest::tests::of(object)
}

fn ours() -> Value {
    json!({ PART_OF: PART_OF_POPCELL })
}

#[test]
fn what_is_there_is_kept_with_what_others_added_to_its_metadata() {
    let manifest = role(&ours());
    assert_eq!(decide(&manifest, None, false), Step::Create);
    let mut found = manifest.object.clone();
    found["metadata"] = json!({ "name": "a", "uid": "u", "resourceVersion": "7", "annotations": { "jo": "1" },
        "labels": { PART_OF: PART_OF_POPCELL, "jo": "2" } });
    assert_eq!(decide(&manifest, Some(&found), false), Step::Keep);

    // A field that an older version had is nothing of ours any more.
    found["aggregationRule"] = json!({});
    let Step::Replace(wanted) = decide(&manifest, Some(&found), false) else {
        panic!("not replaced")
    };
    assert_eq!(wanted["metadata"], found["metadata"]);
    assert!(wanted.get("aggregationRule").is_none(), "{wanted}");
}

#[test]
fn what_is_not_ours_or_on_its_way_out_is_refused() {
    let manifest = role(&ours());
    for labels in [
        json!({}),
        json!({ PART_OF: "other" }),
        json!({ "managed-by": PART_OF_POPCELL }),
    ] {
        let found = role(&labels).object;
        assert!(
            matches!(decide(&manifest, Some(&found), true), Step::Refuse(_)),
            "{labels}"
        );
    }
    let mut found = manifest.object.clone();
    found["metadata"]["deletionTimestamp"] = json!("2026-11-30T09:00:00Z");
    assert!(matches!(decide(&manifest, Some(&found), true), Step::Refuse(_)));
}

#[test]
fn a_refusal_names_three_fields_and_counts_the_others() {
    let definition = |fields: &[&str]| {
        let fields = fields.iter().map(|name| ((*name).to_owned(), json!({})));
        let schema = json!({ "properties": fields.collect::<serde_json::Map<_, _>>() });
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "a.b", "labels": ours() },
            "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": schema } }] } })
    };
    let manifest = manifest::tests::of(definition(&["a"]));
    let found = definition(&["a", "b", "c", "d", "e"]);
    let Step::Refuse(why) = decide(&manifest, Some(&found), false) else {
        panic!("not refused")
    };
    assert!(why.contains("v1: b, v1: c, v1: d and 1 more"), "{why}");
    assert!(matches!(decide(&manifest, Some(&found), true), Step::Replace(_)));
}

#[test]
fn defaults_make_a_difference_and_versions_make_none() {
    let found = json!({ "metadata": { "resourceVersion": "1", "generation": 1 }, "spec": 1, "status": 1 });
    let mut stored = json!({ "metadata": { "resourceVersion": "2", "generation": 2, "managedFields": [] }, "spec": 1 });
    assert!(is_same(&found, &stored));
    stored["spec"] = json!(2);
    assert!(!is_same(&found, &stored));
}
