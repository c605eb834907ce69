use super::*;

const NOT_PROGRAMMED: (&str, &str, &str) = ("False", "PendingProgramming", "Instance has not been programmed");

/// Ready of an Instance that nothing holds, with these conditions in this order and in the other one.
fn ready(conditions: &[(&str, &str, &str, &str)]) -> (String, String, String) {
    let yes = claim("True", "QuotaAvailable", "");
    let of = |list: Vec<Value>| {
        let one = after(&seen(&instance(&[], json!(list)), Quota::Claim(&yes)));
        let (status, reason, message) = reported(&one, "Ready");
        (status.to_owned(), reason.to_owned(), message.to_owned())
    };
    let list: Vec<Value> = conditions
        .iter()
        .map(|(type_, status, reason, message)| condition(type_, status, reason, message))
        .collect();
    let there = of(list.clone());
    assert_eq!(of(list.into_iter().rev().collect()), there, "the order counts");
    there
}

fn assert_ready(conditions: &[(&str, &str, &str, &str)], expected: (&str, &str, &str)) {
    let (status, reason, message) = ready(conditions);
    assert_eq!(
        (status.as_str(), reason.as_str(), message.as_str()),
        expected,
        "{conditions:?}"
    );
}

#[test]
fn ready_names_the_scheduling_gates() {
    for (gates, message) in [
        (&["Network", "Quota"][..], "Scheduling gates present: Network, Quota"),
        (&["Quota"], "Scheduling gates present: Quota"),
        (&["Other"], "Scheduling gates present: Other"),
    ] {
        let programmed = json!([
            condition("Programmed", "True", "Programmed", ""),
            condition("Available", "True", "Available", "")
        ]);
        let one = after(&seen(&instance(gates, programmed), Quota::Absent));
        assert_eq!(reported(&one, "Ready"), ("False", "SchedulingGatesPresent", message));
    }
}

fn binding(index: usize, status: &str, reason: &str, message: &str) -> Object {
    object(
        json!({ "metadata": { "name": format!("web-net-{index}"), "namespace": NAMESPACE },
        "status": { "conditions": [condition("Ready", status, reason, message)] } }),
    )
}

#[test]
fn ready_shows_a_failed_network_before_denied_quota_before_the_gates() {
    let failed = |index, message| binding(index, "False", "NetworkFailedToCreate", message);
    let no = claim("False", "QuotaExceeded", "no");
    let (quota, network) = ("PendingQuota", "NetworkFailedToCreate");
    for (bindings, denied, expected) in [
        (vec![], false, ("SchedulingGatesPresent", "Scheduling gates present")),
        (vec![], true, (quota, "no (asked for")),
        (vec![failed(1, "no vpc")], false, (network, "no vpc")),
        (vec![failed(1, "no vpc")], true, (network, "no vpc")),
        (vec![failed(1, "second"), failed(0, "first")], true, (network, "first")),
        (
            vec![failed(0, "")],
            false,
            (network, "NetworkBinding web-net-0 could not be made"),
        ),
        // Of no interface of the Instance; on its way; there; of another reason; not written yet.
        (vec![failed(2, "other")], true, (quota, "no (asked for")),
        (
            vec![binding(0, "Unknown", network, "m")],
            true,
            (quota, "no (asked for"),
        ),
        (vec![binding(0, "True", network, "m")], true, (quota, "no (asked for")),
        (
            vec![binding(0, "False", "Pending", "m")],
            true,
            (quota, "no (asked for"),
        ),
        (
            vec![object(json!({ "metadata": { "name": "web-net-0" } }))],
            true,
            (quota, "no (asked for"),
        ),
    ] {
        let (one, deployment) = (instance(&["Network", "Quota"], unobserved()), deployment(None));
        let bindings: Vec<&Object> = bindings.iter().collect();
        let look = |deployment| Observation {
            bindings: Observed::Known(&bindings),
            deployment,
            ..seen(&one, if denied { Quota::Claim(&no) } else { Quota::Absent })
        };
        let plan = decide(&look(Some(&deployment)));
        let after = applied(&one, &plan).unwrap();
        let (status, reason, message) = reported(&after, "Ready");
        assert_eq!((status, reason), ("False", expected.0), "{bindings:?}");
        assert!(message.starts_with(expected.1), "{message}");
        assert_eq!(super::reason(&after, "Programmed").1 == quota, denied);
        assert_eq!(warnings(&plan).contains(&network), reason == network);
        // Whose the networks are is said by the WorkloadDeployment only.
        assert_ne!(super::reason(&super::after(&look(None)), "Ready").1, network);
    }
}

