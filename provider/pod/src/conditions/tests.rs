use super::*;
use crate::testing::{at, condition, container, instance, pod};

/// Status and reason of Programmed and Available, and the message of Available.
fn said(report: &Report) -> [&str; 5] {
    let Report {
        programmed, available, ..
    } = report;
    [
        programmed.status,
        &programmed.reason,
        available.status,
        &available.reason,
        &available.message,
    ]
}

fn of(status: &Value) -> Report {
    Report::of(&pod(&instance(|_| {}), status), &instance(|_| {}), at(0))
}

fn waiting(reason: &str) -> Value {
    container(&json!({ "waiting": { "reason": reason, "message": "details" } }))
}

#[test]
fn phases_are_conditions_as_the_contract_says() {
    let up = json!({ "phase": "Running", "podIP": "10.0.0.7", "conditions": [condition("Ready", "True", "", "")],
        "containerStatuses": [container(&json!({ "running": {} }))] });
    for (status, expected) in [
        (up, ["True", "Programmed", "True", "Available", "Instance is available"]),
        (
            json!({}),
            [
                "Unknown",
                "ProgrammingInProgress",
                "Unknown",
                "Provisioning",
                "The Pod waits for a node",
            ],
        ),
        (
            json!({ "phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable",
                "0/3 nodes are available: 1 node(s) had untolerated taint {tenant: other}, 2 Insufficient cpu, 1 Insufficient memory.")] }),
            [
                "Unknown",
                "ProgrammingInProgress",
                "Unknown",
                "Provisioning",
                "The Pod waits for a node with enough cpu and memory",
            ],
        ),
        (
            json!({ "phase": "Succeeded" }),
            ["True", "Programmed", "False", "Stopping", "The Pod has ended"],
        ),
        (
            json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" }),
            [
                "True",
                "Programmed",
                "False",
                "Failed",
                "The Pod has failed: Evicted: low on memory",
            ],
        ),
        (
            json!({ "phase": "Unknown" }),
            [
                "Unknown",
                "ProgrammingInProgress",
                "Unknown",
                "Unknown",
                "The Pod is in the phase Unknown",
            ],
        ),
        (
            json!({ "phase": "Running", "conditions": [condition("Ready", "False", "NodeNotReady", "no answer")] }),
            [
                "True",
                "Programmed",
                "Unknown",
                "Unknown",
                "The Pod is not ready: NodeNotReady: no answer",
            ],
        ),
    ] {
        assert_eq!(said(&of(&status)), expected, "{status}");
    }
}

#[test]
fn what_a_container_waits_for_is_translated_to_the_letter() {
    for (reason, expected) in [
        ("ImagePullBackOff", "ImageUnavailable"),
        ("ErrImagePull", "ImageUnavailable"),
        ("ImageInspectError", "ImageUnavailable"),
        ("InvalidImageName", "ImageUnavailable"),
        ("RegistryUnavailable", "ImageUnavailable"),
        ("CrashLoopBackOff", "InstanceCrashing"),
        ("CreateContainerError", "ConfigurationError"),
        ("CreateContainerConfigError", "ConfigurationError"),
    ] {
        for (phase, programmed) in [
            ("Pending", ["Unknown", "ProgrammingInProgress"]),
            ("Running", ["True", "Programmed"]),
        ] {
            let report = of(&json!({ "phase": phase, "containerStatuses": [waiting(reason)] }));
            let message = format!("Container web: {reason}: details");
            assert_eq!(
                said(&report),
                [programmed[0], programmed[1], "Unknown", expected, &message]
            );
        }
    }
    let other = of(&json!({ "phase": "Running", "containerStatuses": [waiting("ContainerCreating")] }));
    assert_eq!(said(&other)[3], "Provisioning");
    // One that ends now and then does not crash again and again.
    let ended = container(&json!({ "terminated": { "exitCode": 0 } }));
    let ended = of(&json!({ "phase": "Running", "containerStatuses": [ended] }));
    assert_eq!(
        said(&ended)[2..],
        [
            "Unknown",
            "Provisioning",
            "Container web ended with exit code 0 and is restarted"
        ]
    );
    // The cause that needs action counts, wherever it stands.
    let two = json!({ "phase": "Pending", "containerStatuses": [waiting("PodInitializing"), waiting("ErrImagePull")] });
    assert_eq!(said(&of(&two))[3], "ImageUnavailable");
}

