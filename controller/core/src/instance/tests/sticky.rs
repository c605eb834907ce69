use super::*;

fn with_quota(gates: &[&str], status: &str, why: &str, generation: i64) -> Object {
    let mut quota = condition("QuotaGranted", status, why, "m");
    quota["observedGeneration"] = json!(generation);
    instance(
        gates,
        json!([
            condition("Programmed", "True", "Programmed", "m"),
            condition("Available", "True", "Available", "m"),
            quota
        ]),
    )
}

#[test]
fn a_started_instance_keeps_its_quota_answer_until_its_own_claim_changes_it() {
    let (yes, no, born) = (
        claim("True", "QuotaAvailable", "m"),
        claim("False", "QuotaExceeded", "m"),
        claim("False", "PendingEvaluation", "m"),
    );
    let mut going = no.clone();
    going.metadata.deletion_timestamp = Some(Time(now()));
    let mut other = no.clone();
    other.data["spec"]["requests"] = json!([]);
    let refused = Quota::Refused {
        reason: "QuotaMisconfigured",
        message: "m",
    };
    let stand = [
        Quota::NoProject,
        Quota::BadProject,
        Quota::Unknown(None),
        Quota::Unknown(Some("away")),
        refused,
        Quota::Absent,
        Quota::Foreign(&no),
        Quota::Claim(&born),
        Quota::Claim(&going),
        Quota::Claim(&other),
    ];
    // What was answered stands, yes or no; what never was an answer does not.
    for (before, stands) in [
        (("True", "QuotaAvailable"), true),
        (("True", "QuotaDisabled"), true),
        (("False", "QuotaExceeded"), true),
        (("False", "ValidationFailed"), true),
        (("False", "QuotaBackendUnavailable"), false),
        (("False", "QuotaMisconfigured"), false),
    ] {
        let one = with_quota(&[], before.0, before.1, 3);
        for quota in stand {
            let plan = decide(&seen(&one, quota));
            let one = applied(&one, &plan).unwrap();
            assert_eq!(reason(&one, "QuotaGranted") == before, stands, "{before:?} {quota:?}");
            assert_eq!(reason(&one, "Ready"), ("True", "Available"), "{before:?} {quota:?}");
            assert_eq!(plan.requeue.is_some(), before.0 != "True", "{before:?} {quota:?}");
        }
        let lowered = after(&seen(&one, Quota::Claim(&no)));
        assert_eq!(reason(&lowered, "QuotaGranted"), ("False", "QuotaExceeded"));
        for type_ in ["Programmed", "Available", "Ready"] {
            assert_eq!(reported(&lowered, type_).0, "True", "a denial stops nothing");
        }
        let raised = after(&seen(&one, Quota::Claim(&yes)));
        assert_eq!(reason(&raised, "QuotaGranted"), ("True", "QuotaAvailable"));
    }
}

#[test]
fn a_grant_of_an_older_generation_opens_no_gate() {
    let born = claim("False", "PendingEvaluation", "");
    // Recorded for the Instance as it is: stands while nobody can be asked.
    for (generation, quota, opens) in [
        (3, Quota::Unknown(Some("away")), true),
        (3, Quota::Unknown(None), true),
        (2, Quota::Unknown(Some("away")), false),
        (2, Quota::Unknown(None), false),
        (3, Quota::Absent, false),
        (3, Quota::NoProject, false),
        (3, Quota::BadProject, false),
        (3, Quota::Claim(&born), false),
        (2, Quota::Claim(&born), false),
    ] {
        let one = after(&seen(
            &with_quota(&["Quota"], "True", "QuotaAvailable", generation),
            quota,
        ));
        assert_eq!(gates_of(&one).is_empty(), opens, "{generation} {quota:?}");
        assert_eq!(
            reported(&one, "QuotaGranted").0 == "True",
            opens,
            "{generation} {quota:?}"
        );
    }
    // Nobody was asked at that time.
    let disabled = with_quota(&["Quota"], "True", "QuotaDisabled", 3);
    assert_eq!(
        gates_of(&after(&seen(&disabled, Quota::Unknown(Some("away"))))),
        ["Quota"]
    );
    let yes = claim("True", "QuotaAvailable", "");
    let one = after(&seen(
        &with_quota(&["Quota"], "True", "QuotaAvailable", 2),
        Quota::Claim(&yes),
    ));
    assert!(gates_of(&one).is_empty());
}

