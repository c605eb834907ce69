//! Order of creates and deletes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_api::kind;
use serde_json::json;

use super::super::rollout::{Instances, Slot, Step, step};
use super::super::template::{Likeness, Template};
use super::{Cell, NAMESPACE, deployment, template};
use crate::limits::Excess;
use crate::object::{Fields, Object};
use crate::plan::{Note, Plane};
use crate::testing::{enlarged, now, object};

#[test]
fn instances_are_created_in_order_and_each_waits_for_the_one_before() {
    let mut cell = Cell::new(3);
    assert_eq!(cell.settle(), ["create web-0"]);
    cell.report(0, false);
    assert_eq!(cell.settle(), [""; 0]);
    cell.report(0, true);
    assert_eq!(cell.settle(), ["create web-1"]);
    cell.report(1, true);
    assert_eq!(cell.settle(), ["create web-2"]);
    cell.report(2, true);
    assert_eq!(cell.settle(), [""; 0]);
}

#[test]
fn scale_down_begins_at_the_highest_slot_whatever_lower_slots_do() {
    for lower in [true, false] {
        let mut cell = Cell::running(3);
        cell.report(0, lower);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1));
        assert_eq!(cell.reconcile(), ["delete web-2"]);
        assert_eq!(cell.reconcile(), ["delete web-1"]);
    }
}

#[test]
fn a_teardown_that_does_not_end_holds_up_no_other() {
    let mut cell = Cell::running(3);
    cell.edit_instance(2, |one| one.metadata.finalizers = Some(vec!["provider".to_owned()]));
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1));
    assert_eq!(cell.reconcile(), ["delete web-2"]);
    assert!(cell.instance(2).unwrap().deleting());
    assert_eq!(cell.reconcile(), ["delete web-1"]);
}

#[test]
fn an_empty_slot_in_the_middle_is_filled() {
    let mut cell = Cell::running(3);
    cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
    assert_eq!(cell.settle(), ["create web-1"]);
}

#[test]
fn an_image_change_rolls_the_highest_slot_first() {
    let mut cell = Cell::running(3);
    for ordinal in 0..3 {
        cell.edit_instance(ordinal, |one| {
            one.metadata.finalizers = Some(vec!["provider".to_owned()])
        });
    }
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    for ordinal in [2, 1, 0] {
        assert_eq!(cell.settle(), [format!("delete web-{ordinal}")]);
        // The provider tears it down.
        assert_eq!(cell.settle(), [""; 0]);
        cell.edit_instance(ordinal, |one| one.metadata.finalizers = None);
        assert_eq!(cell.settle(), [format!("create web-{ordinal}")]);
        let made = cell.instance(ordinal).unwrap();
        let image = made.text("/spec/runtime/sandbox/containers/0/image");
        assert_eq!(image, Some("two"));
        cell.report(ordinal, true);
        if ordinal > 0 {
            cell.edit_instance(ordinal, |one| {
                one.metadata.finalizers = Some(vec!["provider".to_owned()])
            });
        }
    }
    assert_eq!(cell.settle(), [""; 0]);
}

#[test]
fn the_restart_annotation_rolls_the_instances() {
    let mut cell = Cell::running(2);
    let restarted = "2026-01-01T00:00:00Z";
    cell.edit(|one| {
        one.data["spec"]["template"]["metadata"]["annotations"]["compute.datumapis.com/restartedAt"] = json!(restarted)
    });
    assert_eq!(cell.reconcile(), ["delete web-1"]);
    assert_eq!(cell.settle(), ["create web-1"]);
    let annotation = cell
        .instance(1)
        .unwrap()
        .annotation("compute.datumapis.com/restartedAt");
    assert_eq!(annotation, Some(restarted));
}

#[test]
fn a_bad_image_is_repaired_by_a_new_template() {
    let mut cell = Cell::new(3);
    cell.settle();
    cell.report(0, false);
    cell.edit(|one| one.data["spec"]["template"] = template("good"));
    assert_eq!(cell.reconcile(), ["delete web-0"]);
    assert_eq!(cell.settle(), ["create web-0"]);
}

#[test]
fn creates_and_repairs_come_before_a_roll() {
    let mut cell = Cell::running(3);
    cell.report(0, false);
    cell.edit(|one| {
        one.data["spec"]["template"] = template("two");
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2);
    });
    assert_eq!(cell.reconcile(), ["delete web-2"], "surplus");
    assert_eq!(cell.reconcile(), ["delete web-0"], "unready and drifted");
    assert_eq!(cell.settle(), ["create web-0"]);
    assert_eq!(cell.settle(), [""; 0], "web-1 is Ready: it waits for web-0");
    cell.report(0, true);
    assert_eq!(cell.reconcile(), ["delete web-1"]);
}