#[test]
fn a_pod_without_a_network_for_a_minute_is_a_fault_of_the_site() {
    let status = json!({ "phase": "Pending", "containerStatuses": [waiting("ContainerCreating")], "conditions": [
        condition("PodScheduled", "True", "", ""), condition("PodReadyToStartContainers", "False", "", "")] });
    let plain = pod(&instance(|_| {}), &status);
    let early = Report::of(&plain, &instance(|_| {}), at(20));
    assert_eq!(
        (said(&early)[3], early.requeue),
        ("Provisioning", Some(Duration::from_secs(40)))
    );
    let late = Report::of(&plain, &instance(|_| {}), at(60));
    assert_eq!(
        (said(&late)[2], said(&late)[3], late.requeue),
        ("Unknown", "NetworkFailedToCreate", None)
    );
    // What it mounts may be missing too: that is the user's.
    let mounting =
        instance(|one| one["spec"]["volumes"] = json!([{ "name": "content", "configMap": { "name": "web" } }]));
    let mounts = pod(&mounting, &status);
    let late = Report::of(&mounts, &mounting, at(60));
    assert_eq!(said(&late)[3], "Provisioning");
    assert!(said(&late)[4].contains("volumes content"), "{late:?}");
    let mut with_data = mounting;
    with_data.data["status"]["referencedDataHash"] = json!("h");
    let late = Report::of(&mounts, &with_data, at(60));
    assert_eq!(
        said(&late)[3],
        "NetworkFailedToCreate",
        "the data was there before it started"
    );
    assert!(said(&late)[4].contains("volumes content"), "{late:?}");
    // A key of it may be missing all the same.
    let mut keyed = with_data;
    keyed.data["spec"]["volumes"][0]["configMap"]["items"] = json!([{ "key": "a", "path": "a" }]);
    let late = Report::of(&pod(&keyed, &status), &keyed, at(60));
    assert_eq!(said(&late)[3], "Provisioning");
}

#[test]
fn only_what_is_the_providers_own_is_written_and_only_where_it_differs() {
    let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "Pending", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z" });
    let mut object = instance(|one| {
        one["status"] =
            json!({ "conditions": [ready.clone()], "controller": { "observedTemplateHash": "h0", "later": 1 } });
    });
    let up = Report::of(
        &pod(&object, &json!({ "phase": "Running", "podIP": "10.0.0.7" })),
        &object,
        at(5),
    );
    let patch = up.patch(&object, at(5)).unwrap();
    assert_eq!(patch["metadata"], json!({ "resourceVersion": "9" }));
    let status = patch["status"].as_object().unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    assert_eq!(conditions[0], ready);
    let types: Vec<&str> = conditions.iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(types, ["Ready", "Programmed", "Available"]);
    assert_eq!(conditions[2]["observedGeneration"], 2);
    assert_eq!(
        status["networkInterfaces"],
        json!([{ "assignments": { "networkIP": "10.0.0.7" } }])
    );
    assert_eq!(status["controller"], json!({ "observedTemplateHash": "h1" }));
    assert_eq!(status.len(), 3);

    object.data["status"] = json!({ "conditions": conditions, "networkInterfaces": status["networkInterfaces"],
        "controller": { "observedTemplateHash": "h1", "later": 1 } });
    assert_eq!(up.patch(&object, at(99)), None, "an unchanged Pod is not written again");
    // While it ends, what it was stays; one that is made again has neither address nor another hash.
    let ending = Report::stopping().patch(&object, at(99)).unwrap();
    assert_eq!(ending["status"].as_object().unwrap().len(), 1);
    let again = Report::of(&pod(&object, &json!({ "phase": "Pending" })), &object, at(99));
    let again = again.patch(&object, at(99)).unwrap();
    assert_eq!(again["status"]["networkInterfaces"], Value::Null);
    assert!(again["status"].get("controller").is_none(), "{again}");
}

/// The hash is that of the Pod, whatever the Instance names by now.
#[test]
fn the_hash_is_that_of_what_runs() {
    let made = pod(&instance(|_| {}), &json!({ "phase": "Running" }));
    let changed = instance(|one| one["spec"]["controller"]["templateHash"] = json!("h2"));
    let patch = Report::of(&made, &changed, at(0)).patch(&changed, at(0)).unwrap();
    assert_eq!(patch["status"]["controller"]["observedTemplateHash"], "h1");
}
