use serde_json::json;

use super::*;
use crate::testing::{at, container, instance, pod};

fn decided(instance: &DynamicObject, pod: Option<&Pod>, now: Timestamp) -> Decision {
    decide(instance, pod, &Settings::default(), now)
}

/// Reason and message of Available that are to be reported.
fn reported(decision: &Decision, instance: &DynamicObject) -> [String; 2] {
    let patch = decision.report.as_ref().unwrap().patch(instance, at(0)).unwrap();
    let conditions = patch["status"]["conditions"].as_array().unwrap().clone();
    let available = conditions.iter().find(|one| one["type"] == "Available").unwrap();
    ["reason", "message"].map(|field| available[field].as_str().unwrap().to_owned())
}

fn nothing() -> Decision {
    Decision::only(Step::None)
}

#[test]
fn a_pod_is_made_once_the_gates_are_gone_and_the_finalizer_is_set() {
    for gate in ["Network", "Quota", "ReferencedData", "a gate of tomorrow"] {
        let gated = instance(|one| one["spec"]["controller"]["schedulingGates"] = json!([{ "name": gate }]));
        assert_eq!(
            decided(&gated, None, at(0)),
            nothing(),
            "nothing is said of what waits at the gate {gate}"
        );
    }
    let unreadable = instance(|one| one["spec"]["controller"]["schedulingGates"] = json!("Quota"));
    assert_eq!(decided(&unreadable, None, at(0)), nothing());
    let free = instance(|one| one["metadata"]["finalizers"] = json!(["other"]));
    assert_eq!(decided(&free, None, at(0)), Decision::only(Step::AddFinalizer));
    let held = instance(|_| {});
    assert!(matches!(decided(&held, None, at(0)).step, Step::Create(_)));
    // A finalizer that was taken away comes back before anything else is done.
    let own = pod(&held, &json!({ "phase": "Running" }));
    assert_eq!(decided(&free, Some(&own), at(0)), Decision::only(Step::AddFinalizer));
}

#[test]
fn what_no_pod_can_be_is_reported_and_gets_no_finalizer() {
    let machine = instance(|one| {
        one["metadata"]["finalizers"] = json!([]);
        one["spec"]["runtime"] = json!({ "resources": { "instanceType": "datumcloud/d1-standard-2" },
            "virtualMachine": { "volumeAttachments": [{ "name": "boot" }] } });
    });
    let decision = decided(&machine, None, at(0));
    assert_eq!((&decision.step, decision.requeue), (&Step::None, None));
    let [reason, message] = reported(&decision, &machine);
    assert_eq!(reason, "ConfigurationError");
    assert!(message.contains("cannot be a virtual machine"), "{message}");
}

