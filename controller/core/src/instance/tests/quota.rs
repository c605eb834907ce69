use super::*;

const DENIED: [&str; 3] = ["Programmed", "Available", "Ready"];

#[test]
fn requeue_tiers_follow_the_age_of_the_instance() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for (millis, seconds) in [
        (0, 1),
        (5_000, 1),
        (59_900, 1),
        (60_000, 15),
        (299_000, 15),
        (299_999, 15),
        (300_000, 60),
        (599_000, 60),
        (600_000, 300),
        (86_400_000, 300),
        (-3_600_000, 1),
    ] {
        let now = Timestamp::from_millisecond(start.as_millisecond() + millis).unwrap();
        assert_eq!(tier(Some(start), now), Duration::from_secs(seconds), "{millis} ms");
    }
    assert_eq!(tier(None, start), Duration::from_secs(1));
    assert_eq!(tier(Some(Timestamp::MAX), Timestamp::MIN), Duration::from_secs(1));
    assert_eq!(tier(Some(Timestamp::MIN), Timestamp::MAX), Duration::from_mins(5));
}

#[test]
fn only_an_instance_without_a_grant_is_requeued() {
    let one = instance(&["Quota"], unobserved());
    let second = Some(Duration::from_secs(1));
    let (yes, no) = (claim("True", "QuotaAvailable", ""), claim("False", "QuotaExceeded", ""));
    for (quota, requeue) in [
        (Quota::Disabled, None),
        (Quota::Claim(&yes), None),
        (Quota::Claim(&no), second),
        (Quota::Absent, second),
        (Quota::NoProject, second),
        (Quota::BadProject, second),
        (Quota::Unknown(Some("no route")), second),
        (Quota::Unknown(None), second),
        (Quota::Foreign(&yes), second),
    ] {
        assert_eq!(decide(&seen(&one, quota)).requeue, requeue, "{quota:?}");
    }
    let mut old = one;
    old.metadata.creation_timestamp = Some(at("2000-01-01T00:00:00Z"));
    let requeue = decide(&seen(&old, Quota::Claim(&no))).requeue;
    assert_eq!(requeue, Some(Duration::from_mins(5)));
}

#[test]
fn without_credentials_quota_is_granted() {
    let one = after(&seen(&instance(&["Network", "Quota"], unobserved()), Quota::Disabled));
    assert_eq!(
        reported(&one, "QuotaGranted"),
        (
            "True",
            "QuotaDisabled",
            "Quota enforcement disabled: no credential configured"
        )
    );
    assert_eq!(gates_of(&one), ["Network"]);
}

#[test]
fn a_failing_quota_system_holds_gated_instances_and_says_why() {
    let mut foreign = claim("True", "QuotaAvailable", "theirs");
    foreign.metadata.labels = Some([("compute.datumapis.com/source-cluster".to_owned(), "ord-01".to_owned())].into());
    let refused = |reason, message| Quota::Refused { reason, message };
    for (id, quota, reason, message, counted) in [
        (
            "unreachable project",
            Quota::Unknown(Some("connection refused")),
            "QuotaBackendUnavailable",
            "The project cannot be asked: connection refused",
            "backend_unavailable",
        ),
        (
            "bad project label",
            Quota::BadProject,
            "QuotaProjectIDUnresolvable",
            "Namespace ns-n1 of the city names no project",
            "project_id_unresolvable",
        ),
        (
            "no project",
            refused("QuotaProjectNotFound", "p1 is not there"),
            "QuotaProjectNotFound",
            "p1 is not there",
            "project_not_found",
        ),
        (
            "no namespace",
            refused("QuotaNamespaceNotFound", "default is not there"),
            "QuotaNamespaceNotFound",
            "default is not there",
            "namespace_not_found",
        ),
        (
            "forbidden",
            refused("QuotaMisconfigured", "forbidden"),
            "QuotaMisconfigured",
            "forbidden",
            "misconfigured",
        ),
        (
            "foreign claim",
            Quota::Foreign(&foreign),
            "QuotaMisconfigured",
            "ResourceClaim default/instance-web-0 belongs to another owner (cell ord-01) and is kept",
            "misconfigured",
        ),
    ] {
        let one = instance(&["Network", "Quota"], unobserved());
        let plan = decide(&seen(&one, quota));
        let one = applied(&one, &plan).unwrap();
        assert_eq!(reported(&one, "QuotaGranted"), ("False", reason, message), "{id}");
        for type_ in DENIED {
            assert_eq!(reported(&one, type_), ("False", "PendingQuota", message), "{id}");
        }
        assert_eq!(gates_of(&one), ["Network", "Quota"], "{id}");
        assert_eq!(warnings(&plan), [reason], "{id}");
        assert_eq!(plan.notes, [Note::QuotaFailed(counted)], "{id}");
        assert!(decide(&seen(&one, quota)).is_unchanged(), "{id}");

        // Without the gate nothing of it is told on the Instance.
        let free = after(&seen(&instance(&[], unobserved()), quota));
        assert_eq!(
            reported(&free, "QuotaGranted"),
            ("Unknown", "PendingEvaluation", WAITING),
            "{id}"
        );
        assert_eq!(reason_of_ready(&free), "PendingProgramming", "{id}");
    }
    let nobodys = claim("True", "", "");
    let one = after(&seen(&instance(&["Quota"], unobserved()), Quota::Foreign(&nobodys)));
    assert!(
        reported(&one, "QuotaGranted")
            .2
            .contains("belongs to another owner and is kept")
    );
}