#[test]
fn ready_names_the_network_that_the_city_has_not_while_its_gate_is_there() {
    let (missing, elsewhere) = (
        "Network back is not in city DFW",
        "Network ns-2/back is not carried to city DFW: name a Network of the Workload's own namespace",
    );
    let absent = binding(
        1,
        "False",
        "NetworkNotFound",
        "The network referenced in the binding was not found.",
    );
    let failed = binding(0, "False", "NetworkFailedToCreate", "no vpc");
    let mut deployment = deployment(None);
    deployment.data = json!({ "spec": { "cityCode": "DFW" } }).into();
    let no = claim("False", "QuotaExceeded", "no");
    for (gates, namespace, own_only, bindings, expected) in [
        (&["Network"][..], "", true, vec![&absent], ("NetworkNotFound", missing)),
        (
            &["Network"],
            NAMESPACE,
            true,
            vec![&absent],
            ("NetworkNotFound", missing),
        ),
        (&["Network"], "ns-2", true, vec![], ("NetworkNotFound", elsewhere)),
        // In a single cluster it is there, or the network services say that it is not.
        (&["Network"], "ns-2", false, vec![], ("PendingQuota", "no")),
        (&["Network"], "ns-2", false, vec![&absent], ("NetworkNotFound", missing)),
        (
            &["Network"],
            "",
            true,
            vec![&absent, &failed],
            ("NetworkFailedToCreate", "no vpc"),
        ),
        (&["Network"], "", true, vec![], ("PendingQuota", "no")),
        (&["Quota"], "ns-2", true, vec![&absent], ("PendingQuota", "no")),
    ] {
        let mut one = instance(gates, unobserved());
        one.data["spec"]["networkInterfaces"] =
            json!([{ "network": { "name": "front" } }, { "network": { "name": "back", "namespace": namespace } }]);
        let after = after(&Observation {
            bindings: Observed::Known(&bindings),
            deployment: Some(&deployment),
            own_namespace_only: own_only,
            ..seen(&one, Quota::Claim(&no))
        });
        let (status, reason, message) = reported(&after, "Ready");
        assert_eq!((status, reason), ("False", expected.0), "{namespace} {bindings:?}");
        assert!(message.starts_with(expected.1), "{message}");
    }
}

#[test]
fn ready_says_that_a_city_does_not_serve_networks_while_the_gate_is_there() {
    let mut deployment = deployment(None);
    deployment.data = json!({ "spec": { "cityCode": "DFW" } }).into();
    for (gates, lacks, expected) in [
        (
            &["Network"][..],
            true,
            ("NetworkNotFound", "Network front is not served in city DFW"),
        ),
        (
            &["Network"],
            false,
            ("SchedulingGatesPresent", "Scheduling gates present: Network"),
        ),
        (
            &["Quota"],
            true,
            ("SchedulingGatesPresent", "Scheduling gates present: Quota"),
        ),
    ] {
        let mut one = instance(gates, unobserved());
        one.data["spec"]["networkInterfaces"] = json!([{ "network": { "name": "front" } }]);
        let after = after(&Observation {
            deployment: Some(&deployment),
            lacks_networks: lacks,
            ..seen(&one, Quota::Absent)
        });
        assert_eq!(reported(&after, "Ready"), ("False", expected.0, expected.1));
    }
}

