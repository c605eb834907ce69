//! Hashes, and what Instances are made of.

use popcell_api::kind;
use serde_json::{Value, json};

use super::super::template::hash;
use super::{Cell, NAMESPACE, template};
use crate::object::Fields;
use crate::plan::Plane;

#[test]
fn the_order_of_fields_and_empty_values_do_not_change_the_hash() {
    let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":null},"e":{},"f":[]}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b":{"c":[1,2]},"a":1}"#).unwrap();
    assert_eq!(hash(&one), hash(&other));
    assert_eq!(hash(&one).len(), 16);
    // Stored on objects: it must not change between releases.
    // It is the beginning of the SHA-256 of `{"4:spec{"1:a"1:b}}`.
    assert_eq!(hash(&json!({ "spec": { "a": "b" } })), "ffadb5eed8e8c950");
}

#[test]
fn values_that_differ_have_other_hashes() {
    let values = [
        json!({ "a": 1 }),
        json!({ "a": "1" }),
        json!({ "a": true }),
        json!({ "a": "true" }),
        json!({ "a": [1, 2] }),
        json!({ "a": [2, 1] }),
        json!({ "a": [[1], 2] }),
        json!({ "a": { "b": 1 } }),
        json!({ "a": 1, "b": 1 }),
        json!({ "ab": 1 }),
        json!({ "a": "b\":1" }),
        json!({ "a": [null] }),
        json!({}),
    ];
    for (index, one) in values.iter().enumerate() {
        for other in &values[index + 1..] {
            assert_ne!(hash(one), hash(other), "{one} {other}");
        }
    }
}

#[test]
fn an_instance_is_made_of_the_template_with_gates_and_labels_of_its_own() {
    let mut cell = Cell::running(2);
    for (ordinal, index) in [(0, "0"), (1, "1")] {
        let made = cell.instance(ordinal).unwrap();
        for (key, value) in [
            ("app", "web"),
            ("compute.datumapis.com/workload-uid", "w"),
            ("compute.datumapis.com/workload-name", "web"),
            ("compute.datumapis.com/placement-name", "us"),
            ("compute.datumapis.com/city-code", "DFW"),
            ("compute.datumapis.com/workload-deployment-uid", "wd"),
            ("compute.datumapis.com/workload-deployment-name", "web"),
            ("compute.datumapis.com/instance-index", index),
        ] {
            assert_eq!(made.label(key), Some(value), "{key}");
        }
        assert_eq!(made.annotation("note"), Some("n"));
        let owners = made.metadata.owner_references.as_ref().unwrap();
        assert_eq!((owners[0].uid.as_str(), owners[0].controller), ("wd", Some(true)));
        assert_eq!(
            made.text("/spec/controller/templateHash"),
            Some(hash(&template("one")).as_str())
        );
        assert_eq!(
            made.at("/spec/controller/schedulingGates"),
            Some(&json!([{ "name": "Quota" }]))
        );
        assert_eq!(made.at("/spec/location"), None);
        assert_eq!(made.text("/spec/runtime/sandbox/containers/0/image"), Some("one"));
    }
    assert_eq!(cell.settle(), [""; 0]);
}

#[test]
fn an_instance_of_upstreams_operator_with_an_equal_template_is_stamped_and_kept() {
    let mut cell = Cell::running(2);
    cell.edit_instance(1, |one| {
        one.data["spec"]["controller"]["templateHash"] = json!("6f8c9d7b4");
        one.data["spec"]["location"] = json!({ "name": "dfw", "namespace": "datum" });
        one.metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert("provider".to_owned(), "x".to_owned());
    });
    let uid = cell.instance(1).unwrap().uid().to_owned();
    assert_eq!(cell.settle(), ["patch web-1"]);
    let kept = cell.instance(1).unwrap();
    assert_eq!(kept.uid(), uid);
    assert_eq!(
        kept.text("/spec/controller/templateHash"),
        Some(hash(&template("one")).as_str())
    );
    assert!(kept.at("/spec/location").is_some());
}

#[test]
fn what_a_template_lost_is_a_change_of_it() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["template"]["metadata"]["labels"] = json!({}));
    assert_eq!(cell.reconcile(), ["delete web-0"]);
    cell.settle();
    assert_eq!(cell.instance(0).unwrap().label("app"), None);
}

