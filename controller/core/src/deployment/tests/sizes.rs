//! The size of the instance type, from the WorkloadDeployment to its Instances.

use popcell_api::annotations::{GRANTED_SIZE, INSTANCE_TYPE_SIZE};

use super::*;
use crate::sizing::Described;
use crate::testing::catalogue;

const LARGE: &str = "acme/large cpu=4 memory=8Gi";

/// One in a cell whose template names a type, and what the hub says of its size.
fn cell(size: Option<&str>) -> Cell {
    let mut cell = Cell::new(2);
    cell.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("acme/large"));
    say(&mut cell, size);
    cell
}

fn say(cell: &mut Cell, size: Option<&str>) {
    cell.edit(|one| {
        let all = one.metadata.annotations.get_or_insert_default();
        all.remove(INSTANCE_TYPE_SIZE);
        all.extend(size.map(|size| (INSTANCE_TYPE_SIZE.to_owned(), size.to_owned())));
    });
}

fn size(cell: &Cell, ordinal: i64) -> Option<&str> {
    cell.instance(ordinal).unwrap().annotation(INSTANCE_TYPE_SIZE)
}

#[test]
fn instances_have_the_size_that_came_from_the_hub_and_no_change_of_it_rolls_them() {
    let mut cell = cell(Some(LARGE));
    cell.settle();
    assert_eq!(size(&cell, 0), Some(LARGE));
    let hash = |cell: &Cell| {
        cell.instance(0)
            .unwrap()
            .text("/spec/controller/templateHash")
            .map(str::to_owned)
    };
    let before = hash(&cell);
    cell.report(0, true);
    assert_eq!(cell.settle(), ["create web-1"]);
    cell.report(1, true);
    // The catalogue has it in another size now: what runs keeps its own, and the next Instance has the new one.
    say(&mut cell, Some("acme/large cpu=5 memory=8Gi"));
    assert_eq!(cell.settle(), Vec::<String>::new());
    assert_eq!((size(&cell, 0), hash(&cell)), (Some(LARGE), before));
    cell.servers.remove(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
    assert_eq!(cell.settle(), ["create web-1"]);
    assert_eq!(size(&cell, 1), Some("acme/large cpu=5 memory=8Gi"));
    // What was granted is remembered in the size of the template.
    let granted = cell.get().unwrap().annotation(GRANTED_SIZE);
    assert!(
        granted.is_none_or(|granted| granted.contains("vcpus=5000")),
        "{granted:?}"
    );
}

#[test]
fn an_instance_without_a_known_size_gets_it_once_and_no_other_does() {
    let mut cell = cell(None);
    cell.settle();
    assert_eq!(size(&cell, 0), None);
    assert!(Described::instance(cell.instance(0).unwrap()).why_unsized().is_some());
    for (found, healed) in [
        (None, Some(LARGE)),
        (Some("nonsense"), Some(LARGE)),
        (Some("acme/large cpu=1 memory=1Gi"), Some("acme/large cpu=1 memory=1Gi")),
    ] {
        cell.edit_instance(0, |one| {
            let all = one.metadata.annotations.get_or_insert_default();
            all.remove(INSTANCE_TYPE_SIZE);
            all.extend(found.map(|found| (INSTANCE_TYPE_SIZE.to_owned(), found.to_owned())));
        });
        say(&mut cell, Some(LARGE));
        assert_eq!(
            cell.settle().iter().filter(|one| one.contains("delete")).count(),
            0,
            "{found:?}"
        );
        assert_eq!(size(&cell, 0), healed, "{found:?}");
        assert!(cell.plan().actions.is_empty(), "{found:?}: a second reconcile writes");
    }
    // One that cannot be read is no size: it is not spread.
    say(&mut cell, Some("nonsense"));
    cell.settle();
    assert_eq!(size(&cell, 0), Some("acme/large cpu=1 memory=1Gi"));
}

#[test]
fn a_hash_of_another_version_is_mended_beside_a_size_without_a_roll() {
    let mut cell = cell(Some(LARGE));
    cell.settle();
    cell.report(0, true);
    cell.settle();
    cell.report(1, true);
    cell.edit_instance(0, |one| {
        one.data["spec"]["controller"]["templateHash"] = json!("0123456789abcdef")
    });
    assert_eq!(
        cell.settle().iter().filter(|one| one.contains("delete")).count(),
        0,
        "the annotation is not the template's"
    );
}

/// Of one that names `acme/large`, in a single cluster with these types, each with so many processors.
fn single(types: &[(&str, &str)]) -> Cell {
    let mut cell = cell(None);
    serve(&mut cell, types);
    cell
}

fn serve(cell: &mut Cell, types: &[(&str, &str)]) {
    cell.types = Some(Observed::Known(catalogue(types)));
}

fn available(cell: &Cell) -> &str {
    let status = cell.get().unwrap().at("/status").unwrap();
    crate::conditions::find(status, "Available").unwrap()["reason"]
        .as_str()
        .unwrap()
}

#[test]
fn in_a_single_cluster_a_type_that_was_withdrawn_keeps_its_size_also_once_no_instance_is_left() {
    let mut cell = single(&[("acme/large", "4")]);
    cell.settle();
    assert_eq!(cell.get().unwrap().text("/status/instanceTypeSize"), Some(LARGE));
    cell.report(0, true);
    cell.settle();
    serve(&mut cell, &[("acme/other", "4")]);
    assert_eq!(cell.settle(), Vec::<String>::new());
    for ordinal in ["web-0", "web-1"] {
        cell.servers.remove(&Plane::Cell, kind::INSTANCE, NAMESPACE, ordinal);
    }
    assert_eq!(cell.settle(), ["create web-0"]);
    assert_eq!(size(&cell, 0), Some(LARGE));
    assert!(cell.plan().actions.is_empty(), "a second reconcile writes");
    // What is new is refused, whatever a tenant says of its size.
    let mut new = single(&[("acme/other", "4")]);
    say(&mut new, Some(LARGE));
    assert_eq!(new.settle(), Vec::<String>::new());
    assert_eq!(available(&new), "InstanceTypeNotFound");
    assert_eq!(new.get().unwrap().at("/status/instanceTypeSize"), None);
}

#[test]
fn in_a_single_cluster_a_record_of_another_type_says_nothing_and_one_that_an_object_contradicts_neither() {
    let mut cell = single(&[("acme/large", "4")]);
    cell.settle();
    serve(&mut cell, &[("acme/large", "5")]);
    cell.settle();
    let recorded = |cell: &Cell| cell.get().unwrap().text("/status/instanceTypeSize").map(str::to_owned);
    assert_eq!(recorded(&cell).as_deref(), Some("acme/large cpu=5 memory=8Gi"));
    serve(&mut cell, &[("acme/other", "4")]);
    for name in ["acme/none", "datumcloud/d1-standard-2"] {
        cell.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!(name));
        cell.settle();
        let status = cell.get().unwrap().at("/status").unwrap();
        let reason = &crate::conditions::find(status, "ReplicasReady").unwrap()["reason"];
        assert_eq!(reason, "InstanceTypeNotFound", "{name}");
    }
}

