use std::time::Duration;

use serde_json::json;

use super::*;

mod properties;

const ME: &str = "me";

fn wall() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn seconds(number: f64) -> Duration {
    Duration::from_secs_f64(number)
}

/// The Lease as a server shows it.
fn lease(holder: &str, renewal: u32, version: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": { "name": "l", "namespace": "n", "resourceVersion": version },
        "spec": { "holderIdentity": holder, "leaseTransitions": 4, "leaseDurationSeconds": 15,
            "acquireTime": "2025-01-01T00:00:00.000000Z",
            "renewTime": format!("2025-01-01T00:00:{renewal:02}.000000Z") },
    }))
    .unwrap()
}

struct Run {
    machine: Machine,
    start: Time,
}

impl Run {
    fn new() -> Self {
        let start = Time::default();
        let machine = Machine::new(ME.to_owned(), "n", "l", start);
        Self { machine, start }
    }

    /// A replica that has held the Lease since the start.
    fn holding() -> Self {
        let mut run = Self::new();
        run.read(0.0, Some(lease("", 0, "0")));
        assert!(matches!(run.step(0.0), Step::Replace(_)));
        run.machine.written(lease(ME, 0, "1"), run.start);
        run
    }

    fn at(&self, after: f64) -> Time {
        self.start + seconds(after)
    }

    fn step(&mut self, after: f64) -> Step {
        let now = self.at(after);
        self.machine.step(now, wall())
    }

    fn read(&mut self, after: f64, lease: Option<Lease>) {
        let now = self.at(after);
        self.machine.read(lease, now);
    }

    /// It reads that there is no Lease, every second and at the end.
    fn looks(&mut self, from: f64, to: f64) {
        let mut after = from;
        while after < to {
            self.read(after, None);
            after += 1.0;
        }
        self.read(to, None);
    }

    fn sleeps_until(&mut self, after: f64, until: f64) {
        let until = Step::Sleep(self.at(until));
        assert_eq!(self.step(after), until);
    }

    fn replaces(&mut self, after: f64) -> LeaseSpec {
        match self.step(after) {
            Step::Replace(lease) => lease.spec.unwrap(),
            other => panic!("after {after} s: {other:?}"),
        }
    }
}

#[test]
fn an_absent_lease_is_created_and_held_from_the_sending() {
    let mut run = Run::new();
    assert_eq!(run.step(0.0), Step::Read);
    run.read(0.1, None);
    run.sleeps_until(0.1, 1.1);
    run.looks(1.1, 15.0);
    run.sleeps_until(15.0, 15.1);
    let Step::Create(created) = run.step(15.1) else {
        panic!()
    };
    assert_eq!(
        (created.metadata.name.as_deref(), created.metadata.namespace.as_deref()),
        (Some("l"), Some("n"))
    );
    let spec = created.spec.clone().unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_duration_seconds),
        (Some(ME), Some(15))
    );
    assert_eq!(
        (spec.lease_transitions, spec.renew_time),
        (Some(0), Some(MicroTime(wall())))
    );
    assert_eq!(run.machine.until(), None);
    let sent = run.at(15.1);
    run.machine.written(*created, sent);
    assert_eq!(run.machine.until(), Some(sent + TERM));
    run.sleeps_until(16.0, 17.1);
    let spec = run.replaces(17.1);
    // The record changes although the clock of the wall stands still, and says who has held it since when.
    assert_eq!(
        spec.renew_time,
        Some(MicroTime("2026-01-01T00:00:00.000001Z".parse().unwrap()))
    );
    assert_eq!(
        (spec.acquire_time, spec.lease_transitions),
        (Some(MicroTime(wall())), Some(0))
    );
}

#[test]
fn a_released_lease_is_taken_at_once() {
    for holder in ["", ME] {
        let mut run = Run::new();
        run.read(0.0, Some(lease(holder, 0, "1")));
        let spec = run.replaces(0.0);
        assert_eq!(spec.holder_identity.as_deref(), Some(ME));
    }
    let mut run = Run::new();
    let bare = serde_json::from_value(json!({ "metadata": { "name": "l" } })).unwrap();
    run.read(0.0, Some(bare));
    assert_eq!(run.replaces(0.0).lease_transitions, Some(0));
}

