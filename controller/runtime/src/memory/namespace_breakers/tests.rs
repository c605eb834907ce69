use popcell_api::kind::{INSTANCE, RESOURCE_CLAIM};
use popcell_core::plan::Plane;
use serde_json::json;

use super::*;
use crate::refusal::ServerMessage;

fn target(namespace: &str, name: &str) -> Target {
    Target::namespaced(&Plane::Project("p".to_owned()), RESOURCE_CLAIM, namespace, name)
}

fn refused(target: &Target, refusal: Refusal) -> Result<(), ApplyError> {
    Err(ApplyError::of(target, "create", refusal))
}

fn forbidden(target: &Target) -> Result<(), ApplyError> {
    let message = ServerMessage::from("being terminated".to_owned());
    refused(target, Refusal::Refused { code: 403, message })
}

fn place_of(target: &Target) -> BreakerKey {
    BreakerKey::of(target, Access::Create)
}

fn at<'a>(place: &'a BreakerKey, name: &'a str) -> Attempt<'a> {
    Attempt {
        place,
        name,
        sent: Some(1),
    }
}

/// Tries so many claims of namespace `n`, which are all answered by `answer`.
fn tried(
    namespace_breakers: &mut NamespaceBreakers,
    count: usize,
    now: Instant,
    answer: impl Fn(&Target) -> Result<(), ApplyError>,
) {
    for number in 0..count {
        let target = target("n", &format!("c-{number}"));
        if namespace_breakers
            .ask(at(&place_of(&target), &target.name), now)
            .is_none()
        {
            namespace_breakers.answered(at(&place_of(&target), &target.name), &answer(&target), now);
        }
    }
}

#[test]
fn many_refusals_open_the_circuit_breaker_of_their_kind_and_namespace_only() {
    let now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    tried(&mut namespace_breakers, 300, now, forbidden);
    let place = place_of(&target("n", "another"));
    let (reported, delay) = namespace_breakers.wait(at(&place, "new"), now).unwrap();
    assert_eq!((reported.target.name.as_str(), delay), ("c-0", AGAIN));
    assert!(reported.refusal.to_string().contains("being terminated"));
    let instance = Target::namespaced(&Plane::Project("p".to_owned()), INSTANCE, "n", "i");
    for open in [place_of(&target("m", "c")), place_of(&instance)] {
        assert_eq!(namespace_breakers.ask(at(&open, "new"), now), None);
    }
}

#[test]
fn one_probe_passes_at_its_time_and_an_accepted_write_closes_the_circuit_breaker() {
    let now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    tried(&mut namespace_breakers, 300, now, forbidden);
    let place = place_of(&target("n", "c-7"));
    let later = now + AGAIN;
    assert_eq!(namespace_breakers.ask(at(&place, "new"), later), None);
    assert!(
        namespace_breakers.ask(at(&place, "new"), later).is_some(),
        "a second probe"
    );
    namespace_breakers.answered(at(&place, "c-7"), &forbidden(&target("n", "c-7")), later);
    let (reported, _) = namespace_breakers.ask(at(&place, "new"), later).unwrap();
    assert_eq!(
        reported.target.name, "c-0",
        "others are told something new at every probe"
    );
    let later = later + AGAIN;
    assert_eq!(namespace_breakers.ask(at(&place, "new"), later), None);
    let busy = Refusal::Busy {
        code: 429,
        message: ServerMessage::default(),
        retry_after: None,
    };
    namespace_breakers.answered(at(&place, "c-7"), &refused(&target("n", "c-7"), busy), later);
    assert_eq!(
        namespace_breakers.ask(at(&place, "new"), later),
        None,
        "what a server in trouble answers is no answer"
    );
    let (reported, _) = namespace_breakers.wait(at(&place, "other"), later).unwrap();
    assert_eq!(reported.refusal.code(), 429, "the others wait for the server now");
    namespace_breakers.answered(at(&place, "c-7"), &Ok(json!({})), later);
    assert_eq!(namespace_breakers.ask(at(&place, "new"), later), None);
    assert!(namespace_breakers.places.is_empty());
}

#[test]
fn a_few_objects_that_are_refused_repeatedly_hold_up_no_other() {
    let now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    for _ in 0..10 {
        tried(&mut namespace_breakers, REFUSED - 1, now, forbidden);
    }
    assert_eq!(
        namespace_breakers.wait(at(&place_of(&target("n", "good")), "good"), now),
        None
    );
}

