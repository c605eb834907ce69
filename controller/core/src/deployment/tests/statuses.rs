//! Counts, conditions and memory of a WorkloadDeployment in its cell.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use popcell_api::kind;
use serde_json::{Value, json};

use super::{Cell, NAMESPACE, run, template};
use crate::conditions;
use crate::object::{Fields, Object};
use crate::plan::Plane;
use crate::testing::now;

fn status(cell: &Cell) -> Value {
    cell.get().unwrap().at("/status").unwrap().clone()
}

/// Status, reason and message of a condition.
fn reported(cell: &Cell, type_: &str) -> [String; 3] {
    let status = status(cell);
    let condition = conditions::find(&status, type_).unwrap().clone();
    ["status", "reason", "message"].map(|field| conditions::text(&condition, field).to_owned())
}

fn says(cell: &mut Cell, ordinal: i64, type_: &'static str, status: &str, reason: &str) {
    let condition = json!({ "type": type_, "status": status, "reason": reason, "message": format!("{reason}!"),
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    cell.edit_instance(ordinal, |one| {
        let list = one.data["status"]["conditions"].as_array_mut().unwrap();
        conditions::put(list, condition);
    });
}

#[test]
fn counts_are_of_the_latest_template() {
    let mut cell = Cell::running(3);
    cell.edit(|one| {
        one.metadata.generation = Some(4);
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(4);
    });
    cell.settle();
    let counts = |cell: &Cell| {
        let status = status(cell);
        let fields = [
            "replicas",
            "currentReplicas",
            "updatedReplicas",
            "desiredReplicas",
            "readyReplicas",
        ];
        fields.map(|field| status[field].as_i64().unwrap())
    };
    assert_eq!(counts(&cell), [4, 3, 3, 4, 3]);
    assert_eq!(status(&cell)["observedGeneration"], 4);
    // Echoes the hash, but is not programmed.
    cell.edit_instance(3, |one| {
        run(one, false);
        one.data["status"]["conditions"][0]["status"] = json!("Unknown");
    });
    cell.settle();
    assert_eq!(counts(&cell), [4, 3, 4, 4, 3]);
    // The column `Up-to-date` dips while the template rolls.
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    cell.settle();
    assert_eq!(counts(&cell)[2], 0);
}

#[test]
fn available_and_replicas_ready_follow_the_instances() {
    let mut cell = Cell::new(2);
    cell.settle();
    cell.settle();
    assert_eq!(
        reported(&cell, "Available"),
        ["False", "ProvisioningInstances", "Instances are being provisioned"]
    );
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        ["False", "ProvisioningInstances", "0/2 replicas available"]
    );
    cell.report(0, true);
    cell.settle();
    assert_eq!(
        reported(&cell, "Available"),
        ["True", "StableInstanceFound", "1/2 instances are ready"]
    );
    cell.report(1, true);
    cell.settle();
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        ["True", "ReplicasAvailable", "2/2 replicas available"]
    );
    let generations: Vec<Value> = conditions::all(&status(&cell))
        .iter()
        .map(|one| one["observedGeneration"].clone())
        .collect();
    assert_eq!(generations, [json!(3), json!(3)]);
}

#[test]
fn the_worst_reason_of_the_instances_is_that_of_the_deployment() {
    let mut cell = Cell::new(1);
    cell.settle();
    cell.report(0, false);
    says(&mut cell, 0, "Ready", "Unknown", "ImageUnavailable");
    cell.settle();
    assert_eq!(
        reported(&cell, "Available"),
        ["False", "ImageUnavailable", "ImageUnavailable!"]
    );
    says(&mut cell, 0, "Ready", "False", "SchedulingGatesPresent");
    cell.settle();
    assert_eq!(reported(&cell, "Available")[1], "ProvisioningInstances");
}

#[test]
fn what_keeps_one_of_several_from_being_ready_is_shown() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
    cell.settle();
    cell.edit_instance(1, |one| run(one, false));
    says(&mut cell, 1, "Ready", "False", "SchedulingGatesPresent");
    cell.settle();
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        ["False", "ProvisioningInstances", "1/2 replicas available"]
    );
    says(&mut cell, 1, "Ready", "Unknown", "ImageUnavailable");
    cell.settle();
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        [
            "False",
            "ImageUnavailable",
            "1/2 replicas available; web-1: ImageUnavailable!"
        ]
    );
    assert_eq!(reported(&cell, "Available")[1], "StableInstanceFound");
}