#[test]
fn a_record_that_does_not_change_is_taken_after_15_s_of_the_own_clock() {
    let mut run = Run::new();
    run.read(0.0, Some(lease("other", 0, "1")));
    run.sleeps_until(0.0, 1.0);
    assert_eq!(run.step(1.0), Step::Read);
    // Renewed.
    run.read(1.0, Some(lease("other", 2, "2")));
    // Annotated, which is no sign of life.
    run.read(2.0, Some(lease("other", 2, "3")));
    run.read(15.5, Some(lease("other", 2, "3")));
    run.sleeps_until(15.5, 16.0);
    let spec = run.replaces(16.0);
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_transitions),
        (Some(ME), Some(5))
    );
}

#[test]
fn a_replica_that_slept_writes_against_what_it_saw_and_so_cannot_take_what_was_renewed() {
    let mut run = Run::new();
    run.read(0.0, Some(lease("other", 0, "1")));
    let Step::Replace(taken) = run.step(30.0) else { panic!() };
    assert_eq!(taken.metadata.resource_version.as_deref(), Some("1"));
    let now = run.at(30.0);
    run.machine.conflict(now);
    assert_eq!(run.step(30.0), Step::Read);
    run.read(30.0, Some(lease("other", 28, "15")));
    run.sleeps_until(30.0, 31.0);
}

#[test]
fn a_holder_that_was_suspended_has_lost_the_lease_whatever_was_answered() {
    let mut run = Run::holding();
    assert_eq!(run.step(30.0), Step::Lost(Loss::Expired));
    let mut run = Run::holding();
    let sent = run.at(2.0);
    // The renewal was sent before the sleep, its answer is read after it.
    run.machine.written(lease(ME, 2, "2"), sent);
    assert_eq!(run.step(32.0), Step::Lost(Loss::Expired));
    assert_eq!(run.machine.until(), None);
}

#[test]
fn renewals_that_fail_are_repeated_until_the_permission_ends() {
    let mut run = Run::holding();
    for after in [2.0, 4.0, 6.0, 8.0] {
        run.replaces(after);
        let (sent, now) = (run.at(after), run.at(after + 0.1));
        run.machine.failed(sent, now);
        run.sleeps_until(after + 0.1, after + 1.0);
    }
    // Who waited for an answer need not wait any more.
    let mut slow = Run::holding();
    let (sent, now) = (slow.at(2.0), slow.at(5.0));
    slow.machine.failed(sent, now);
    slow.replaces(5.0);
    let mut saved = Run::holding();
    saved.replaces(9.9);
    let sent = saved.at(9.9);
    saved.machine.written(lease(ME, 9, "2"), sent);
    saved.sleeps_until(10.5, 11.9);
    assert_eq!(run.step(10.0), Step::Lost(Loss::Expired));
}

#[test]
fn a_holder_that_sees_another_holder_stops_at_once() {
    let mut run = Run::holding();
    let now = run.at(2.0);
    run.machine.conflict(now);
    assert_eq!(run.step(2.0), Step::Read);
    run.read(2.1, Some(lease("thief", 0, "9")));
    assert_eq!(run.machine.until(), None);
    assert_eq!(run.step(2.1), Step::Lost(Loss::Taken("thief".to_owned())));
}

#[test]
fn an_edited_or_deleted_lease_is_renewed_by_its_holder_unless_another_took_it() {
    let edited = |lease: Option<Lease>| {
        let mut run = Run::holding();
        let now = run.at(2.0);
        run.machine.conflict(now);
        run.read(2.1, lease);
        run.step(2.1)
    };
    assert!(matches!(edited(None), Step::Create(_)));
    for holder in [ME, ""] {
        let step = edited(Some(lease(holder, 0, "9")));
        let Step::Replace(renewed) = step else {
            panic!("{step:?}")
        };
        assert_eq!(renewed.metadata.resource_version.as_deref(), Some("9"));
    }
}

