//! Writes that are not retried yet: one circuit breaker for each namespace, kind and verb, and the rest that a single
//! object was told to take.
//!
//! A namespace may accept no objects of a kind: it is terminating, a right is missing, a webhook of it fails or is slow, its
//! quota is used up. Each object backs off by itself ([`crate::queue::Backoff`]), but hundreds of them ask often all the
//! same.
//!
//! Invariants: what is wrong with some objects holds up no other: [`REFUSED`] different ones are refused and none is
//! accepted between; one that is open costs one write in [`AGAIN`]; a plane is never held up by it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use popcell_core::plan::{Plane, Target};
use tokio::time::Instant;

use super::error::{ApplyError, Failed, Refusal};

/// So many different objects of one kind, with none that is accepted between, open the breaker of their namespace.
pub(super) const REFUSED: usize = 20;
/// How often it is tried whether the namespace accepts one again. Users wait for that: it is soon.
pub(super) const AGAIN: Duration = Duration::from_secs(8);
/// `Retry-After` of a single object is honoured up to this.
const LONGEST_REST: Duration = Duration::from_mins(15);

/// How an object is written. Webhooks and rights tell them apart, so one that fails says nothing of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Write {
    Create,
    Patch,
    Status,
    Delete,
}

impl Write {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Patch | Self::Status => "patch",
            Self::Delete => "delete",
        }
    }
}

/// Objects of one kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    plane: Plane,
    kind: &'static str,
    namespace: Option<String>,
    write: Write,
}

impl Place {
    pub(super) fn of(target: &Target, write: Write) -> Self {
        Self {
            plane: target.plane.clone(),
            kind: target.kind.kind,
            namespace: target.namespace.clone(),
            write,
        }
    }
}

#[derive(Debug)]
struct Door {
    refused: BTreeSet<String>,
    /// One that stands for all.
    told: Failed,
    /// When the next probe may start, once it is open.
    probe: Option<Instant>,
}

/// Breakers at which something was refused, and objects that rest. Places that accept what comes are not held.
#[derive(Debug, Default)]
pub(super) struct Doors {
    places: BTreeMap<Place, Door>,
    /// By place and name.
    resting: BTreeMap<(Place, String), (Failed, Instant)>,
}

impl Doors {
    /// Asks before a write: what was refused, and how long to wait, where it is not to be sent yet.
    pub(super) fn ask(&mut self, place: &Place, name: &str, now: Instant) -> Option<(Failed, Duration)> {
        let waits = self.wait(place, name, now);
        if waits.is_none()
            && let Some(probe) = self.places.get_mut(place).and_then(|door| door.probe.as_mut())
        {
            *probe = now + AGAIN;
        }
        waits
    }

    /// The same without beginning a probe.
    pub(super) fn wait(&self, place: &Place, name: &str, now: Instant) -> Option<(Failed, Duration)> {
        let door = self.places.get(place);
        let shut = door.and_then(|door| Some((&door.told, door.probe?)));
        let rests = self.resting.get(&(place.clone(), name.to_owned()));
        let rests = rests.map(|(failed, until)| (failed, *until));
        let (told, until) = [shut, rests].into_iter().flatten().max_by_key(|(_, until)| *until)?;
        (until > now).then(|| (told.clone(), until.saturating_duration_since(now)))
    }

    /// What became of a write. What says nothing of others of its kind makes the next one the probe.
    pub(super) fn answered<T>(&mut self, place: &Place, answer: &Result<T, ApplyError>, now: Instant) {
        let failed = match answer {
            Ok(_) => {
                self.places.remove(place);
                return;
            }
            Err(ApplyError::Failed(failed)) => failed,
            Err(_) => return,
        };
        self.rest(place, failed, now);
        if !is_of_the_place(&failed.refusal, place.write) {
            let door = self.places.get_mut(place);
            if let Some(Door {
                told,
                probe: Some(probe),
                ..
            }) = door
            {
                *probe = now;
                // What was refused before is not what stands in the way now.
                if matches!(failed.refusal, Refusal::Busy { .. }) {
                    *told = Failed::clone(failed);
                }
            }
            return;
        }
        let door = self.places.entry(place.clone()).or_insert_with(|| Door {
            refused: BTreeSet::new(),
            told: Failed::clone(failed),
            probe: None,
        });
        // Hundreds tell it: what differs by name only would be written on each of them at every probe.
        if door.told.refusal.code() != failed.refusal.code() {
            door.told = Failed::clone(failed);
        }
        if door.refused.len() < REFUSED {
            door.refused.insert(failed.target.name.clone());
        }
        if door.refused.len() >= REFUSED {
            door.probe = Some(now + AGAIN);
        }
    }

    /// Whatever a plane refused, it may accept it now.
    pub(super) fn open(&mut self, plane: &Plane) {
        self.places.retain(|place, _| place.plane != *plane);
    }