#[test]
fn a_pod_of_another_owner_is_named_and_never_touched() {
    let instance = instance(|_| {});
    let mut foreign = pod(&instance, &json!({ "phase": "Failed" }));
    foreign.metadata.owner_references = None;
    let decision = decided(&instance, Some(&foreign), at(100_000));
    assert_eq!((&decision.step, decision.requeue), (&Step::None, Some(FOREIGN)));
    let [reason, message] = reported(&decision, &instance);
    assert_eq!(reason, "ConfigurationError");
    assert_eq!(
        message,
        "Pod web-0 has another owner: delete it, or rename the Workload"
    );

    let mut earlier = pod(&instance, &json!({ "phase": "Running" }));
    earlier.metadata.owner_references.as_mut().unwrap()[0].uid = "u0".to_owned();
    let decision = decided(&instance, Some(&earlier), at(0));
    assert_eq!(decision.step, Step::None);
    assert_eq!(reported(&decision, &instance)[0], "Provisioning");

    // Nor at the end: there is nothing of ours to delete.
    let deleted = crate::testing::instance(|one| one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    for other in [&foreign, &earlier] {
        assert_eq!(decided(&deleted, Some(other), at(0)), Decision::only(Step::Release));
    }
}

#[test]
fn a_deleted_instance_is_released_once_its_pod_is_gone() {
    let deleted = |one: &mut serde_json::Value| one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let instance = instance(deleted);
    let mut own = pod(&instance, &json!({ "phase": "Running" }));
    let decision = decided(&instance, Some(&own), at(0));
    assert_eq!(decision.step, Step::Delete("p1".to_owned()));
    assert_eq!(reported(&decision, &instance)[0], "Stopping");
    own.metadata.deletion_timestamp = Some(at(0).into());
    let decision = decided(&instance, Some(&own), at(0));
    assert_eq!(
        (&decision.step, &reported(&decision, &instance)[0][..]),
        (&Step::None, "Stopping")
    );
    assert_eq!(decided(&instance, None, at(0)), Decision::only(Step::Release));
    let free = crate::testing::instance(|one| {
        deleted(one);
        one["metadata"]["finalizers"] = json!(["other"]);
    });
    assert_eq!(decided(&free, Some(&own), at(0)), nothing());
}

#[test]
fn a_pod_that_someone_deletes_is_reported_until_it_is_gone_and_then_made_again() {
    let instance = instance(|_| {});
    let mut own = pod(&instance, &json!({ "phase": "Running" }));
    own.metadata.deletion_timestamp = Some(at(0).into());
    let decision = decided(&instance, Some(&own), at(0));
    assert_eq!(
        (&decision.step, &reported(&decision, &instance)[0][..]),
        (&Step::None, "Stopping")
    );
    assert!(matches!(decided(&instance, None, at(0)).step, Step::Create(_)));
}

/// Delays in seconds after which Pods are replaced that end at once, each in the place of the one before.
#[test]
fn a_pod_that_ended_is_replaced_later_each_time_in_a_row() {
    let instance = instance(|_| {});
    let ended = container(&json!({ "terminated": { "exitCode": 1, "finishedAt": at(3).to_string() } }));
    let mut own = pod(&instance, &json!({ "phase": "Failed", "containerStatuses": [ended] }));
    for (row, delay) in [(0, 10), (1, 20), (2, 40), (3, 80), (4, 160), (5, 300), (6, 300)] {
        let early = decided(&instance, Some(&own), at(3 + delay - 1));
        assert_eq!(
            (&early.step, early.requeue),
            (&Step::None, Some(Duration::from_secs(1)))
        );
        let message = &reported(&early, &instance)[1];
        assert_eq!(*message, format!("The Pod has failed; it is replaced after {delay} s"));
        let Step::Replace(uid, manifest) = decided(&instance, Some(&own), at(3 + delay)).step else {
            panic!("it is not replaced after {delay} s");
        };
        assert_eq!((uid.as_str(), pod::replacements(&manifest.pod)), ("p1", row + 1));
        own.metadata.annotations = manifest.pod.metadata.annotations;
    }
    // One that was there for long begins the row again.
    own.metadata.creation_timestamp = Some(at(3 - 600).into());
    assert!(matches!(decided(&instance, Some(&own), at(13)).step, Step::Replace(..)));
}

/// The kubelet evicts before a container ended, and says so in the conditions only.
#[test]
fn a_pod_that_was_evicted_counts_from_the_change_of_its_conditions() {
    let instance = instance(|_| {});
    let status = json!({ "phase": "Failed", "reason": "Evicted",
        "conditions": [crate::testing::condition("DisruptionTarget", "True", "", "")] });
    let own = pod(&instance, &status);
    assert_eq!(
        decided(&instance, Some(&own), at(4)).requeue,
        Some(Duration::from_secs(6))
    );
    assert!(matches!(decided(&instance, Some(&own), at(10)).step, Step::Replace(..)));
}

#[test]
fn a_pod_that_runs_is_never_changed() {
    let own = pod(&instance(|_| {}), &json!({ "phase": "Running" }));
    let changed = instance(|one| {
        one["spec"]["controller"]["templateHash"] = json!("h2");
        one["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!("another");
    });
    assert_eq!(decided(&changed, Some(&own), at(0)).step, Step::None);
}