#[test]
fn a_deleted_lease_is_taken_over_only_once_its_holder_may_no_longer_write() {
    let mut run = Run::new();
    run.read(0.0, Some(lease("other", 0, "1")));
    run.read(1.0, None);
    run.sleeps_until(1.0, 2.0);
    run.looks(2.0, 15.0);
    run.sleeps_until(15.0, 16.0);
    assert!(matches!(run.step(16.0), Step::Create(_)));
    // Whoever took one that was released, and before a replica that saw neither, is not known to either.
    for before in [None, Some(lease("", 0, "1"))] {
        let mut run = Run::new();
        run.read(0.0, before.clone());
        let first = if before.is_some() { 1.0 } else { 0.0 };
        run.looks(1.0, first + 14.5);
        run.sleeps_until(first + 14.5, first + 15.0);
        assert!(matches!(run.step(first + 15.0), Step::Create(_)), "{before:?}");
    }
}

#[test]
fn who_did_not_look_for_a_while_does_not_know_that_there_was_no_lease() {
    let mut run = Run::new();
    run.looks(0.0, 14.0);
    // Between this look and the next the holder may have made it, and somebody deleted it again.
    assert_eq!(run.step(30.0), Step::Read);
    run.read(30.0, None);
    run.looks(31.0, 44.0);
    run.sleeps_until(44.0, 45.0);
    assert!(matches!(run.step(45.0), Step::Create(_)));
}

#[test]
fn conflicts_without_end_are_not_answered_in_a_loop() {
    let mut run = Run::holding();
    for _ in 0..CONFLICTS {
        let now = run.at(3.0);
        run.machine.conflict(now);
        assert_eq!(run.step(3.0), Step::Read);
        run.read(3.0, Some(lease(ME, 0, "9")));
        run.replaces(3.0);
    }
    let now = run.at(3.0);
    run.machine.conflict(now);
    run.sleeps_until(3.0, 4.0);
}

#[test]
fn the_annotation_that_releases_the_deletion_guard_is_removed_with_a_renewal() {
    for value in ["allow", "project a", "what nobody knows"] {
        let mut run = Run::holding();
        let mut annotated = lease(ME, 0, "2");
        let annotations = [(MASS_DELETE, value), ("other", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        annotated.metadata.annotations = Some(annotations.into());
        run.read(2.0, Some(annotated.clone()));
        let Step::Replace(renewed) = run.step(2.0) else {
            panic!()
        };
        let left = renewed.metadata.annotations.clone().unwrap();
        assert!(!left.contains_key(MASS_DELETE), "{value}");
        assert_eq!(left.get("other").map(String::as_str), Some("x"));
        let sent = run.at(2.0);
        assert_eq!(run.machine.written(*renewed, sent).as_deref(), Some(value));
        let Step::Replace(next) = run.step(4.0) else { panic!() };
        let sent = run.at(4.0);
        assert_eq!(run.machine.written(*next, sent), None);
        // Who does not hold it leaves it alone.
        let mut follower = Run::new();
        annotated.spec = lease("other", 0, "2").spec;
        follower.read(0.0, Some(annotated));
        follower.sleeps_until(0.0, 1.0);
    }
}

#[test]
fn only_who_holds_it_gives_it_up() {
    let mut run = Run::holding();
    let now = run.at(3.0);
    assert!(run.machine.give_up(now));
    assert_eq!(run.machine.until(), None);
    let known = run.machine.known().unwrap();
    let spec = run.machine.released(known, wall()).unwrap().spec.unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_duration_seconds),
        (Some(""), Some(1))
    );
    assert_eq!(run.machine.released(lease("other", 0, "2"), wall()), None);
    let mut follower = Run::new();
    follower.read(0.0, Some(lease("other", 0, "1")));
    let now = follower.at(1.0);
    assert!(!follower.machine.give_up(now));
    let mut late = Run::holding();
    let now = late.at(10.0);
    assert!(!late.machine.give_up(now));
}
