//! Requests that are not retried yet: one circuit breaker for each namespace, kind and verb, and the rest that a single
//! object has to take.
//!
//! A namespace may accept no objects of a kind: it is terminating, a right is missing, a webhook of it fails or is slow, its
//! quota is used up. Each object backs off by itself ([`crate::queue::Backoff`]), but hundreds of them ask often all the
//! same. Where the objects may be at fault themselves, as by a schema, those that were refused alike wait together, and
//! others do not.
//!
//! Reads meet only a right that is missing, which is no object's fault, and their objects do not change by what is sent: those
//! that were refused alike share one attempt from the first one on. A name that was not refused is read all the same, since
//! a right may be for single names, until as many were refused as close a place.
//!
//! Invariants: what is wrong with some objects holds up no other: [`REFUSED`] different ones are refused and none is
//! accepted between; one that is open costs one write in [`AGAIN`], and so do all that were refused alike; an object that
//! has changed since it was refused is tried at once, which costs one write for each change of it, and
//! says nothing of the others when it is accepted; a plane is never held up by it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use popcell_core::plan::Target;
use tokio::time::Instant;

use crate::refusal::{ApplyError, Failed, Refusal};

/// So many different objects of one kind, with none that is accepted between, open the breaker of their namespace.
pub(crate) const REFUSED: usize = 20;
/// How often it is tried whether the namespace accepts one again. Users wait for that: it is soon.
pub(crate) const AGAIN: Duration = Duration::from_secs(8);
/// So many different refusals in one place are distinguished; the rest wait together.
const CAUSES: usize = 8;
/// So many that were refused alike are remembered; the rest back off by themselves.
const ALIKE: usize = 50_000;
/// `Retry-After` of a single object is honoured up to this.
const LONGEST_REST: Duration = Duration::from_mins(15);

/// What is done with an object. Webhooks and rights tell them apart, so one that fails says nothing of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Get,
    List,
    Discover,
    Create,
    Patch,
    Status,
    Delete,
}

impl Access {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Discover => "discover",
            Self::Create => "create",
            Self::Patch | Self::Status => "patch",
            Self::Delete => "delete",
        }
    }

    /// Whether nothing is to be changed.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Discover)
    }
}

/// Objects of one kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BreakerKey {
    kind: &'static str,
    namespace: Option<String>,
    access: Access,
}

impl BreakerKey {
    pub(crate) fn of(target: &Target, access: Access) -> Self {
        Self {
            kind: target.kind.kind,
            // Among objects of the cluster each may be another tenant's: its namespace, or its Project.
            namespace: target
                .namespace
                .clone()
                .or_else(|| (access == Access::Get).then(|| target.name.clone())),
            access,
        }
    }
}

#[derive(Debug)]
struct NamespaceBreaker {
    refused: BTreeSet<String>,
    /// What was not tried since then, by name, with what would have been sent.
    untried: HashMap<String, u64>,
    /// One that stands for all.
    reported: Failed,
    /// When the next probe may start, once it is open.
    probe: Option<Instant>,
}

/// Objects of one place that were refused alike.
#[derive(Debug)]
struct Alike {
    /// By name, with what was sent ([`Attempt::sent`]).
    held: HashMap<String, u64>,
    reported: Failed,
    probe: Instant,
}

impl Alike {
    fn are_many(&self) -> bool {
        self.held.len() >= REFUSED
    }
}

/// One request that is to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) place: &'a BreakerKey,
    pub(crate) name: &'a str,
    /// Tells contents apart; `None` where it is not known yet.
    pub(crate) sent: Option<u64>,
}

/// Breakers at which something was refused, and objects that rest. Places that accept what comes are not held.
#[derive(Debug, Default)]
pub(crate) struct NamespaceBreakers {
    places: BTreeMap<BreakerKey, NamespaceBreaker>,
    /// What was refused, by what was said ([`Failed::cause`]).
    alike: BTreeMap<BreakerKey, BTreeMap<u64, Alike>>,
    /// By place and name.
    resting: BTreeMap<(BreakerKey, String), (Failed, Instant)>,
}

impl NamespaceBreakers {
    /// Asks before a request: what was refused, and how long to wait, where it is not to be sent yet.
    pub(crate) fn ask(&mut self, attempt: Attempt<'_>, now: Instant) -> Option<(Failed, Duration)> {
        let waits = self.wait(attempt, now);
        if waits.is_some() {
            self.turn_away(attempt);
        } else if !self.has_changed(attempt) {
            let alike = self.alike_mut(attempt).map(|alike| alike.probe = now + AGAIN);
            if alike.is_none() || attempt.place.access.reads() {
                let door = self.places.get_mut(attempt.place);
                if let Some(probe) = door.and_then(|door| door.probe.as_mut()) {
                    *probe = now + AGAIN;
                }
            }
        }
        waits
    }