    /// Forgets a plane that is disengaged.
    pub(super) fn retire(&mut self, plane: &Plane) {
        self.open(plane);
        self.resting.retain(|(place, _), _| place.plane != *plane);
    }

    /// A `Retry-After` that is about one object is for that object. What the server wants for itself is the breaker's
    /// ([`Refusal::server_rest`]).
    fn rest(&mut self, place: &Place, failed: &Failed, now: Instant) {
        if failed.refusal.server_rest().is_some() {
            return;
        }
        if let Some(rest) = failed.refusal.retry_after() {
            self.resting.retain(|_, (_, until)| *until > now);
            let until = now + rest.min(LONGEST_REST);
            let name = failed.target.name.clone();
            self.resting.insert((place.clone(), name), (failed.clone(), until));
        }
    }
}

/// Whether a refusal may be about every object there. One that is invalid or too large says nothing of the next; a server
/// in trouble is the breaker's ([`crate::breaker`]), which has probed it where these are timeouts.
fn is_of_the_place(refusal: &Refusal, write: Write) -> bool {
    match refusal {
        Refusal::Refused { code, .. } => matches!(code, 401 | 403),
        Refusal::Admission { .. } | Refusal::TimedOut(_) => true,
        Refusal::Busy { code, .. } => !matches!(code, 429 | 503),
        // A patch that finds nothing is about an object that is gone.
        Refusal::NotFound { .. } => write == Write::Create,
        Refusal::Changed(_) | Refusal::Silent(_) | Refusal::Unsendable(_) | Refusal::Unreadable(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::{INSTANCE, RESOURCE_CLAIM};
    use serde_json::json;

    use super::*;
    use crate::apply::Words;

    fn target(namespace: &str, name: &str) -> Target {
        Target::namespaced(&Plane::Project("p".to_owned()), RESOURCE_CLAIM, namespace, name)
    }

    fn refused(target: &Target, refusal: Refusal) -> Result<(), ApplyError> {
        Err(ApplyError::of(target, "create", refusal))
    }

    fn forbidden(target: &Target) -> Result<(), ApplyError> {
        let message = Words::from("being terminated".to_owned());
        refused(target, Refusal::Refused { code: 403, message })
    }

    fn place_of(target: &Target) -> Place {
        Place::of(target, Write::Create)
    }

    /// Tries so many claims of namespace `n`, which are all answered by `answer`.
    fn tried(doors: &mut Doors, count: usize, now: Instant, answer: impl Fn(&Target) -> Result<(), ApplyError>) {
        for number in 0..count {
            let target = target("n", &format!("c-{number}"));
            if doors.ask(&place_of(&target), &target.name, now).is_none() {
                doors.answered(&place_of(&target), &answer(&target), now);
            }
        }
    }

    #[test]
    fn c27_many_that_are_refused_shut_the_door_of_their_kind_and_namespace_only() {
        let now = Instant::now();
        let mut doors = Doors::default();
        tried(&mut doors, 300, now, forbidden);
        let place = place_of(&target("n", "another"));
        let (told, delay) = doors.wait(&place, "new", now).unwrap();
        assert_eq!((told.target.name.as_str(), delay), ("c-0", AGAIN));
        assert!(told.refusal.to_string().contains("being terminated"));
        let instance = Target::namespaced(&Plane::Project("p".to_owned()), INSTANCE, "n", "i");
        for open in [place_of(&target("m", "c")), place_of(&instance)] {
            assert_eq!(doors.ask(&open, "new", now), None);
        }
    }

    #[test]
    fn c27_one_probe_goes_through_in_its_time_and_what_is_taken_opens_it() {
        let now = Instant::now();
        let mut doors = Doors::default();
        tried(&mut doors, 300, now, forbidden);
        let place = place_of(&target("n", "c-7"));
        let later = now + AGAIN;
        assert_eq!(doors.ask(&place, "new", later), None);
        assert!(doors.ask(&place, "new", later).is_some(), "a second probe");
        doors.answered(&place, &forbidden(&target("n", "c-7")), later);
        let (told, _) = doors.ask(&place, "new", later).unwrap();
        assert_eq!(told.target.name, "c-0", "others are told something new at every probe");
        let later = later + AGAIN;
        assert_eq!(doors.ask(&place, "new", later), None);
        let busy = Refusal::Busy {
            code: 429,
            message: Words::default(),
            retry_after: None,
        };
        doors.answered(&place, &refused(&target("n", "c-7"), busy), later);
        assert_eq!(
            doors.ask(&place, "new", later),
            None,
            "what a server in trouble answers is no answer"
        );
        let (told, _) = doors.wait(&place, "other", later).unwrap();
        assert_eq!(told.refusal.code(), 429, "the others wait for the server now");
        doors.answered(&place, &Ok(json!({})), later);
        assert_eq!(doors.ask(&place, "new", later), None);
        assert!(doors.places.is_empty());
    }

    #[test]
    fn c27_a_few_objects_that_are_refused_again_and_again_hold_up_no_other() {
        let now = Instant::now();
        let mut doors = Doors::default();
        for _ in 0..10 {
            tried(&mut doors, REFUSED - 1, now, forbidden);
        }
        assert_eq!(doors.wait(&place_of(&target("n", "good")), "good", now), None);
    }

    #[test]
    fn c27_only_refusals_shut_a_door() {
        let now = Instant::now();
        let place = place_of(&target("n", "c"));
        let busy = |code| Refusal::Busy {
            code,
            message: Words::default(),
            retry_after: None,
        };
        let refused_with = |code| Refusal::Refused {
            code,
            message: Words::default(),
        };
        for neutral in [
            busy(429),
            busy(503),
            refused_with(422),
            refused_with(413),
            refused_with(500),
            Refusal::Changed(Words::default()),
            Refusal::Silent(String::new()),
        ] {
            let mut doors = Doors::default();
            tried(&mut doors, 300, now, |target| refused(target, neutral.clone()));
            assert_eq!(doors.wait(&place, "new", now), None, "{neutral}");
        }
        let mut doors = Doors::default();
        let missing = || Refusal::NotFound {
            message: Words::default(),
            what: None,
        };
        tried(&mut doors, 300, now, |target| refused(target, missing()));
        assert!(doors.wait(&place, "new", now).is_some());
        doors.open(&Plane::Hub);
        assert!(doors.wait(&place, "new", now).is_some());
        doors.open(&Plane::Project("p".to_owned()));
        assert_eq!(doors.wait(&place, "new", now), None);
    }

    #[test]
    fn a_namespace_whose_webhook_fails_or_is_slow_is_tried_once_in_a_while() {
        let now = Instant::now();
        let (place, message) = (place_of(&target("n", "c")), String::new);
        for refusal in [
            Refusal::Admission {
                code: 500,
                message: Words::default(),
                retry_after: None,
            },
            Refusal::Busy {
                code: 504,
                message: Words::default(),
                retry_after: None,
            },
            Refusal::TimedOut(message()),
        ] {
            let mut doors = Doors::default();
            tried(&mut doors, 300, now, |target| refused(target, refusal.clone()));
            let (_, delay) = doors.wait(&place, "new", now).unwrap();
            assert_eq!(delay, AGAIN, "{refusal}");
            let other = place_of(&target("m", "c"));
            assert_eq!(doors.wait(&other, "c", now), None, "{refusal}");
            // What is there already may be changed all the same.
            for write in [Write::Patch, Write::Status] {
                assert_eq!(doors.wait(&Place::of(&target("n", "c"), write), "c", now), None);
            }
        }
    }

    #[test]
    fn what_is_patched_and_gone_says_nothing_of_others() {
        let now = Instant::now();
        let mut doors = Doors::default();
        for number in 0..300 {
            let target = target("n", &format!("c-{number}"));
            let gone = Refusal::NotFound {
                message: Words::default(),
                what: None,
            };
            let place = Place::of(&target, Write::Patch);
            assert_eq!(doors.ask(&place, &target.name, now), None);
            doors.answered(&place, &refused(&target, gone), now);
        }
    }

    #[test]
    fn an_object_rests_as_long_as_it_was_told_and_alone() {
        let now = Instant::now();
        let (mut doors, seconds) = (Doors::default(), Duration::from_secs);
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
        doors.answered(&place, &denied(&one, seconds(30)), now);
        let (told, delay) = doors.ask(&place, "one", now).unwrap();
        assert_eq!((told.refusal.code(), delay), (429, seconds(30)));
        assert_eq!(doors.ask(&place, "two", now), None);
        assert_eq!(doors.ask(&place, "one", now + seconds(30)), None);
        // Nobody is held for a day, and who has rested is forgotten.
        doors.answered(&place, &denied(&two, seconds(86_400)), now + seconds(31));
        assert_eq!(doors.resting.len(), 1);
        let (_, delay) = doors.ask(&place, "two", now + seconds(31)).unwrap();
        assert_eq!(delay, LONGEST_REST);
        // What the server wants for itself is no rest of this object.
        let busy = Refusal::Busy {
            code: 429,
            message: Words::default(),
            retry_after: Some(seconds(30)),
        };
        doors.answered(&place, &refused(&one, busy), now + seconds(31));
        assert_eq!(doors.ask(&place, "one", now + seconds(31)), None);
        // A list that is read anew changes nothing about it.
        let project = Plane::Project("p".to_owned());
        doors.open(&project);
        assert!(doors.ask(&place, "two", now + seconds(31)).is_some());
        doors.retire(&project);
        assert_eq!(doors.ask(&place, "two", now + seconds(31)), None);
    }
}
