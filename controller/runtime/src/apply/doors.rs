//! Namespaces that take no objects of a kind: one that is terminating, a right that is missing, a project that is gone
//! (cases.md C27). Each object rests by itself ([`crate::queue::Backoff::REFUSED`]), but hundreds that rest ask often all
//! the same.
//!
//! Invariants: what is wrong with some objects shuts no door: [`REFUSED`] different ones are refused and none is taken
//! between; one that is shut costs one creation in [`PROBE`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use popcell_core::plan::{Plane, Target};
use serde_json::Value;
use tokio::time::Instant;

use super::error::{ApplyError, Failed, Refusal};
use crate::breaker::PROBE;

/// So many different objects of one kind, with none that is taken between, shut the door of their namespace.
pub(super) const REFUSED: usize = 20;

/// Objects of one kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    plane: Plane,
    kind: &'static str,
    namespace: Option<String>,
}

impl Place {
    pub(super) fn of(target: &Target) -> Self {
        Self {
            plane: target.plane.clone(),
            kind: target.kind.kind,
            namespace: target.namespace.clone(),
        }
    }
}

#[derive(Debug)]
struct Door {
    refused: BTreeSet<String>,
    /// One that stands for all.
    told: Failed,
    /// When the next probe may start, once it is shut.
    probe: Option<Instant>,
}

/// Doors at which something was refused. Those that take what comes are not held.
#[derive(Debug, Default)]
pub(super) struct Doors(BTreeMap<Place, Door>);

impl Doors {
    /// Asks before a creation: one that was refused, and how long to wait, where it is shut and no probe is due.
    pub(super) fn ask(&mut self, place: &Place, now: Instant) -> Option<(Failed, Duration)> {
        let waits = self.wait(place, now);
        if waits.is_none()
            && let Some(probe) = self.0.get_mut(place).and_then(|door| door.probe.as_mut())
        {
            *probe = now + PROBE;
        }
        waits
    }

    /// The same without beginning a probe.
    pub(super) fn wait(&self, place: &Place, now: Instant) -> Option<(Failed, Duration)> {
        let door = self.0.get(place)?;
        let probe = door.probe.filter(|at| *at > now)?;
        Some((door.told.clone(), probe.saturating_duration_since(now)))
    }