fn reason_of_ready(instance: &Object) -> &str {
    reason(instance, "Ready").1
}

#[test]
fn a_claim_that_stays_pending_is_reported_as_no_budget() {
    let born = claim("False", "PendingEvaluation", "Awaiting capacity evaluation");
    let one = instance(&["Quota"], unobserved());
    let look = |grace| Observation {
        gates_rejected: false,
        no_budget_grace: Duration::from_secs(grace),
        ..seen(&one, Quota::Claim(&born))
    };
    let message = "ResourceClaim is pending: no AllowanceBucket configured for this project";
    // The claim is four seconds old.
    for grace in [0, 3, 4] {
        let plan = decide(&look(grace));
        let one = applied(&one, &plan).unwrap();
        assert_eq!(reported(&one, "QuotaGranted"), ("Unknown", "QuotaNoBudget", message));
        assert_eq!(reason(&one, "Ready"), ("False", "SchedulingGatesPresent"));
        assert_eq!(
            (warnings(&plan), plan.requeue),
            (vec!["QuotaNoBudget"], Some(Duration::from_secs(1)))
        );
        assert_eq!(plan.notes, [Note::QuotaFailed("no_budget")]);
    }
    let plan = decide(&look(5));
    let early = applied(&one, &plan).unwrap();
    assert_eq!(
        reported(&early, "QuotaGranted"),
        ("Unknown", "PendingEvaluation", WAITING)
    );
    assert!(plan.events.is_empty() && plan.notes.is_empty());

    // An old Instance does not wait for its tier to hear the end of the grace.
    let mut old = one.clone();
    old.metadata.creation_timestamp = None;
    let later = Observation {
        instance: &old,
        now: "2026-01-01T00:09:56.250Z".parse().unwrap(),
        ..look(1)
    };
    assert_eq!(decide(&later).requeue, Some(Duration::from_millis(750)));
    // A claim of a clock that is ahead is new.
    let mut ahead = born.clone();
    ahead.metadata.creation_timestamp = Some(at("2036-01-01T00:00:00Z"));
    let early = after(&Observation {
        quota: Quota::Claim(&ahead),
        ..look(5)
    });
    assert_eq!(reason(&early, "QuotaGranted"), ("Unknown", "PendingEvaluation"));
}

#[test]
fn a_denial_says_what_was_asked_for_and_since_when() {
    let asked = "asked for 1 instance, 1000 millicores, 2048 MiB since 2026-01-01T00:09:56Z";
    for (said, shown) in [
        ("QuotaExceeded", "QuotaExceeded"),
        ("ValidationFailed", "ValidationFailed"),
        ("of another release", "QuotaExceeded"),
        ("", "QuotaExceeded"),
    ] {
        let no = claim("False", said, "Insufficient quota");
        let one = instance(&["Network", "Quota"], unobserved());
        let plan = decide(&seen(&one, Quota::Claim(&no)));
        let one = applied(&one, &plan).unwrap();
        let message = format!("Insufficient quota ({asked})");
        assert_eq!(reported(&one, "QuotaGranted"), ("False", shown, message.as_str()));
        for type_ in DENIED {
            assert_eq!(reported(&one, type_), ("False", "PendingQuota", message.as_str()));
        }
        assert_eq!(gates_of(&one), ["Network", "Quota"]);
        assert_eq!(plan.requeue, Some(Duration::from_secs(1)));
        assert!(plan.events.is_empty());
    }
    let bare = after(&seen(
        &instance(&["Quota"], unobserved()),
        Quota::Claim(&claim("False", "QuotaExceeded", "")),
    ));
    assert_eq!(reported(&bare, "QuotaGranted").2, asked);
}