#[test]
fn quota_that_is_refused_is_reported_before_all_else() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
    cell.settle();
    cell.edit_instance(1, |one| run(one, false));
    says(&mut cell, 1, "QuotaGranted", "False", "QuotaExceeded");
    cell.settle();
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        ["False", "QuotaExceeded", "1 of 2 desired replicas are pending quota"]
    );
}

#[test]
fn a_teardown_that_does_not_end_is_shown_after_a_minute() {
    let mut cell = Cell::running(1);
    cell.edit_instance(0, |one| one.metadata.finalizers = Some(vec!["provider".to_owned()]));
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    cell.settle();
    let plan = cell.plan();
    assert_eq!(plan.requeue, Some(Duration::from_mins(1)));
    cell.edit_instance(0, |one| {
        let since = now().checked_sub(jiff::SignedDuration::from_secs(60)).unwrap();
        one.metadata.deletion_timestamp = Some(Time(since));
    });
    cell.settle();
    assert_eq!(
        reported(&cell, "ReplicasReady"),
        [
            "False",
            "InstanceTerminating",
            "Instance web-0 is being torn down since 2026-01-01T00:09:00Z"
        ]
    );
    assert_eq!(cell.plan().requeue, None);
}

#[test]
fn what_others_say_in_the_status_stays() {
    let mut cell = Cell::new(0);
    let other = json!({ "type": "Other", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    cell.edit(|one| one.data["status"] = json!({ "theirs": 1, "conditions": [other] }));
    cell.settle();
    let status = status(&cell);
    assert_eq!(status["theirs"], 1);
    assert!(conditions::find(&status, "Other").is_some());
    // Nothing is asked for, so nothing is said of availability.
    assert!(conditions::find(&status, "Available").is_none());
    assert_eq!(reported(&cell, "ReplicasReady")[0], "True");
}

fn remembered(cell: &Cell) -> Option<&str> {
    cell.get().unwrap().annotation("compute.datumapis.com/granted-slots")
}

#[test]
fn granted_slots_are_remembered_until_they_are_denied_or_not_wanted() {
    let mut cell = Cell::running(3);
    assert_eq!(remembered(&cell), Some("0,1,2"));
    // Lost by hand: the slot keeps its grant, also while its new Instance is not evaluated.
    cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
    cell.settle();
    assert_eq!(remembered(&cell), Some("0,1,2"));
    cell.edit_instance(1, |one| run(one, false));
    says(&mut cell, 1, "QuotaGranted", "False", "QuotaBackendUnavailable");
    cell.settle();
    assert_eq!(remembered(&cell), Some("0,1,2"), "an outage is no denial");
    says(&mut cell, 1, "QuotaGranted", "False", "QuotaExceeded");
    cell.settle();
    assert_eq!(remembered(&cell), Some("0,2"));
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1));
    cell.settle();
    assert_eq!(remembered(&cell), Some("0"));
}

#[test]
fn a_grant_of_another_size_does_not_count_for_the_next_instance() {
    let mut cell = Cell::running(2);
    let sized = |cell: &mut Cell, cpu: &str| {
        let resources = json!({ "instanceType": "other", "requests": { "cpu": cpu, "memory": "1Gi" } });
        cell.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"] = resources);
    };
    sized(&mut cell, "2");
    cell.reconcile();
    assert_eq!(remembered(&cell), None);
    let mut cell = Cell::running(2);
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    cell.reconcile();
    assert_eq!(remembered(&cell), Some("0,1"), "another image is not another size");
}

