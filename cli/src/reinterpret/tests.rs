use serde_json::{Value, json};

use super::*;

fn object(metadata: &Value) -> Object {
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

#[test]
fn what_was_bumped_since_is_skipped() {
    let bumped = |at: &str| object(&json!({ "name": "a", "annotations": { REINTERPRETED_AT: at } }));
    let since = Some("2026-01-01T12:00:00Z".parse().unwrap());
    assert!(is_due(&bumped("2026-01-01T11:59:59.999999Z"), since));
    assert!(!is_due(&bumped("2026-01-01T12:00:00Z"), since));
    // Other spellings of the time, and what is no time.
    assert!(!is_due(&bumped("2026-01-01T14:00:00+02:00"), since));
    assert!(is_due(&bumped("yesterday"), since));
    assert!(is_due(&object(&json!({ "name": "a" })), since));
    assert!(is_due(&bumped("2026-01-01T12:00:00Z"), None));
}

#[test]
fn what_is_being_deleted_is_skipped() {
    let going = object(&json!({ "name": "a", "deletionTimestamp": "2026-01-01T12:00:00Z" }));
    assert!(!is_due(&going, None));
}

#[test]
fn an_object_that_is_gone_is_no_failure_and_a_refused_identity_ends_the_run() {
    let refused = |code| {
        fate(Ok(Answer::Refused {
            code,
            message: "no".to_owned(),
        }))
    };
    assert_eq!(fate(Ok(Answer::Gone)), (Fate::Gone, None));
    assert_eq!(
        fate(Ok(Answer::Changed("x".to_owned()))),
        (Fate::Failed, Some("409 x".to_owned()))
    );
    assert_eq!(refused(422), (Fate::Failed, Some("422 no".to_owned())));
    assert_eq!(refused(403).0, Fate::Forbidden);
    assert_eq!(refused(401).0, Fate::Forbidden);
}

#[test]
fn counts_add_up() {
    let mut count = Count {
        kind: "WorkloadDeployment".to_owned(),
        all: 6,
        left_out: 2,
        ..Count::default()
    };
    for fate in [Fate::Bumped, Fate::Gone, Fate::Failed] {
        count.note(fate);
    }
    assert_eq!(count.progress(), "5 of 6");
    assert_eq!(
        count.to_string(),
        "WorkloadDeployment: 1 of 6 bumped, 2 skipped, 1 gone meanwhile, 1 failed"
    );
    assert_eq!(count.failed, 1);
}

#[test]
fn names_have_their_namespace() {
    assert_eq!(named(&object(&json!({ "name": "a", "namespace": "n" }))), "n/a");
    assert_eq!(named(&object(&json!({ "name": "a" }))), "a");
}