#[test]
fn ready_says_which_data_the_city_has_not_while_their_gate_is_there() {
    let (why, reason) = ("Secret key is not in city DFW", "ReferencedDataNotReady");
    let no = claim("False", "QuotaExceeded", "no");
    let absent = binding(0, "False", "NetworkNotFound", "");
    let (said, present) = (condition("Ready", "False", reason, "before"), "SchedulingGatesPresent");
    let gates = &["Network", "Quota", "ReferencedData"][..];
    for (gates, data, said, denied, bindings, expected) in [
        (gates, Observed::Known(Some(why)), None, false, vec![], (reason, why)),
        (gates, Observed::Known(Some(why)), None, true, vec![], (reason, why)),
        (
            gates,
            Observed::Known(Some(why)),
            None,
            true,
            vec![&absent],
            ("NetworkNotFound", "Network a is not in city DFW"),
        ),
        // Found, and the gate is about to go.
        (
            gates,
            Observed::Known(None),
            Some(&said),
            false,
            vec![],
            (present, "Scheduling gates present: Network, Quota, ReferencedData"),
        ),
        // Not looked at since the start of the process: what was said stays.
        (gates, Observed::Unknown, Some(&said), true, vec![], (reason, "before")),
        (gates, Observed::Unknown, None, true, vec![], ("PendingQuota", "no")),
        // Another Instance of the WorkloadDeployment waits.
        (
            &["Quota"],
            Observed::Known(Some(why)),
            Some(&said),
            false,
            vec![],
            (present, "Scheduling gates present: Quota"),
        ),
    ] {
        let conditions: Vec<Value> = said.cloned().into_iter().collect();
        let one = instance(gates, json!(conditions));
        let mut deployment = deployment(None);
        deployment.data = json!({ "spec": { "cityCode": "DFW" } }).into();
        let after = after(&Observation {
            bindings: Observed::Known(&bindings),
            deployment: Some(&deployment),
            data,
            ..seen(&one, if denied { Quota::Claim(&no) } else { Quota::Absent })
        });
        let (status, reason, message) = reported(&after, "Ready");
        assert_eq!((status, reason), ("False", expected.0), "{gates:?} {data:?}");
        assert!(message.starts_with(expected.1), "{message}");
    }
}