    /// The same without beginning a probe.
    pub(crate) fn wait(&self, attempt: Attempt<'_>, now: Instant) -> Option<(Failed, Duration)> {
        let Attempt { place, name, .. } = attempt;
        let door = self
            .places
            .get(place)
            .and_then(|door| Some((&door.reported, door.probe?)));
        let door = door.filter(|(reported, _)| !(judges_objects(reported) && self.has_changed(attempt)));
        let alike = self
            .alike(attempt)
            .filter(|alike| door.is_some() || place.access.reads() || alike.are_many());
        // Those that were refused alike have a probe of their own: another one's would say nothing of them.
        let alike = alike.map(|alike| (&alike.reported, alike.probe));
        let shut = if place.access.reads() {
            // A right that is missing is one: whoever asks for it says it of all.
            alike.into_iter().chain(door).max_by_key(|(_, probe)| *probe)
        } else {
            alike.or(door)
        };
        let rests = self.resting.get(&(place.clone(), name.to_owned()));
        let rests = rests.map(|(failed, until)| (failed, *until));
        let (reported, until) = [shut, rests].into_iter().flatten().max_by_key(|(_, until)| *until)?;
        (until > now).then(|| (reported.clone(), until.saturating_duration_since(now)))
    }

    /// Those that were refused as this one was, if it is the same still.
    fn alike(&self, attempt: Attempt<'_>) -> Option<&Alike> {
        let causes = self.alike.get(attempt.place)?;
        causes.values().find(|alike| attempt.is_in(alike))
    }

    fn alike_mut(&mut self, attempt: Attempt<'_>) -> Option<&mut Alike> {
        let causes = self.alike.get_mut(attempt.place)?;
        causes.values_mut().find(|alike| attempt.is_in(alike))
    }

    /// What was not tried is known by its content, too: it may change.
    fn turn_away(&mut self, attempt: Attempt<'_>) {
        let door = self.places.get_mut(attempt.place);
        if let Some(door) = door.filter(|door| door.probe.is_some() && door.untried.len() < ALIKE)
            && let Some(sent) = attempt.sent
        {
            door.untried.entry(attempt.name.to_owned()).or_insert(sent);
        }
    }

    /// Whether it was refused or turned away, and would be sent otherwise now.
    fn has_changed(&self, attempt: Attempt<'_>) -> bool {
        let causes = self.alike.get(attempt.place).into_iter().flat_map(BTreeMap::values);
        let untried = self.places.get(attempt.place).map(|door| &door.untried);
        let mut known = causes.map(|alike| &alike.held).chain(untried);
        let before = known.find_map(|known| known.get(attempt.name));
        before.is_some_and(|before| attempt.sent.is_some_and(|sent| sent != *before))
    }

    /// What became of a request, and whether it lets others in that were held. What says nothing of others of its kind makes
    /// the next one the probe.
    pub(crate) fn answered<T>(&mut self, attempt: Attempt<'_>, answer: &Result<T, ApplyError>, now: Instant) -> bool {
        let place = attempt.place;
        let failed = match answer {
            Ok(_) if self.has_changed(attempt) => {
                self.release(attempt);
                return false;
            }
            Ok(_) => {
                let was_shut = self.places.remove(place).is_some_and(|door| door.probe.is_some());
                return self.accepted(attempt) || was_shut;
            }
            Err(ApplyError::Failed(failed)) => failed,
            Err(_) => return false,
        };
        self.rest(place, failed, now);
        self.hold(attempt, failed, now);
        if !is_of_the_place(&failed.refusal, place.access) {
            let door = self.places.get_mut(place);
            if let Some(NamespaceBreaker {
                reported,
                probe: Some(probe),
                ..
            }) = door
            {
                *probe = now;
                // What was refused before is not what stands in the way now.
                if matches!(failed.refusal, Refusal::Busy { .. }) {
                    *reported = Failed::clone(failed);
                }
            }
            return false;
        }
        let door = self.places.entry(place.clone()).or_insert_with(|| NamespaceBreaker {
            refused: BTreeSet::new(),
            untried: HashMap::new(),
            reported: Failed::clone(failed),
            probe: None,
        });
        // Hundreds tell it: what differs by name only would be written on each of them at every probe.
        if door.reported.refusal.code() != failed.refusal.code() {
            door.reported = Failed::clone(failed);
        }
        if door.refused.len() < REFUSED {
            door.refused.insert(failed.target.name.clone());
        }
        if door.refused.len() >= REFUSED {
            door.probe = Some(now + AGAIN);
        }
        false
    }