#[test]
fn a_granted_slot_starts_again_while_the_project_is_unreachable() {
    let one = instance(&["Network", "Quota"], unobserved());
    for (granted, quota, opens) in [
        (Some("0,2"), Quota::Unknown(Some("away")), true),
        (Some("1,2"), Quota::Unknown(Some("away")), false),
        (None, Quota::Unknown(Some("away")), false),
        (Some("0"), Quota::Unknown(None), false),
        (Some("0"), Quota::Absent, false),
        (Some("0"), Quota::NoProject, false),
    ] {
        let deployment = deployment(granted);
        let look = Observation {
            deployment: Some(&deployment),
            ..seen(&one, quota)
        };
        let after = after(&look);
        assert_eq!(gates_of(&after).contains(&"Quota"), !opens, "{granted:?} {quota:?}");
        assert_eq!(reason(&after, "QuotaGranted") == ("True", "QuotaAvailable"), opens);
    }
    // What was said to the Instance itself weighs more: it waits for its claim, or was denied.
    let remembering = deployment(Some("0"));
    for (status, why) in [
        ("Unknown", "PendingEvaluation"),
        ("Unknown", "QuotaNoBudget"),
        ("False", "QuotaExceeded"),
    ] {
        let mut held = with_quota(&["Quota"], status, why, 3);
        for _ in 0..3 {
            held = after(&Observation {
                deployment: Some(&remembering),
                ..seen(&held, Quota::Unknown(Some("away")))
            });
            assert_eq!(reason(&held, "QuotaGranted"), ("False", "QuotaBackendUnavailable"));
        }
    }
    let mut ungenerated = instance(
        &["Quota"],
        json!([condition("QuotaGranted", "False", "QuotaExceeded", "m")]),
    );
    ungenerated.metadata.generation = None;
    let denied = &mut ungenerated.data["status"]["conditions"][0];
    denied.as_object_mut().unwrap().remove("observedGeneration");
    let held = after(&Observation {
        deployment: Some(&remembering),
        ..seen(&ungenerated, Quota::Unknown(Some("away")))
    });
    assert_eq!(gates_of(&held), ["Quota"]);
    let mut unexpected = one;
    unexpected.metadata.name = Some("web-00".to_owned());
    let deployment = deployment(Some("0"));
    let plan = decide(&Observation {
        deployment: Some(&deployment),
        ..seen(&unexpected, Quota::Unknown(Some("away")))
    });
    assert!(plan.actions.is_empty(), "no slot, no memory");
}

/// The status of a grant was written, and the gate stayed: the gate Network went meanwhile and moved the generation.
#[test]
fn an_interrupted_grant_is_repeated_only_for_a_remembered_slot() {
    let half = with_quota(&["Quota"], "True", "QuotaAvailable", 2);
    for (granted, opens) in [(Some("0"), true), (None, false)] {
        let deployment = deployment(granted);
        let after = after(&Observation {
            deployment: Some(&deployment),
            ..seen(&half, Quota::Unknown(Some("away")))
        });
        assert_eq!(gates_of(&after).is_empty(), opens, "{granted:?}");
    }
}

#[test]
fn a_list_that_is_not_there_yet_changes_nothing() {
    for (status, why) in [
        ("False", "QuotaExceeded"),
        ("False", "QuotaBackendUnavailable"),
        ("Unknown", "QuotaNoBudget"),
    ] {
        let one = with_quota(&["Quota"], status, why, 3);
        let first = decide(&seen(&one, Quota::Unknown(None)));
        let after = applied(&one, &first).unwrap();
        assert_eq!(reported(&after, "QuotaGranted"), (status, why, "m"));
        assert!(first.events.is_empty() && first.requeue.is_some());
    }
}