#[test]
fn an_instance_that_is_not_programmed_shows_the_worst_cause() {
    let programmed = |status, reason| ("Programmed", status, reason, "p");
    let available = |status, reason| ("Available", status, reason, "a");
    for (conditions, expected) in [
        (vec![], NOT_PROGRAMMED),
        (vec![programmed("False", "Pending")], NOT_PROGRAMMED),
        (vec![programmed("False", "PendingProgramming")], NOT_PROGRAMMED),
        (
            vec![programmed("Unknown", "ProgrammingInProgress")],
            ("Unknown", "ProgrammingInProgress", "p"),
        ),
        (
            vec![
                programmed("Unknown", "ProgrammingInProgress"),
                available("Unknown", "ImageUnavailable"),
            ],
            ("Unknown", "ImageUnavailable", "a"),
        ),
        (
            vec![
                programmed("Unknown", "ProgrammingInProgress"),
                available("Unknown", "Provisioning"),
            ],
            ("Unknown", "Provisioning", "a"),
        ),
        // Equally bad: Programmed's own word, then Available's, then by name.
        (
            vec![
                programmed("False", "ConfigurationError"),
                available("False", "InstanceCrashing"),
            ],
            ("False", "ConfigurationError", "p"),
        ),
        (
            vec![
                programmed("False", "Pending"),
                ("Accepted", "False", "ImageUnavailable", "o"),
                available("False", "InstanceCrashing"),
            ],
            ("False", "InstanceCrashing", "a"),
        ),
        (
            vec![
                ("B", "False", "ImageUnavailable", "b"),
                ("A", "False", "InstanceCrashing", "a"),
            ],
            ("False", "InstanceCrashing", "a"),
        ),
        // The worse one wherever it is; what holds is no cause.
        (
            vec![
                programmed("Unknown", "Provisioning"),
                available("Unknown", "ImageUnavailable"),
                ("Network", "False", "NetworkFailedToCreate", "n"),
            ],
            ("False", "NetworkFailedToCreate", "n"),
        ),
        (
            vec![
                programmed("Unknown", "Provisioning"),
                available("True", "ImageUnavailable"),
            ],
            ("Unknown", "Provisioning", "p"),
        ),
        // Reasons that nobody knows say less than Programmed, or nothing.
        (
            vec![programmed("False", "Pending"), available("False", "Odd")],
            NOT_PROGRAMMED,
        ),
        (
            vec![programmed("False", "Odd"), available("False", "Other")],
            ("False", "Odd", "p"),
        ),
        (vec![programmed("False", "no reason!")], NOT_PROGRAMMED),
        (vec![programmed("", "Odd")], ("Unknown", "Odd", "p")),
        (
            vec![programmed("Unknown", "Pending"), available("True", "Available")],
            NOT_PROGRAMMED,
        ),
        (vec![("Ready", "False", "ImageUnavailable", "r")], NOT_PROGRAMMED),
    ] {
        assert_ready(&conditions, expected);
    }
}

#[test]
fn a_programmed_instance_is_as_ready_as_its_provider_says() {
    let programmed = ("Programmed", "True", "Programmed", "p");
    let pending = ("False", "Pending", "Instance is not available");
    for (available, expected) in [
        (vec![], pending),
        (vec![("Available", "Unknown", "Pending", "a")], pending),
        (vec![("Available", "False", "no reason!", "a")], pending),
        (vec![("Available", "False", "Stopped", "a")], ("False", "Stopped", "a")),
        (
            vec![("Available", "Unknown", "Unknown", "")],
            ("Unknown", "Unknown", ""),
        ),
        (
            vec![("Available", "False", "InstanceCrashing", "a")],
            ("False", "InstanceCrashing", "a"),
        ),
        (
            vec![("Available", "True", "Available", "a")],
            ("True", "Available", "Instance is ready"),
        ),
        (
            vec![
                ("Available", "True", "Available", "a"),
                ("Ready", "False", "Odd", "of an old provider"),
            ],
            ("True", "Available", "Instance is ready"),
        ),
    ] {
        let conditions: Vec<_> = [programmed].into_iter().chain(available).collect();
        assert_ready(&conditions, expected);
    }
}

#[test]
fn the_old_condition_running_means_nothing() {
    assert_ready(&[("Running", "True", "Running", "r")], NOT_PROGRAMMED);
    assert_ready(&[("Running", "False", "ImageUnavailable", "r")], NOT_PROGRAMMED);
    let programmed = ("Programmed", "True", "Programmed", "p");
    assert_ready(
        &[("Running", "True", "Running", "r"), programmed],
        ("False", "Pending", "Instance is not available"),
    );
}

#[test]
fn an_instance_with_the_old_condition_running_becomes_ready() {
    let yes = claim("True", "QuotaAvailable", "");
    let programmed = condition("Programmed", "True", "Programmed", "");
    let running = condition("Running", "True", "Running", "");
    let old = condition("Ready", "True", "Running", "");
    let one = after(&seen(
        &instance(&[], json!([running, programmed, old])),
        Quota::Claim(&yes),
    ));
    assert_eq!(reason(&one, "Ready"), ("False", "Pending"));
    let mut one = one;
    let list = one.data["status"]["conditions"].as_array_mut().unwrap();
    list.push(condition("Available", "True", "Available", ""));
    let one = after(&seen(&one, Quota::Claim(&yes)));
    assert_eq!(reason(&one, "Ready"), ("True", "Available"));
    assert_eq!(
        reason(&one, "Running"),
        ("True", "Running"),
        "it is nobody's, and stays"
    );
}