    /// One was accepted, and so may be those that were refused like it: whether there are any.
    fn accepted(&mut self, attempt: Attempt<'_>) -> bool {
        let Some(causes) = self.alike.get_mut(attempt.place) else {
            return false;
        };
        let before = causes.len();
        causes.retain(|_, alike| !alike.held.contains_key(attempt.name));
        let is_any = causes.len() < before;
        if causes.is_empty() {
            self.alike.remove(attempt.place);
        }
        is_any
    }

    /// It was accepted since it had changed.
    fn release(&mut self, attempt: Attempt<'_>) {
        self.remove(attempt, |_| false);
        // Those that are refused from now on are not refused one after the other.
        if self.places.get(attempt.place).is_some_and(|door| door.probe.is_none()) {
            self.places.remove(attempt.place);
        }
    }

    /// It waits with those that were refused alike; a refusal that ends without a change lets them try.
    fn hold(&mut self, attempt: Attempt<'_>, failed: &Failed, now: Instant) {
        let Attempt { place, name, sent } = attempt;
        if !failed.waits_with_others() {
            self.remove(attempt, |_| true);
            if let Some(alike) = self.alike_mut(attempt) {
                alike.probe = now;
            }
            return;
        }
        let cause = failed.cause();
        let is_counted = |causes: &BTreeMap<u64, Alike>| causes.contains_key(&cause) || causes.len() < CAUSES;
        let cause = if self.alike.get(place).is_none_or(is_counted) {
            cause
        } else {
            0
        };
        self.remove(attempt, |other| other == cause);
        let causes = self.alike.entry(place.clone()).or_default();
        let alike = causes.entry(cause).or_insert_with(|| Alike {
            held: HashMap::new(),
            reported: failed.clone(),
            probe: now + AGAIN,
        });
        if alike.held.len() < ALIKE {
            alike.held.insert(name.to_owned(), sent.unwrap_or_default());
        }
    }

    /// Takes a name out of those that were not tried, and of those that were refused, but for the causes that are `kept`.
    fn remove(&mut self, attempt: Attempt<'_>, kept: impl Fn(u64) -> bool) {
        if let Some(door) = self.places.get_mut(attempt.place) {
            door.untried.remove(attempt.name);
        }
        let Some(causes) = self.alike.get_mut(attempt.place) else {
            return;
        };
        causes.retain(|cause, alike| {
            if !kept(*cause) {
                alike.held.remove(attempt.name);
            }
            kept(*cause) || !alike.held.is_empty()
        });
        if causes.is_empty() {
            self.alike.remove(attempt.place);
        }
    }

    /// Whatever was refused, it may be accepted now.
    pub(crate) fn open(&mut self) {
        self.places.clear();
        self.alike.clear();
    }

    /// A `Retry-After` that is about one object is for that object. What the server wants for itself is the breaker's
    /// ([`Refusal::server_rest`]).
    fn rest(&mut self, place: &BreakerKey, failed: &Failed, now: Instant) {
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

impl Attempt<'_> {
    fn is_in(self, alike: &Alike) -> bool {
        let held = alike.held.get(self.name);
        held.is_some_and(|before| self.sent.is_none_or(|sent| sent == *before))
    }
}

/// Whether another content may be accepted where this one was refused. A webhook that fails or is slow is so for all.
fn judges_objects(reported: &Failed) -> bool {
    reported.waits_with_others() && reported.refusal.code() < 500
}

/// Whether a refusal may be about every object there. One that is invalid or too large says nothing of the next; a server
/// in trouble is the breaker's ([`super::circuit`]), which has probed it where these are timeouts.
fn is_of_the_place(refusal: &Refusal, access: Access) -> bool {
    match refusal {
        _ if access.reads() => matches!(refusal, Refusal::Refused { code: 401 | 403, .. }),
        Refusal::Refused { code, .. } => matches!(code, 401 | 403),
        Refusal::Admission { .. } | Refusal::TimedOut(_) => true,
        Refusal::Busy { code, .. } => !matches!(code, 429 | 503),
        // A patch that finds nothing is about an object that is gone.
        Refusal::NotFound { .. } => access == Access::Create,
        Refusal::Changed(_) | Refusal::Silent(_) | Refusal::Unsendable(_) | Refusal::Unreadable(_) => false,
    }
}

#[cfg(test)]
mod tests;