#[test]
fn in_a_single_cluster_without_a_catalogue_a_built_in_name_that_was_resized_keeps_its_size() {
    let built_in = "datumcloud/d1-standard-2";
    let resized = Some("datumcloud/d1-standard-2 cpu=2 memory=8Gi");
    let mut cell = single(&[(built_in, "2")]);
    cell.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!(built_in));
    cell.settle();
    assert_eq!(size(&cell, 0), resized);
    cell.types = Some(Observed::Known(Catalogue::default()));
    assert_eq!(cell.settle(), Vec::<String>::new());
    cell.report(0, true);
    assert_eq!(cell.settle(), ["create web-1"]);
    assert_eq!(size(&cell, 1), resized);
    // An Instance is its tenant's too: what it says of its size is no record.
    let mut new = single(&[]);
    new.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!(built_in));
    new.settle();
    new.edit_instance(0, |one| {
        let forged = "datumcloud/d1-standard-2 cpu=1m memory=1Mi".to_owned();
        let all = one.metadata.annotations.get_or_insert_default();
        all.insert(INSTANCE_TYPE_SIZE.to_owned(), forged);
    });
    new.report(0, true);
    assert_eq!(new.settle(), ["create web-1"]);
    assert_eq!(size(&new, 1), None);
    let recorded = new.get().unwrap().text("/status/instanceTypeSize");
    assert_eq!(recorded, Some("datumcloud/d1-standard-2 cpu=1 memory=2Gi"));
}