#[test]
fn what_quota_laid_over_is_taken_back_and_nothing_else_of_the_provider() {
    let overlaid = |type_| condition(type_, "False", "PendingQuota", "denied");
    let yes = claim("True", "QuotaAvailable", "");
    for gates in [&["Network"][..], &[]] {
        let one = instance(
            gates,
            json!([
                overlaid("Programmed"),
                overlaid("Available"),
                overlaid("Ready"),
                condition("Other", "False", "PendingQuota", "theirs")
            ]),
        );
        let one = after(&seen(&one, Quota::Claim(&yes)));
        for type_ in ["Programmed", "Available"] {
            assert_eq!(reported(&one, type_), ("Unknown", "Pending", CONTROLLER));
        }
        assert_eq!(reported(&one, "Other"), ("False", "PendingQuota", "theirs"));
    }
    let one = instance(
        &[],
        json!([condition("Programmed", "Unknown", "Odd", "p"), overlaid("Available")]),
    );
    let one = after(&seen(&one, Quota::Absent));
    assert_eq!(reported(&one, "Programmed"), ("Unknown", "Odd", "p"));
    assert_eq!(reported(&one, "Ready"), ("Unknown", "Odd", "p"));
}

#[test]
fn a_reason_that_needs_action_raises_one_event_when_it_begins() {
    let yes = claim("True", "QuotaAvailable", "");
    for why in [
        "ImageUnavailable",
        "InstanceCrashing",
        "ConfigurationError",
        "NetworkFailedToCreate",
    ] {
        let one = instance(
            &[],
            json!([
                condition("Programmed", "False", why, "m"),
                condition("QuotaGranted", "True", "QuotaAvailable", "")
            ]),
        );
        let plan = decide(&seen(&one, Quota::Claim(&yes)));
        assert_eq!(warnings(&plan), [why]);
        assert_eq!((plan.events[0].note.as_str(), plan.notes.len()), ("m", 0));
        let mut stuck = applied(&one, &plan).unwrap();
        assert!(decide(&seen(&stuck, Quota::Claim(&yes))).is_unchanged());
        // Another message is written, and not told.
        stuck.data["status"]["conditions"][0]["message"] = json!("another try");
        let again = decide(&seen(&stuck, Quota::Claim(&yes)));
        assert!(again.status.is_some() && again.events.is_empty());
    }
    for why in ["Provisioning", "Stopped", "Odd"] {
        let one = instance(&[], json!([condition("Programmed", "False", why, "m")]));
        assert!(decide(&seen(&one, Quota::Claim(&yes))).events.is_empty(), "{why}");
    }
}

#[test]
fn every_condition_of_ours_names_the_generation_and_the_time_of_its_last_change() {
    let no = claim("False", "QuotaExceeded", "");
    let mut one = instance(&["Quota"], unobserved());
    one.metadata.generation = Some(9);
    let one = after(&seen(&one, Quota::Claim(&no)));
    for condition in one.items("/status/conditions") {
        assert_eq!(condition["observedGeneration"], 9, "{condition}");
        assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:10:00Z", "{condition}");
    }
    // Only the reason changes: the time stays.
    let (born, old) = (
        claim("False", "PendingEvaluation", ""),
        instance(&["Quota"], unobserved()),
    );
    let one = after(&seen(&old, Quota::Claim(&born)));
    let quota = conditions::find(one.at("/status").unwrap(), "QuotaGranted").unwrap();
    assert_eq!(
        (&quota["reason"], &quota["lastTransitionTime"]),
        (&json!("QuotaNoBudget"), &json!("1970-01-01T00:00:00Z"))
    );
}