#[test]
fn messages_are_bounded_and_reasons_follow_the_schema() {
    let huge = "\u{e9}".repeat(20_000);
    for (status, quota) in [
        ("True", "QuotaAvailable"),
        ("False", "QuotaExceeded"),
        ("False", "no reason!"),
    ] {
        let claim = claim(status, quota, &huge);
        let one = after(&seen(
            &instance(&["Network", "Quota"], unobserved()),
            Quota::Claim(&claim),
        ));
        for one in one.items("/status/conditions") {
            let length = conditions::text(one, "message").len();
            assert!(length <= conditions::MESSAGE_BYTES);
            let reported = ["QuotaGranted", "Ready"].contains(&conditions::text(one, "type")) && status == "False";
            assert!(
                !reported || length > conditions::MESSAGE_BYTES - 4,
                "cut at {length} bytes"
            );
            assert!(draft::is_reason(conditions::text(one, "reason")), "{one}");
        }
        let reported = reported(&one, "QuotaGranted").2;
        assert_eq!(reported.contains("2048 MiB since"), status == "False");
    }
    let plan = decide(&seen(&instance(&["Quota"], unobserved()), Quota::Unknown(Some(&huge))));
    assert!(plan.events[0].note.len() <= 1024);
    for (text, good) in [
        ("A", true),
        ("QuotaExceeded", true),
        ("a_b,c:d_", true),
        ("", false),
        ("1a", false),
        ("a:", false),
        ("a b", false),
        ("a-b", false),
        ("\u{e9}a", false),
    ] {
        assert_eq!(draft::is_reason(text), good, "{text:?}");
    }
    assert!(!draft::is_reason(&"a".repeat(1025)));
}

#[test]
fn the_quota_gate_is_removed_in_the_reconcile_that_sees_the_grant() {
    let (born, no, yes) = (
        claim("False", "PendingEvaluation", ""),
        claim("False", "QuotaExceeded", ""),
        claim("True", "QuotaAvailable", "Granted from bucket x"),
    );
    for before in [Quota::Absent, Quota::Claim(&born), Quota::Claim(&no)] {
        let held = after(&seen(&instance(&["Network", "Quota"], unobserved()), before));
        let plan = decide(&seen(&held, Quota::Claim(&yes)));
        let [Action::Patch(first), Action::Patch(second)] = plan.actions.as_slice() else {
            panic!("{plan:#?}");
        };
        assert!(first.status && !second.status && plan.status.is_none());
        assert_eq!(plan.requeue, None);
        let free = applied(&held, &plan).unwrap();
        assert_eq!(
            reported(&free, "QuotaGranted"),
            ("True", "QuotaAvailable", "Granted from bucket x")
        );
        assert_eq!(gates_of(&free), ["Network"]);
        for type_ in ["Programmed", "Available"] {
            assert_eq!(reported(&free, type_), ("Unknown", "Pending", CONTROLLER));
        }
        // The status of a reconcile that was cut short says what the next one does.
        let mut cut = plan.clone();
        cut.actions.truncate(1);
        let cut = applied(&held, &cut).unwrap();
        assert_eq!(gates_of(&after(&seen(&cut, Quota::Claim(&yes)))), ["Network"]);
    }
}

#[test]
fn a_grant_whose_event_was_lost_is_found_within_the_requeue_tier() {
    let mut one = instance(&["Quota"], unobserved());
    let yes = claim("True", "QuotaAvailable", "");
    for (created, seconds) in [("00:09:55", 1), ("00:08:00", 15), ("00:04:00", 60), ("00:00:00", 300)] {
        let created: Timestamp = format!("2026-01-01T{created}Z").parse().unwrap();
        one.metadata.creation_timestamp = Some(Time(created));
        let held = after(&seen(&one, Quota::Absent));
        let quiet = decide(&seen(&held, Quota::Absent));
        assert!(quiet.is_unchanged());
        assert_eq!(quiet.requeue, Some(Duration::from_secs(seconds)));
        assert!(gates_of(&after(&seen(&held, Quota::Claim(&yes)))).is_empty());
    }
}