#[test]
fn only_refusals_open_a_circuit_breaker() {
    let now = Instant::now();
    let place = place_of(&target("n", "c"));
    let busy = |code| Refusal::Busy {
        code,
        message: ServerMessage::default(),
        retry_after: None,
    };
    let refused_with = |code| Refusal::Refused {
        code,
        message: ServerMessage::default(),
    };
    for neutral in [
        busy(429),
        busy(503),
        refused_with(422),
        refused_with(413),
        refused_with(500),
        Refusal::Changed(ServerMessage::default()),
        Refusal::Silent(String::new()),
    ] {
        let mut namespace_breakers = NamespaceBreakers::default();
        tried(&mut namespace_breakers, 300, now, |target| {
            refused(target, neutral.clone())
        });
        assert_eq!(namespace_breakers.wait(at(&place, "new"), now), None, "{neutral}");
    }
    let mut namespace_breakers = NamespaceBreakers::default();
    let missing = || Refusal::NotFound {
        message: ServerMessage::default(),
        what: None,
    };
    tried(&mut namespace_breakers, 300, now, |target| refused(target, missing()));
    assert!(namespace_breakers.wait(at(&place, "new"), now).is_some());
    namespace_breakers.open();
    assert_eq!(namespace_breakers.wait(at(&place, "new"), now), None);
}

#[test]
fn a_namespace_whose_webhook_fails_or_is_slow_is_tried_once_in_a_while() {
    let now = Instant::now();
    let (place, message) = (place_of(&target("n", "c")), String::new);
    for refusal in [
        Refusal::Admission {
            code: 500,
            message: ServerMessage::default(),
            retry_after: None,
        },
        Refusal::Busy {
            code: 504,
            message: ServerMessage::default(),
            retry_after: None,
        },
        Refusal::TimedOut(message()),
    ] {
        let mut namespace_breakers = NamespaceBreakers::default();
        tried(&mut namespace_breakers, 300, now, |target| {
            refused(target, refusal.clone())
        });
        let (_, delay) = namespace_breakers.wait(at(&place, "new"), now).unwrap();
        assert_eq!(delay, AGAIN, "{refusal}");
        let other = place_of(&target("m", "c"));
        assert_eq!(namespace_breakers.wait(at(&other, "c"), now), None, "{refusal}");
        // What is there already may be changed all the same.
        for write in [Access::Patch, Access::Status] {
            assert_eq!(
                namespace_breakers.wait(at(&BreakerKey::of(&target("n", "c"), write), "c"), now),
                None
            );
        }
    }
}

#[test]
fn what_is_patched_and_gone_says_nothing_of_others() {
    let now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    for number in 0..300 {
        let target = target("n", &format!("c-{number}"));
        let gone = Refusal::NotFound {
            message: ServerMessage::default(),
            what: None,
        };
        let place = BreakerKey::of(&target, Access::Patch);
        assert_eq!(namespace_breakers.ask(at(&place, &target.name), now), None);
        namespace_breakers.answered(at(&place, &target.name), &refused(&target, gone), now);
    }
}

#[test]
fn an_object_rests_as_long_as_it_was_reported_and_alone() {
    let now = Instant::now();
    let (mut namespace_breakers, seconds) = (NamespaceBreakers::default(), Duration::from_secs);
    let (one, two) = (target("n", "one"), target("n", "two"));
    let place = place_of(&one);
    let denied = |target: &Target, rest| {
        let refusal = Refusal::Admission {
            code: 429,
            message: "not so fast".to_owned().into(),
            retry_after: Some(rest),
        };
        refused(target, refusal)
    };
    namespace_breakers.answered(at(&place, "one"), &denied(&one, seconds(30)), now);
    let (reported, delay) = namespace_breakers.ask(at(&place, "one"), now).unwrap();
    assert_eq!((reported.refusal.code(), delay), (429, seconds(30)));
    assert_eq!(namespace_breakers.ask(at(&place, "two"), now), None);
    assert_eq!(namespace_breakers.ask(at(&place, "one"), now + seconds(30)), None);
    // Nobody is held for a day, and who has rested is forgotten.
    namespace_breakers.answered(at(&place, "two"), &denied(&two, seconds(86_400)), now + seconds(31));
    assert_eq!(namespace_breakers.resting.len(), 1);
    let (_, delay) = namespace_breakers.ask(at(&place, "two"), now + seconds(31)).unwrap();
    assert_eq!(delay, LONGEST_REST);
    // What the server wants for itself is no rest of this object.
    let busy = Refusal::Busy {
        code: 429,
        message: ServerMessage::default(),
        retry_after: Some(seconds(30)),
    };
    namespace_breakers.answered(at(&place, "one"), &refused(&one, busy), now + seconds(31));
    assert_eq!(namespace_breakers.ask(at(&place, "one"), now + seconds(31)), None);
    // A list that is read again changes nothing about it.
    namespace_breakers.open();
    assert!(namespace_breakers.ask(at(&place, "two"), now + seconds(31)).is_some());
}