#[test]
fn instances_of_no_slot_are_deleted_first() {
    let mut cell = Cell::running(1);
    for name in ["web-x", "web-01", "other"] {
        let unexpected = json!({ "metadata": { "name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1",
            "labels": { "compute.datumapis.com/workload-deployment-uid": "wd" } }, "spec": {} });
        cell.servers.put(&Plane::Cell, kind::INSTANCE, object(unexpected));
    }
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
    assert_eq!(
        cell.settle(),
        ["delete other", "delete web-01", "delete web-x", "create web-1"]
    );
}

#[test]
fn instances_of_others_are_kept_also_where_they_hold_a_name() {
    let mut cell = Cell::new(1);
    let foreign = object(
        json!({ "metadata": { "name": "web-0", "namespace": NAMESPACE, "uid": "x",
        "resourceVersion": "1", "labels": { "compute.datumapis.com/workload-deployment-uid": "another" } } }),
    );
    cell.servers.put(&Plane::Cell, kind::INSTANCE, foreign.clone());
    cell.settle();
    assert_eq!(cell.instance(0), Some(&foreign));
    let reported = cell.get().unwrap().at("/status").unwrap();
    for type_ in ["Available", "ReplicasReady"] {
        let condition = crate::conditions::find(reported, type_).unwrap();
        assert_eq!(crate::conditions::text(condition, "reason"), "NameConflict");
        assert!(crate::conditions::text(condition, "message").contains("Instance web-0"));
    }
    assert_eq!(cell.plan().requeue, Some(crate::remote::NAME_CONFLICT_RETRY));
    let notes = cell.plan().notes;
    assert!(matches!(notes.as_slice(), [Note::Foreign(target)] if target.name == "web-0"));
}

#[test]
fn the_finalizer_is_put_on_before_anything_is_made() {
    let mut cell = Cell::new(2);
    cell.edit(|one| one.metadata.finalizers = Some(vec!["karmada.io/other".to_owned()]));
    assert_eq!(cell.reconcile(), [""; 0]);
    let finalizers = cell.get().unwrap().metadata.finalizers.clone().unwrap();
    assert_eq!(finalizers, ["karmada.io/other", WORKLOAD_CONTROLLER]);
    assert_eq!(cell.settle(), ["create web-0"]);
    // One that goes without it has no Instances to wait for, and gets none.
    let mut going = Cell::new(2);
    going.edit(|one| {
        one.metadata.finalizers = Some(vec!["karmada.io/other".to_owned()]);
        one.metadata.deletion_timestamp = Some(Time(now()));
    });
    assert!(going.plan().is_unchanged());
}

#[test]
fn deletion_waits_for_the_last_instance() {
    let mut cell = Cell::running(2);
    cell.edit_instance(1, |one| one.metadata.finalizers = Some(vec!["provider".to_owned()]));
    cell.servers
        .delete(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, "web");
    assert_eq!(cell.reconcile(), ["delete web-0", "delete web-1"]);
    cell.settle();
    assert!(cell.get().is_some());
    cell.edit_instance(1, |one| one.metadata.finalizers = None);
    cell.settle();
    assert!(cell.get().is_none());
}

/// States of one slot in the table.
const STATES: [State; 7] = [
    State::Missing,
    State::Deleting,
    State::Unready,
    State::Ready,
    State::DriftedReady,
    State::DriftedUnready,
    State::Unstamped,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Missing,
    Deleting,
    Unready,
    Ready,
    DriftedReady,
    DriftedUnready,
    Unstamped,
}

impl State {
    fn instance(self, ordinal: usize) -> Option<(Object, Likeness)> {
        let mut instance = named(&format!("web-{ordinal}"));
        if self.is_ready() {
            instance.data["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        }
        if self == Self::Deleting {
            instance.metadata.deletion_timestamp = Some(Time(now()));
        }
        let likeness = match self {
            Self::Missing => return None,
            Self::DriftedReady | Self::DriftedUnready => Likeness::Drifted,
            Self::Unstamped => Likeness::Unstamped,
            _ => Likeness::Same,
        };
        Some((instance, likeness))
    }

    fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::DriftedReady | Self::Unstamped)
    }
}

fn named(name: &str) -> Object {
    object(json!({ "metadata": { "name": name, "uid": name } }))
}

