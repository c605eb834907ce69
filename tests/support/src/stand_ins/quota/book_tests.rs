//! The book's laws: never above the budget, never a grant lost, and what is given back goes to who waits.

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::super::FAIL;
use super::book::Book;
use super::{Amounts, Budget};

/// A claim for one instance; `second` is when it was made.
fn claim(name: &str, uid: &str, second: u32) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "quota.miloapis.com/v1alpha1",
        "kind": "ResourceClaim",
        "metadata": { "namespace": "default", "name": name, "uid": uid, "generation": 1, "resourceVersion": "1",
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z") },
        "spec": {
            "consumerRef": { "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p1" },
            "requests": [{ "resourceType": "compute.datumapis.com/instances", "amount": 1 }],
        },
        "status": { "conditions": [{ "type": "Granted", "status": "False", "reason": "PendingEvaluation",
            "message": "Awaiting capacity evaluation", "lastTransitionTime": "1970-01-01T00:00:00Z" }] },
    }))
    .unwrap()
}

fn listed(claims: &[DynamicObject]) -> Book {
    let mut book = Book::default();
    book.take(Event::Init);
    for claim in claims {
        book.take(Event::InitApply(claim.clone()));
    }
    book.take(Event::InitDone);
    book
}

/// Judges, and applies what is written as a server would; answers name and reason of each write.
fn judged(book: &mut Book, budget: Budget) -> Vec<(String, String)> {
    let mut reported = Vec::new();
    // Time goes on, and is no reason to write.
    for (mut claim, patch) in book.judge(&budget, Timestamp::now()) {
        let status = &patch["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let granted = conditions.iter().find(|one| one["type"] == "Granted");
        let reason = granted.map_or("", |one| one["reason"].as_str().unwrap());
        reported.push((claim.metadata.name.clone().unwrap(), reason.to_owned()));
        for (field, value) in status.as_object().unwrap() {
            claim.data["status"][field] = value.clone();
        }
        book.take(Event::Apply(claim));
    }
    reported
}

fn reported(name: &str, reason: &str) -> (String, String) {
    (name.to_owned(), reason.to_owned())
}

#[test]
fn who_came_first_is_granted_first_and_who_waits_gets_what_is_given_back() {
    let claims = [claim("a", "3", 3), claim("b", "1", 1), claim("c", "2", 2)];
    let mut book = listed(&claims);
    let two = Budget::instances(2);
    assert_eq!(
        judged(&mut book, two),
        [
            reported("b", "QuotaAvailable"),
            reported("c", "QuotaAvailable"),
            reported("a", "QuotaExceeded")
        ]
    );
    assert_eq!((book.audit().claims, book.audit().most.instances), (2, 2));
    assert_eq!(judged(&mut book, two), []);
    book.take(Event::Delete(claims[1].clone()));
    assert_eq!(book.audit().granted.instances, 1);
    assert_eq!(judged(&mut book, two), [reported("a", "QuotaAvailable")]);
    assert_eq!(book.audit().most.instances, 2);
}

#[test]
fn a_grant_counts_before_its_event_and_outlives_a_smaller_budget() {
    let mut book = listed(&[claim("a", "1", 1)]);
    let one = Budget::instances(1);
    // Judged, and the answer of the server not read yet.
    assert_eq!(book.judge(&one, Timestamp::UNIX_EPOCH).len(), 1);
    book.take(Event::Apply(claim("b", "2", 2)));
    assert_eq!(
        judged(&mut book, one),
        [reported("a", "QuotaAvailable"), reported("b", "QuotaExceeded")]
    );
    // The reason is a new one; the grant stays.
    assert_eq!(
        judged(&mut book, Budget::instances(0)),
        [reported("b", "QuotaExceeded")]
    );
    assert_eq!(book.audit().granted.instances, 1);
    assert_eq!(
        judged(&mut book, Budget::instances(2)),
        [reported("b", "QuotaAvailable")]
    );
}

#[test]
fn a_new_claim_of_the_same_name_is_another_claim() {
    let mut book = listed(&[claim("a", "1", 1), claim("b", "2", 2)]);
    let one = Budget::instances(1);
    judged(&mut book, one);
    // Its deletion was not seen.
    book.take(Event::Apply(claim("a", "3", 3)));
    assert_eq!(
        judged(&mut book, one),
        [reported("b", "QuotaAvailable"), reported("a", "QuotaExceeded")]
    );
    assert_eq!(book.audit().most.instances, 1);
}

#[test]
fn what_was_granted_before_the_start_or_gone_in_a_pause_is_counted_right() {
    let mut old = claim("old", "1", 1);
    old.data["status"] = json!({ "conditions": [{ "type": "Granted", "status": "True" }] });
    let mut book = listed(&[old.clone(), claim("new", "2", 2)]);
    assert_eq!(book.audit().granted.instances, 1);
    let one = Budget::instances(1);
    assert_eq!(
        judged(&mut book, one),
        [reported("old", "QuotaAvailable"), reported("new", "QuotaExceeded")]
    );
    book.take(Event::Init);
    book.take(Event::InitApply(claim("new", "2", 2)));
    // A list that is under way is no knowledge yet.
    assert_eq!(judged(&mut book, one), []);
    book.take(Event::InitDone);
    assert_eq!(judged(&mut book, one), [reported("new", "QuotaAvailable")]);
    assert_eq!(book.audit().most.instances, 1);
}

#[test]
fn nothing_is_judged_before_the_first_list_is_complete() {
    let mut book = Book::default();
    book.take(Event::Init);
    book.take(Event::InitApply(claim("a", "1", 1)));
    assert_eq!(judged(&mut book, Budget::default()), []);
}

#[test]
fn claims_are_refused_by_annotation_and_by_what_is_wrong_with_them() {
    let annotated = |value: &str| {
        let mut claim = claim("a", "1", 1);
        claim.metadata.annotations = Some([(FAIL.to_owned(), value.to_owned())].into());
        claim
    };
    let unlimited = Budget::default();
    for (value, reason) in [("denied", "QuotaExceeded"), ("nonsense", "ValidationFailed")] {
        assert_eq!(
            judged(&mut listed(&[annotated(value)]), unlimited),
            [reported("a", reason)]
        );
    }
    let mut wrong = claim("a", "1", 1);
    wrong.data["spec"]["requests"] = json!([]);
    assert_eq!(
        judged(&mut listed(&[wrong]), unlimited),
        [reported("a", "ValidationFailed")]
    );
    // A claim that was granted gives its share back when it is refused.
    let mut book = listed(&[claim("a", "1", 1), claim("b", "2", 2)]);
    let one = Budget::instances(1);
    judged(&mut book, one);
    book.take(Event::Apply(annotated("pending")));
    assert_eq!(
        judged(&mut book, one),
        [reported("a", "PendingEvaluation"), reported("b", "QuotaAvailable")]
    );
}

#[test]
fn each_resource_is_noted() {
    let mut book = listed(&[claim("a", "1", 1)]);
    let [(_, patch)] = &book.judge(&Budget::instances(1), Timestamp::UNIX_EPOCH)[..] else {
        panic!("one claim is told");
    };
    let noted = &patch["status"]["allocations"];
    assert_eq!(noted.as_array().map(Vec::len), Some(1));
    assert_eq!(noted[0]["resourceType"], "compute.datumapis.com/instances");
    assert_eq!(noted[0]["status"], "Granted");
    assert_eq!(noted[0]["allocatedAmount"], 1);
    assert_eq!(patch["status"]["observedGeneration"], Value::from(1));
    assert_eq!(book.audit().granted, Amounts::default());
}

#[test]
fn the_most_is_counted_since_the_audit_began() {
    let claims = [claim("a", "1", 1), claim("b", "2", 2)];
    let mut book = listed(&claims);
    judged(&mut book, Budget::instances(2));
    book.take(Event::Delete(claims[1].clone()));
    assert_eq!(book.audit().most.instances, 2);
    book.audit_anew();
    assert_eq!(book.audit().most.instances, 1);
}