#[test]
fn a_lasting_quota_failure_is_reported_and_counted_once() {
    let born = claim("False", "PendingEvaluation", "");
    let mut one = instance(&["Quota"], unobserved());
    let (mut events, mut counted) = (0, 0);
    for second in 0..60 {
        let plan = decide(&Observation {
            now: Timestamp::from_second(now().as_second() + second).unwrap(),
            ..seen(&one, Quota::Claim(&born))
        });
        events += plan.events.len();
        counted += plan.notes.len();
        one = applied(&one, &plan).unwrap();
    }
    assert_eq!((events, counted), (1, 1));

    // One outage, worded again at each try.
    let away = after(&seen(&one, Quota::Unknown(Some("connection refused"))));
    let again = decide(&seen(&away, Quota::Unknown(Some("i/o timeout"))));
    assert!(again.is_unchanged() && again.notes.is_empty(), "{again:#?}");
}

#[test]
fn a_claim_that_is_being_deleted_grants_nothing() {
    let mut going = claim("True", "QuotaAvailable", "");
    going.metadata.deletion_timestamp = Some(Time(now()));
    let mut one = instance(&["Quota"], unobserved());
    one.metadata.creation_timestamp = Some(at("2000-01-01T00:00:00Z"));
    let plan = decide(&seen(&one, Quota::Claim(&going)));
    let one = applied(&one, &plan).unwrap();
    assert_eq!(reason(&one, "QuotaGranted"), ("Unknown", "PendingEvaluation"));
    assert_eq!(
        (gates_of(&one), plan.requeue),
        (vec!["Quota"], Some(Duration::from_secs(1)))
    );
}

#[test]
fn a_claim_of_another_size_says_nothing() {
    for (status, reasons) in [("True", "QuotaAvailable"), ("False", "QuotaExceeded")] {
        let mut other = claim(status, reasons, "");
        other.data["spec"]["requests"][2]["amount"] = json!(1024);
        let one = after(&seen(&instance(&["Quota"], unobserved()), Quota::Claim(&other)));
        let message = "Waiting for quota evaluation: its ResourceClaim asks for another size";
        assert_eq!(
            reported(&one, "QuotaGranted"),
            ("Unknown", "PendingEvaluation", message)
        );
        assert_eq!(gates_of(&one), ["Quota"]);
    }
}

#[test]
fn an_instance_waits_while_its_claim_has_no_answer() {
    for conditions in [
        json!(null),
        json!([]),
        json!([{ "type": "Granted" }]),
        json!([{ "type": "Granted", "status": "Unknown", "reason": "QuotaAvailable" }]),
        json!([{ "type": "Other", "status": "True" }]),
        json!("Granted"),
    ] {
        let mut odd = claim("True", "", "");
        odd.data["status"]["conditions"] = conditions;
        let one = after(&seen(&instance(&["Quota"], unobserved()), Quota::Claim(&odd)));
        assert_eq!(
            reported(&one, "QuotaGranted"),
            ("Unknown", "PendingEvaluation", WAITING)
        );
    }
}

#[test]
fn a_namespace_that_names_no_project_leaves_quota_undecided() {
    let one = after(&seen(&instance(&["Quota"], unobserved()), Quota::NoProject));
    let (status, reason, message) = reported(&one, "QuotaGranted");
    assert_eq!((status, reason), ("Unknown", "PendingEvaluation"));
    assert!(message.starts_with("Waiting for quota evaluation: ") && message.contains("project"));
}

#[test]
fn a_gate_whose_removal_is_rejected_is_named_by_ready() {
    let (one, yes) = (instance(&["Quota"], unobserved()), claim("True", "QuotaAvailable", ""));
    let mut seen = seen(&one, Quota::Claim(&yes));
    assert_ne!(reason(&after(&seen), "Ready").1, "SchedulingGatesPresent");
    seen.gates_rejected = true;
    let rejected = after(&seen);
    assert_eq!(reason(&rejected, "Ready"), ("False", "SchedulingGatesPresent"));
    assert_eq!(gates_of(&rejected), Vec::<&str>::new(), "its removal is tried again");
}

#[test]
fn the_status_before_the_gate_never_says_ready() {
    let said = ["Programmed", "Available"].map(
        |type_| json!({ "type": type_, "status": "True", "reason": "Running", "message": "", "observedGeneration": 3 }),
    );
    let (one, yes) = (instance(&["Quota"], json!(said)), claim("True", "QuotaAvailable", ""));
    assert_eq!(reason(&after(&seen(&one, Quota::Claim(&yes))), "Ready").0, "False");
    let ungated = instance(&[], json!(said));
    assert_eq!(reason(&after(&seen(&ungated, Quota::Claim(&yes))), "Ready").0, "True");
}