/// What else is owned beside the slots, by name, and whether it is being deleted: names of no slot, and second names of
/// slots.
const STRAYS: [&[(&str, bool)]; 6] = [
    &[],
    &[("other", false)],
    &[("web-01", false)],
    &[("web-01", true)],
    &[("web-01", false), ("web-+2", false), ("web-00", true)],
    &[("other", true), ("web-x", false), ("web-1-1", false)],
];

/// The action that the rollout's order demands for three slots, of which `desired` are wanted: written independently of
/// the code.
fn expected(unexpected: &[(&str, bool)], states: [State; 3], desired: usize) -> String {
    if let Some((first, _)) = unexpected.iter().filter(|(_, deleting)| !deleting).min() {
        return format!("delete {first}");
    }
    let there = |state: State| !matches!(state, State::Missing | State::Deleting);
    if let Some(surplus) = (desired..3).rev().find(|slot| there(states[*slot])) {
        return format!("delete {surplus}");
    }
    if let Some(broken) = (0..desired).rev().find(|slot| states[*slot] == State::DriftedUnready) {
        return format!("delete {broken}");
    }
    if let Some(first) = (0..desired).find(|slot| !states[*slot].is_ready()) {
        return match states[first] {
            State::Missing => format!("create {first}"),
            _ => "wait".to_owned(),
        };
    }
    let drifted = (0..desired).rev().find(|slot| states[*slot] == State::DriftedReady);
    drifted.map_or_else(|| "settled".to_owned(), |slot| format!("delete {slot}"))
}

#[test]
fn every_state_of_three_slots() {
    let mut seen = 0;
    for unexpected in STRAYS {
        let beside: Vec<Object> = unexpected.iter().map(|unexpected| stray_of(*unexpected)).collect();
        for (desired, first) in (0..=3).flat_map(|desired| STATES.map(|first| (desired, first))) {
            for (second, third) in STATES
                .into_iter()
                .flat_map(|second| STATES.map(|third| (second, third)))
            {
                let states = [first, second, third];
                let taken = taken(&beside, states, desired);
                let wanted = expected(unexpected, states, desired);
                assert_eq!(taken, wanted, "{states:?} of which {desired}, beside {unexpected:?}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, STRAYS.len() * 4 * 7 * 7 * 7);
}

fn stray_of((name, deleting): (&str, bool)) -> Object {
    let mut unexpected = named(name);
    unexpected.metadata.deletion_timestamp = deleting.then(|| Time(now()));
    unexpected
}

/// What is done about three slots and what is beside them.
fn taken(beside: &[Object], states: [State; 3], desired: usize) -> String {
    let made: Vec<_> = states
        .iter()
        .enumerate()
        .filter_map(|(slot, state)| Some((i64::try_from(slot).unwrap(), state.instance(slot)?)))
        .collect();
    let deployment = deployment(3);
    let slots = made.iter().map(|(_, (instance, _))| instance);
    let mut instances = Instances::sort(
        &deployment,
        &Template::of(&deployment).unwrap(),
        // A name that took a slot's place would come last.
        &slots.chain(beside).collect::<Vec<_>>(),
    );
    assert_eq!(
        (instances.slots.len(), instances.unexpected.len()),
        (made.len(), beside.len())
    );
    for (slot, (instance, likeness)) in &made {
        let likeness = *likeness;
        assert!(instances.slots.insert(*slot, Slot { instance, likeness }).is_some());
    }
    match step(&instances, i64::try_from(desired).unwrap()) {
        Step::Delete(instance) if beside.contains(instance) => format!("delete {}", instance.name()),
        Step::Delete(instance) => instance.name().replace("web-", "delete "),
        Step::Create(ordinal) => format!("create {ordinal}"),
        Step::Wait => "wait".to_owned(),
        Step::Settled => "settled".to_owned(),
    }
}

#[test]
fn of_what_exceeds_a_limit_the_highest_go_first_where_the_number_is_known() {
    let excess = Excess::ProjectBytes { limit: 3 };
    let exceeding = |replicas: Option<i64>| {
        let mut cell = Cell::running(3);
        cell.edit(|one| {
            match replicas {
                Some(replicas) => one.data["spec"]["scaleSettings"]["minReplicas"] = json!(replicas),
                None => one.data["spec"]["scaleSettings"] = json!({}),
            }
            *one = enlarged(one, kind::WORKLOAD_DEPLOYMENT, "spec", 5_000, excess);
        });
        cell.settle();
        (0..4)
            .filter(|ordinal| cell.instance(*ordinal).is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(exceeding(Some(1)), [0]);
    assert_eq!(exceeding(Some(4)), [0, 1, 2]);
    assert_eq!(exceeding(None), [0, 1, 2]);
}
