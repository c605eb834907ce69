use kube::core::Status;

use super::*;
use crate::testing::{instance, is_neutral};

#[test]
fn of_an_instance_only_what_is_decided_from_is_stored() {
    let whole = instance(|one| {
        one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        one["spec"]["controller"]["schedulingGates"] = json!([{ "name": "Quota" }]);
        one["status"] = json!({ "referencedDataHash": "h" });
    });
    let mut stored = whole.clone();
    forget_template(&mut stored);
    assert_eq!(
        stored.data,
        json!({ "spec": { "controller": { "schedulingGates": [{ "name": "Quota" }] } }, "status": { "referencedDataHash": "h" } })
    );
    let (kept, read) = (&stored.metadata, &whole.metadata);
    assert_eq!(
        (
            &kept.uid,
            &kept.resource_version,
            kept.generation,
            &kept.finalizers,
            &kept.deletion_timestamp
        ),
        (
            &read.uid,
            &read.resource_version,
            read.generation,
            &read.finalizers,
            &read.deletion_timestamp
        ),
    );
    assert_eq!((&kept.labels, &kept.annotations), (&None, &None));

    let mut bare = whole;
    bare.data = json!({ "spec": "none" });
    forget_template(&mut bare);
    assert_eq!(
        bare.data,
        json!({ "spec": { "controller": { "schedulingGates": null } }, "status": null })
    );
}

fn answer(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status::failure(message, "Reason").with_code(code)))
}

#[test]
fn what_a_cell_forbids_is_told_to_its_operator_and_not_to_the_tenant() {
    let account =
        "User \"system:serviceaccount:compute-system:popcell-provider-pod\" cannot create, quota of the cluster";
    let report = rejected(&answer(403, account)).unwrap();
    let patch = report.patch(&instance(|_| {}), Timestamp::UNIX_EPOCH).unwrap();
    let available = &patch["status"]["conditions"][1];
    assert_eq!(available["reason"], "Provisioning");
    assert!(is_neutral(available["message"].as_str().unwrap()), "{available}");
    // What is invalid is the tenant's to correct.
    let report = rejected(&answer(422, "spec.containers[0].name: Invalid value")).unwrap();
    let patch = report.patch(&instance(|_| {}), Timestamp::UNIX_EPOCH).unwrap();
    let available = &patch["status"]["conditions"][1];
    assert_eq!(available["reason"], "ConfigurationError");
    assert!(
        available["message"]
            .as_str()
            .unwrap()
            .contains("spec.containers[0].name")
    );
    assert_eq!(rejected(&answer(500, "")), None);
}