#[test]
fn the_grant_of_an_empty_slot_is_of_the_size_it_had() {
    let sized = |cell: &mut Cell, cpu: &str| {
        let resources = json!({ "instanceType": "other", "requests": { "cpu": cpu, "memory": "1Gi" } });
        cell.edit(|one| one.data["spec"]["template"]["spec"]["runtime"]["resources"] = resources);
    };
    // The lowest slot is not Ready, so the other, lost by hand, stays empty while the template grows.
    let mut cell = Cell::running(2);
    assert_eq!(remembered(&cell), Some("0,1"));
    cell.edit_instance(0, |one| run(one, false));
    cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
    assert_eq!(cell.settle(), [""; 0]);
    sized(&mut cell, "8");
    let plan = cell.plan();
    cell.servers.apply(&plan);
    assert_eq!(remembered(&cell), None);

    // As one that grew before anybody looked, and an older program's memory, which has no size.
    let says_size = |cell: &mut Cell, size: Option<&str>| {
        cell.edit(|one| {
            let annotations = one.metadata.annotations.as_mut().unwrap();
            annotations.insert("compute.datumapis.com/granted-slots".to_owned(), "1".to_owned());
            annotations.remove("compute.datumapis.com/granted-size");
            annotations.extend(size.map(|size| ("compute.datumapis.com/granted-size".to_owned(), size.to_owned())));
        });
    };
    let mut cell = Cell::running(2);
    for (size, granted) in [
        (None, true),
        (Some("instances=1,vcpus=1000,memory=2048"), true),
        (Some("instances=1,vcpus=8000,memory=2048"), false),
    ] {
        says_size(&mut cell, size);
        let deployment = cell.get().unwrap();
        let slots = crate::slots::granted(
            deployment,
            Some(crate::sizing::Described::instance(cell.instance(1).unwrap())),
        );
        assert_eq!(slots.contains(&1), granted, "{size:?}");
    }
    cell.settle();
    assert_eq!(remembered(&cell), Some("0,1"), "their Instances say so");
    let size = cell.get().unwrap().annotation("compute.datumapis.com/granted-size");
    assert_eq!(size, Some("instances=1,vcpus=1000,memory=2048"));
}

#[test]
fn a_city_or_name_that_cannot_be_is_reported_once_and_runs_nothing() {
    for (city, name, reason) in [
        ("nyc_1", "web", "InvalidCityCode"),
        ("DFW", &"w".repeat(100), "InvalidName"),
    ] {
        let mut one = super::deployment(1);
        one.metadata.name = Some(name.to_owned());
        one.metadata.finalizers = None;
        one.data["spec"]["cityCode"] = json!(city);
        let seen = |one| super::Observation {
            deployment: one,
            instances: &[],
            types: None,
            networks: None,
            data: &super::ReferencedData::Unknown,
            autoscaler: crate::observed::Observed::Known(None),
            rejected: &[],
            elsewhere: None,
            served: crate::observed::Observed::Known(true),
            derived: false,
            now: now(),
        };
        let plan = super::decide(&seen(&one));
        assert!(plan.actions.is_empty() && plan.best_effort.is_empty(), "{plan:?}");
        assert_eq!(plan.terminal.as_ref().unwrap().reason, reason);
        let mut servers = crate::testing::FakeServers::default();
        servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, one.clone());
        servers.apply(&plan);
        let reported = servers
            .get(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, name)
            .unwrap();
        let available = conditions::find(reported.at("/status").unwrap(), "Available").unwrap();
        assert_eq!(conditions::text(available, "reason"), reason);
        assert!(super::decide(&seen(reported)).is_unchanged());
    }
    // What runs already is left as it is.
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["cityCode"] = json!("nyc_1"));
    cell.settle();
    assert_eq!(reported(&cell, "Available")[0], "True");
    cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-0");
    assert_eq!(cell.settle(), ["create web-0"], "what was taken in is healed");
}

#[test]
fn only_grants_are_remembered() {
    let mut cell = Cell::running(1);
    says(&mut cell, 0, "QuotaGranted", "True", "QuotaDisabled");
    cell.settle();
    assert_eq!(remembered(&cell), None);
}

#[test]
fn a_paused_deployment_is_not_changed() {
    let mut cell = Cell::running(1);
    cell.edit(|one| {
        one.metadata.annotations = Some([("compute.datumapis.com/paused".to_owned(), "true".to_owned())].into());
        one.data["spec"]["template"] = template("two");
    });
    assert_eq!(cell.settle(), [""; 0]);
    assert_eq!(reported(&cell, "Paused")[0], "True");
    cell.edit(|one: &mut Object| one.metadata.annotations = None);
    assert_eq!(cell.reconcile(), ["delete web-0"]);
}

/// A newer plane may carry what this version does not know.
#[test]
fn a_cell_reports_the_fields_that_it_does_not_support() {
    let mut cell = Cell::running(1);
    cell.edit(|one| {
        one.data["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["lifecycle"] = json!({ "a": 1 });
    });
    cell.settle();
    let message =
        "spec.template.spec.runtime.sandbox.containers[0].lifecycle: unknown field: popcell does nothing with it";
    assert_eq!(
        reported(&cell, "UnsupportedFields"),
        ["True", "UnsupportedFields", message]
    );
    assert!(cell.plan().status.is_none());
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    cell.settle();
    assert_eq!(conditions::find(&status(&cell), "UnsupportedFields"), None);
}