    /// What became of a creation. A server in trouble, or an object that is there, says nothing about others: the next one
    /// is the probe.
    pub(super) fn answered(&mut self, place: &Place, answer: &Result<Value, ApplyError>, now: Instant) {
        let failed = match answer {
            Ok(_) => {
                self.0.remove(place);
                return;
            }
            Err(ApplyError::Failed(failed)) => failed,
            Err(_) => return,
        };
        if !is_of_the_place(&failed.refusal) {
            if let Some(probe) = self.0.get_mut(place).and_then(|door| door.probe.as_mut()) {
                *probe = now;
            }
            return;
        }
        let door = self.0.entry(place.clone()).or_insert_with(|| Door {
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
            door.probe = Some(now + PROBE);
        }
    }

    /// Whatever a plane refused, it may take it now.
    pub(super) fn open(&mut self, plane: &Plane) {
        self.0.retain(|place, _| place.plane != *plane);
    }
}

/// Whether a refusal may be about every object there. One that is invalid says nothing of the next.
fn is_of_the_place(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Refused { code, .. } => matches!(code, 401 | 403),
        Refusal::NotFound { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::{INSTANCE, RESOURCE_CLAIM};
    use serde_json::json;

    use super::*;

    fn target(namespace: &str, name: &str) -> Target {
        Target::namespaced(&Plane::Project("p".to_owned()), RESOURCE_CLAIM, namespace, name)
    }

    fn refused(target: &Target, refusal: Refusal) -> Result<Value, ApplyError> {
        Err(ApplyError::of(target, "create", refusal))
    }

    fn forbidden(target: &Target) -> Result<Value, ApplyError> {
        let message = "being terminated".to_owned();
        refused(target, Refusal::Refused { code: 403, message })
    }

    /// Tries so many claims of namespace `n`, which are all answered by `answer`.
    fn tried(doors: &mut Doors, count: usize, now: Instant, answer: impl Fn(&Target) -> Result<Value, ApplyError>) {
        for number in 0..count {
            let target = target("n", &format!("c-{number}"));
            if doors.ask(&Place::of(&target), now).is_none() {
                doors.answered(&Place::of(&target), &answer(&target), now);
            }
        }
    }

    #[test]
    fn c27_many_that_are_refused_shut_the_door_of_their_kind_and_namespace_only() {
        let now = Instant::now();
        let mut doors = Doors::default();
        tried(&mut doors, 300, now, forbidden);
        let place = Place::of(&target("n", "another"));
        let (told, delay) = doors.wait(&place, now).unwrap();
        assert_eq!((told.target.name.as_str(), delay), ("c-0", PROBE));
        assert!(told.refusal.to_string().contains("being terminated"));
        let instance = Target::namespaced(&Plane::Project("p".to_owned()), INSTANCE, "n", "i");
        for open in [Place::of(&target("m", "c")), Place::of(&instance)] {
            assert_eq!(doors.ask(&open, now), None);
        }
    }

    #[test]
    fn c27_one_probe_goes_through_in_its_time_and_what_is_taken_opens_it() {
        let now = Instant::now();
        let mut doors = Doors::default();
        tried(&mut doors, 300, now, forbidden);
        let place = Place::of(&target("n", "c-7"));
        let later = now + PROBE;
        assert_eq!(doors.ask(&place, later), None);
        assert!(doors.ask(&place, later).is_some(), "a second probe");
        doors.answered(&place, &forbidden(&target("n", "c-7")), later);
        let (told, _) = doors.ask(&place, later).unwrap();
        assert_eq!(told.target.name, "c-0", "others are told something new at every probe");
        let later = later + PROBE;
        assert_eq!(doors.ask(&place, later), None);
        let busy = Refusal::Busy {
            code: 429,
            message: String::new(),
        };
        doors.answered(&place, &refused(&target("n", "c-7"), busy), later);
        assert_eq!(
            doors.ask(&place, later),
            None,
            "what a server in trouble answers is no answer"
        );
        doors.answered(&place, &Ok(json!({})), later);
        assert_eq!(doors.ask(&place, later), None);
        assert!(doors.0.is_empty());
    }

    #[test]
    fn c27_a_few_objects_that_are_refused_again_and_again_hold_up_no_other() {
        let now = Instant::now();
        let mut doors = Doors::default();
        for _ in 0..10 {
            tried(&mut doors, REFUSED - 1, now, forbidden);
        }
        assert_eq!(doors.wait(&Place::of(&target("n", "good")), now), None);
    }

    #[test]
    fn c27_only_refusals_shut_a_door() {
        let now = Instant::now();
        let place = Place::of(&target("n", "c"));
        let busy = || Refusal::Busy {
            code: 429,
            message: String::new(),
        };
        let invalid = Refusal::Refused {
            code: 422,
            message: String::new(),
        };
        for neutral in [
            busy(),
            invalid,
            Refusal::Changed(String::new()),
            Refusal::Silent(String::new()),
        ] {
            let mut doors = Doors::default();
            tried(&mut doors, 300, now, |target| refused(target, neutral.clone()));
            assert_eq!(doors.wait(&place, now), None, "{neutral}");
        }
        let mut doors = Doors::default();
        let missing = || Refusal::NotFound {
            message: String::new(),
            what: None,
        };
        tried(&mut doors, 300, now, |target| refused(target, missing()));
        assert!(doors.wait(&place, now).is_some());
        doors.open(&Plane::Hub);
        assert!(doors.wait(&place, now).is_some());
        doors.open(&Plane::Project("p".to_owned()));
        assert_eq!(doors.wait(&place, now), None);
    }
}