#[test]
fn an_instance_without_controller_is_not_updated_and_does_not_panic() {
    let mut cell = Cell::running(1);
    cell.edit_instance(0, |one| {
        one.data["spec"]["controller"] = json!(null);
        one.data["status"]["controller"] = json!(null);
    });
    assert_eq!(cell.settle(), ["patch web-0"]);
    assert_eq!(cell.get().unwrap().int("/status/updatedReplicas"), Some(0));
}

#[test]
fn a_label_that_was_taken_away_comes_back() {
    let mut cell = Cell::running(1);
    cell.edit_instance(0, |one| {
        let labels = one.metadata.labels.as_mut().unwrap();
        labels.remove("compute.datumapis.com/workload-deployment-uid");
    });
    assert_eq!(cell.settle(), ["patch web-0"]);
    let label = cell
        .instance(0)
        .unwrap()
        .label("compute.datumapis.com/workload-deployment-uid");
    assert_eq!(label, Some("wd"));
}

#[test]
fn a_label_that_no_value_fits_is_skipped() {
    let mut cell = Cell::new(1);
    cell.edit(|one| one.data["spec"]["placementName"] = json!("no label"));
    cell.settle();
    assert_eq!(
        cell.instance(0).unwrap().label("compute.datumapis.com/placement-name"),
        None
    );
}

#[test]
fn an_unreadable_template_is_reported_once() {
    let mut cell = Cell::new(1);
    cell.edit(|one| one.data["spec"]["template"] = json!({ "spec": 7 }));
    let plan = cell.plan();
    assert!(plan.is_unchanged() && plan.terminal.is_some());
    let instances = cell.servers.list(&Plane::Cell, kind::INSTANCE);
    assert!(instances.is_empty(), "{NAMESPACE}");
}

/// On one cluster nobody carries a template who could take them out.
#[test]
fn reserved_keys_of_a_template_are_not_those_of_its_instances() {
    let mut cell = Cell::running(1);
    cell.edit(|one| {
        let metadata = &mut one.data["spec"]["template"]["metadata"];
        metadata["labels"]["karmada.io/managed"] = json!("true");
        metadata["labels"]["compute.datumapis.com/workload-uid"] = json!("another");
        metadata["annotations"]["compute.datumapis.com/source-uid"] = json!("another");
        metadata["annotations"]["compute.datumapis.com/ssh-keys"] = json!("me:key");
    });
    cell.settle();
    let made = cell.instance(0).unwrap();
    assert_eq!(made.label("karmada.io/managed"), None);
    assert_eq!(made.label("compute.datumapis.com/workload-uid"), Some("w"));
    assert_eq!(made.annotation("compute.datumapis.com/source-uid"), None);
    assert_eq!(made.annotation("compute.datumapis.com/ssh-keys"), Some("me:key"));
    assert_eq!(made.label("app"), Some("web"));
    assert_eq!(cell.settle(), [""; 0]);
}

#[test]
fn disks_carry_no_keys_that_are_reserved() {
    let disk = |labels: Value| json!({ "name": "d", "disk": { "template": { "metadata": { "labels": labels }, "spec": {} } } });
    let mut cell = Cell::new(1);
    let reserved = json!({ "app": "a", "karmada.io/x": "b", "compute.datumapis.com/managed-by": "popcell" });
    cell.edit(|one| one.data["spec"]["template"]["spec"]["volumes"] = json!([disk(reserved.clone())]));
    cell.reconcile();
    let volumes = cell.instance(0).unwrap().at("/spec/volumes").cloned();
    assert_eq!(volumes, Some(json!([disk(json!({ "app": "a" }))])));
    // One that was made with them, by us or by upstream, runs on.
    for hash in [None, Some("other")] {
        cell.edit_instance(0, |one| {
            one.data["spec"]["volumes"] = json!([disk(reserved.clone())]);
            if let Some(hash) = hash {
                one.data["spec"]["controller"]["templateHash"] = json!(hash);
            }
        });
        cell.report(0, true);
        let done = cell.settle();
        assert!(done.iter().all(|one| !one.starts_with("delete")), "{done:?}");
    }
}
