//! Sizes and names of keys, and keys of the object itself.

use super::*;

const METADATA: &str = "/spec/template/metadata";

#[test]
fn annotations_of_a_template_fit_together_as_kubernetes_counts() {
    let annotations = |size: usize| {
        // Two keys of three bytes.
        let half = size / 2 - 3;
        json!({ "annotations": { "a/b": "x".repeat(half), "c/d": "y".repeat(size - 6 - half) } })
    };
    let mut whole = workload();
    set(&mut whole, METADATA, annotations(262_144));
    assert_eq!(faults(None, whole.clone()), Vec::<String>::new());
    set(&mut whole, METADATA, annotations(262_145));
    assert_eq!(
        faults(None, whole.clone()),
        ["spec.template.metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
    let disk = "/spec/template/spec/volumes/0/disk/template/metadata";
    let mut whole = workload();
    set(&mut whole, disk, annotations(262_145));
    assert_eq!(
        faults(None, whole),
        [
            "spec.template.spec.volumes[0].disk.template.metadata.annotations: Too long: may not be more than 262144 bytes"
        ]
    );
}

#[test]
fn names_of_keys_and_objects_are_those_that_a_cell_takes() {
    let disk = "/spec/template/spec/volumes/0/disk/template/metadata";
    let config = json!([{ "name": "data", "configMap": { "name": "A_b" } }]);
    let secret = json!([{ "name": "data", "secret": { "secretName": "a/b" } }]);
    table(
        workload,
        &[
            (
                METADATA,
                json!({ "annotations": { "a/b/c": "" } }),
                "spec.template.metadata.annotations: Invalid value: \"a/b/c\": is not a qualified name",
            ),
            (
                METADATA,
                json!({ "annotations": { "x".repeat(64): "" } }),
                "is not a qualified name",
            ),
            (
                disk,
                json!({ "labels": { "karmada.io/x": "a" } }),
                "volumes[0].disk.template.metadata.labels[karmada.io/x]: Forbidden: the key is reserved",
            ),
            (
                disk,
                json!({ "labels": { "a": "not a value" } }),
                "volumes[0].disk.template.metadata.labels[a]: Invalid value",
            ),
            (
                "/spec/template/spec/volumes",
                config,
                "volumes[0].configMap.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain",
            ),
            (
                "/spec/template/spec/volumes",
                secret,
                "volumes[0].secret.secretName: Invalid value: \"a/b\"",
            ),
            (
                "/spec/template/spec/runtime/sandbox/imagePullSecrets",
                json!([{ "name": "A" }]),
                "sandbox.imagePullSecrets[0].name: Invalid value: \"A\"",
            ),
        ],
    );
}

#[test]
fn keys_that_kubernetes_takes_are_taken() {
    let long = format!("{}.example.com/a", "p".repeat(64));
    for metadata in [
        json!({ "labels": { &long: "" }, "annotations": { &long: "" } }),
        json!({ "annotations": { "Example.com/A": "" } }),
    ] {
        let mut whole = workload();
        whole["spec"]["template"]["metadata"] = metadata;
        assert_eq!(faults(None, whole), Vec::<String>::new());
    }
    let mut whole = workload();
    whole["spec"]["template"]["metadata"] = json!({ "labels": { "Example.com/A": "" } });
    assert_eq!(
        faults(None, whole),
        ["spec.template.metadata.labels: Invalid value: \"Example.com/A\": is not a qualified name"]
    );
}

#[test]
fn a_workload_gets_no_reserved_keys() {
    let with = |field: &str, key: &str, value: &str| {
        let mut whole = workload();
        whole["metadata"][field] = json!({ key: value, "app": "web" });
        whole
    };
    for (field, key) in [
        ("labels", "karmada.io/managed"),
        ("annotations", "resourcetemplate.karmada.io/uid"),
        ("labels", "compute.datumapis.com/managed-by"),
        ("annotations", "compute.datumapis.com/source-uid"),
        ("labels", "compute.datumapis.com/paused"),
    ] {
        let marked = with(field, key, "x");
        let expected = [format!(
            "metadata.{field}[{key}]: Forbidden: the key is reserved: use a domain of your own"
        )];
        assert_eq!(faults(None, marked.clone()), expected);
        // Also where nothing else changes; but what has it keeps it, and may be changed otherwise.
        assert!(is_reviewed(Some(&object(workload())), &object(marked.clone())));
        assert_eq!(faults(Some(workload()), marked.clone()), expected);
        assert_eq!(faults(Some(marked.clone()), with(field, key, "y")), expected);
        let mut placed = marked.clone();
        placed["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ORD"]);
        assert_eq!(faults(Some(marked.clone()), placed), Vec::<String>::new());
        assert!(!is_reviewed(Some(&object(marked)), &object(workload())), "taken away");
    }
    for (field, key) in [
        ("annotations", "compute.datumapis.com/paused"),
        ("annotations", "kubectl.kubernetes.io/last-applied-configuration"),
        ("labels", "meta.datumapis.com/upstream-name"),
    ] {
        assert_eq!(faults(None, with(field, key, "true")), Vec::<String>::new(), "{key}");
    }
}

#[test]
fn a_template_from_before_a_rule_holds_up_nothing_that_shrinks() {
    let mut old = workload();
    old["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("old");
    old["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ORD"]);
    old["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(3);
    let with = |pointer: &str, value: Value| {
        let mut new = old.clone();
        set(&mut new, pointer, value);
        faults(Some(old.clone()), new).len()
    };
    let (count, cities) = (
        "/spec/placements/0/scaleSettings/minReplicas",
        "/spec/placements/0/cityCodes",
    );
    assert_eq!(with(count, json!(2)), 0);
    assert_eq!(with(cities, json!(["ORD"])), 0);
    assert_eq!(with(count, json!(4)), 1);
    assert_eq!(with("/spec/placements/0/name", json!("eu")), 1);
}