#[test]
fn reads_that_are_forbidden_share_one_attempt_from_the_first_on_and_other_names_are_read() {
    let start = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    let place = BreakerKey::of(&target("n", ""), Access::Get);
    let forbidden = |name: &str| {
        let message = ServerMessage::from(format!(
            "claims \"{name}\" is forbidden: User \"u\" cannot get resource"
        ));
        let refusal = Refusal::Refused { code: 403, message };
        Err::<(), _>(ApplyError::of(&target("n", name), "get", refusal))
    };
    let mut asked = 0;
    for second in 0..80 {
        let now = start + Duration::from_secs(second);
        for number in 0..10 {
            let name = format!("c-{number}");
            if namespace_breakers.ask(at(&place, &name), now).is_none() {
                asked += 1;
                assert!(!namespace_breakers.answered(at(&place, &name), &forbidden(&name), now));
            }
        }
        let other = at(&place, "allowed");
        assert_eq!(
            namespace_breakers.ask(other, now),
            None,
            "a right may be for single names"
        );
        assert!(!namespace_breakers.answered(other, &Ok(()), now));
    }
    assert_eq!(asked, 10 + 9, "once each, then one in 8 s");
    let later = start + Duration::from_secs(88);
    assert_eq!(namespace_breakers.ask(at(&place, "c-3"), later), None);
    assert!(
        namespace_breakers.answered(at(&place, "c-3"), &Ok(()), later),
        "others may go on"
    );
    assert_eq!(namespace_breakers.ask(at(&place, "c-5"), later), None);
    // Where none is allowed, new names wait too.
    for number in 0..REFUSED {
        let name = format!("d-{number}");
        namespace_breakers.answered(at(&place, &name), &forbidden(&name), later);
    }
    assert!(namespace_breakers.ask(at(&place, "new"), later).is_some());
    // What says nothing of rights holds up nobody.
    let mut namespace_breakers = NamespaceBreakers::default();
    for number in 0..100 {
        let (name, late) = (format!("c-{number}"), Refusal::TimedOut(String::new()));
        assert_eq!(namespace_breakers.ask(at(&place, &name), start), None);
        let late = Err::<(), _>(ApplyError::of(&target("n", &name), "get", late));
        namespace_breakers.answered(at(&place, &name), &late, start);
    }
}

/// As a schema refuses: each object is told of its own name.
fn invalid(target: &Target, field: &str) -> Result<(), ApplyError> {
    let message = ServerMessage::from(format!(
        "ResourceClaim \"{}\" is invalid: {field}: Required value",
        target.name
    ));
    refused(target, Refusal::Refused { code: 422, message })
}

#[test]
fn those_that_are_refused_alike_share_one_attempt_and_hold_up_no_other() {
    let mut now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    tried(&mut namespace_breakers, 1000, now, |target| invalid(target, "spec.a"));
    let place = place_of(&target("n", "c-0"));
    let may = |namespace_breakers: &mut NamespaceBreakers, name: &str, now| {
        namespace_breakers.ask(at(&place, name), now).is_none()
    };
    assert!(may(&mut namespace_breakers, "new", now) && !may(&mut namespace_breakers, "c-5", now));
    let changed = Attempt {
        sent: Some(2),
        ..at(&place, "c-5")
    };
    assert_eq!(
        namespace_breakers.ask(changed, now),
        None,
        "what has changed is tried at once"
    );
    for _ in 0..10 {
        now += AGAIN;
        let attempts = (0..1000).filter(|number| {
            let target = target("n", &format!("c-{number}"));
            let may = may(&mut namespace_breakers, &target.name, now);
            if may {
                namespace_breakers.answered(at(&place, &target.name), &invalid(&target, "spec.a"), now);
            }
            may
        });
        assert_eq!(attempts.count(), 1);
    }
    // Another one that is accepted says nothing of them, and one of them says it of all.
    namespace_breakers.answered(at(&place, "new"), &Ok(json!({})), now);
    assert!(!may(&mut namespace_breakers, "c-5", now));
    namespace_breakers.answered(at(&place, "c-4"), &Ok(json!({})), now);
    assert!(may(&mut namespace_breakers, "c-5", now) && namespace_breakers.alike.is_empty());
}

#[test]
fn refusals_of_two_reasons_end_each_for_itself() {
    let now = Instant::now();
    let mut namespace_breakers = NamespaceBreakers::default();
    let reason = |target: &Target| {
        let even = target.name.ends_with(['0', '2', '4', '6', '8']);
        invalid(target, if even { "spec.a" } else { "spec.b" })
    };
    tried(&mut namespace_breakers, 100, now, reason);
    let place = place_of(&target("n", "c-0"));
    let later = now + AGAIN;
    for name in ["c-10", "c-11"] {
        assert_eq!(namespace_breakers.ask(at(&place, name), later), None, "{name}");
    }
    namespace_breakers.answered(at(&place, "c-10"), &invalid(&target("n", "c-10"), "spec.a"), later);
    namespace_breakers.answered(at(&place, "c-11"), &Ok(json!({})), later);
    assert_eq!(namespace_breakers.ask(at(&place, "c-13"), later), None);
    assert!(namespace_breakers.ask(at(&place, "c-12"), later).is_some());
    // Words without end are not distinguished without end.
    for number in 0..1000_u32 {
        let target = target("n", &format!("d-{number}"));
        let word: String = number.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
        namespace_breakers.answered(at(&place, &target.name), &invalid(&target, &word), later);
    }
    assert!(namespace_breakers.alike[&place].len() <= CAUSES + 1);
    assert!(namespace_breakers.ask(at(&place, "d-999"), later).is_some());
}
