use super::*;
use crate::conditions;
use crate::plan::Note;
use crate::testing::{FakeServers, now, object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

mod laws;
mod quota;
mod ready;
mod sticky;
mod upstream;

const NAMESPACE: &str = "ns-n1";
const WAITING: &str = "Waiting for quota evaluation";
const CONTROLLER: &str = "Waiting for controller";

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": 3,
        "lastTransitionTime": "1970-01-01T00:00:00Z" })
}

/// What the API server gives a new Instance.
fn unobserved() -> Value {
    let mut all = [
        condition("Programmed", "Unknown", "Pending", CONTROLLER),
        condition("Available", "Unknown", "Pending", CONTROLLER),
        condition("Ready", "Unknown", "Pending", CONTROLLER),
        condition("QuotaGranted", "Unknown", "PendingEvaluation", WAITING),
    ];
    for one in &mut all {
        one.as_object_mut().unwrap().remove("observedGeneration");
    }
    json!(all)
}

/// An Instance of slot 0, five seconds old.
fn instance(gates: &[&str], conditions: Value) -> Object {
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    object(
        json!({ "metadata": { "name": "web-0", "namespace": NAMESPACE, "uid": "i0", "resourceVersion": "1",
            "generation": 3, "creationTimestamp": "2026-01-01T00:09:55Z" },
        "spec": { "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" } },
            "networkInterfaces": [{ "network": { "name": "a" } }, { "network": { "name": "b" } }],
            "controller": { "templateHash": "h", "schedulingGates": gates } },
        "status": { "controller": { "observedTemplateHash": "h" }, "conditions": conditions } }),
    )
}

fn at(time: &str) -> Time {
    Time(time.parse().unwrap())
}

fn deployment(granted: Option<&str>) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "wd",
        "annotations": { "compute.datumapis.com/granted-slots": granted.unwrap_or_default() } } }),
    )
}

/// Our claim for slot 0, four seconds old, with its condition Granted.
fn claim(status: &str, reason: &str, message: &str) -> Object {
    object(
        json!({ "metadata": { "name": "instance-web-0", "namespace": "default", "uid": "c0",
            "creationTimestamp": "2026-01-01T00:09:56Z" },
        "spec": { "requests": [
            { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
            { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
            { "resourceType": "compute.datumapis.com/memory", "amount": 2048 }] },
        "status": { "conditions": [{ "type": "Granted", "status": status, "reason": reason, "message": message }] } }),
    )
}

fn seen<'a>(instance: &'a Object, quota: Quota<'a>) -> Observation<'a> {
    Observation {
        instance,
        deployment: None,
        bindings: Observed::Unknown,
        own_namespace_only: true,
        lacks_networks: false,
        data: Observed::Unknown,
        quota,
        gates_rejected: false,
        no_budget_grace: Duration::ZERO,
        now: now(),
    }
}

/// The Instance after a plan.
fn applied(instance: &Object, plan: &Plan) -> Option<Object> {
    let mut servers = FakeServers::default();
    servers.put(&Plane::Cell, kind::INSTANCE, instance.clone());
    servers.apply(plan);
    servers.get(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-0").cloned()
}

fn after(seen: &Observation<'_>) -> Object {
    applied(seen.instance, &decide(seen)).unwrap()
}

/// Status, reason and message of a condition.
fn reported<'a>(instance: &'a Object, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = conditions::find(instance.at("/status").unwrap(), type_).unwrap_or(&Value::Null);
    (
        conditions::text(found, "status"),
        conditions::text(found, "reason"),
        conditions::text(found, "message"),
    )
}

fn reason<'a>(instance: &'a Object, type_: &str) -> (&'a str, &'a str) {
    let (status, reason, _) = reported(instance, type_);
    (status, reason)
}

fn warnings(plan: &Plan) -> Vec<&str> {
    plan.events.iter().map(|event| event.reason.as_str()).collect()
}

#[test]
fn finalizers_of_upstreams_operator_are_removed_and_others_stay() {
    let mut one = instance(&["Quota"], unobserved());
    let finalizers = [
        "compute.datumapis.com/instance-controller",
        "unikraft.datumapis.com/finalizer",
        "quota.compute.datumapis.com/claim-cleanup",
    ];
    one.metadata.finalizers = Some(finalizers.map(str::to_owned).to_vec());
    let left = Some(vec!["unikraft.datumapis.com/finalizer".to_owned()]);
    let granted = claim("True", "QuotaAvailable", "");
    for (quota, gates) in [(Quota::Claim(&granted), 0), (Quota::Absent, 1)] {
        let after = after(&seen(&one, quota));
        assert_eq!(after.metadata.finalizers, left);
        assert_eq!(gates_of(&after).len(), gates);
    }
    // Going: nothing is let go or asked for, and the status still follows the provider.
    one.metadata.deletion_timestamp = Some(Time(now()));
    let plan = decide(&seen(&one, Quota::Claim(&granted)));
    let after = applied(&one, &plan).unwrap();
    assert_eq!((plan.requeue, &after.metadata.finalizers), (None, &left));
    assert_eq!(gates_of(&after), ["Quota"]);
    assert_eq!(reported(&after, "QuotaGranted"), reported(&one, "QuotaGranted"));

    one.metadata.finalizers = Some(finalizers[2..].iter().map(|&one| one.to_owned()).collect());
    assert_eq!(applied(&one, &decide(&seen(&one, Quota::Absent))), None);
}

#[test]
fn unreadable_fields_of_an_instance_read_as_absent() {
    for (spec, status) in [
        (json!(null), json!(null)),
        (json!({ "controller": null }), json!({ "conditions": null })),
        (json!({ "controller": { "schedulingGates": "Quota" } }), json!("x")),
        (
            json!({ "controller": { "schedulingGates": [null, 7, {}] } }),
            json!({ "conditions": {} }),
        ),
        (json!([]), json!([1])),
        (json!({ "networkInterfaces": 3 }), json!({ "conditions": [{}] })),
    ] {
        let bare = object(
            json!({ "metadata": { "name": "web-0", "namespace": NAMESPACE, "uid": "u",
            "resourceVersion": "1" },
            "spec": spec, "status": status }),
        );
        let gone = object(json!({ "metadata": {}, "spec": null, "status": 1 }));
        for quota in [
            Quota::Absent,
            Quota::Claim(&gone),
            Quota::Foreign(&gone),
            Quota::Unknown(None),
        ] {
            let one = after(&seen(&bare, quota));
            assert_eq!(
                reason(&one, "Ready"),
                ("False", "PendingProgramming"),
                "{spec} {status}"
            );
            assert_eq!(reason(&one, "QuotaGranted"), ("Unknown", "PendingEvaluation"));
            assert!(decide(&seen(&one, quota)).is_unchanged());
        }
    }
}
