//! The Lease without requests or clock: time is an argument.
//!
//! [`Machine::step`] says what to do; what came of it is passed to [`Machine::read`], [`Machine::written`],
//! [`Machine::conflict`] or [`Machine::failed`].

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use popcell_api::annotations::MASS_DELETE;

use super::clock::Time;
use super::{DURATION, Loss, POLL, RENEW, REQUEST, TERM, unchanged_since};

/// A Lease that is absent shows no change. It counts as unchanged only while it is looked at so often that a holder who
/// made it again would be seen.
const GAP: Duration = POLL.saturating_add(REQUEST);
/// So many conflicts in a row are answered at once.
const CONFLICTS: u32 = 3;
/// As client-go writes it into a Lease that it releases.
const RELEASED_SECONDS: i32 = 1;

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing before this time.
    Sleep(Time),
    /// Read the Lease.
    Read,
    /// Create it.
    Create(Box<Lease>),
    /// Replace it, by its resourceVersion.
    Replace(Box<Lease>),
    /// It is lost: end the process.
    Lost(Loss),
}

/// What the server has.
#[derive(Clone, Debug)]
enum Known {
    /// Unknown.
    Nothing,
    /// There is no Lease.
    Absent,
    Lease(Box<Lease>),
}

/// The record of others, and since when it is as it is.
#[derive(Clone, Debug)]
struct Seen {
    /// `None`: there was no Lease.
    record: Option<LeaseSpec>,
    since: Time,
    /// When it was looked at last.
    looked: Time,
    /// Whether a replica may still have permission by it.
    live: bool,
}

impl Seen {
    /// Whether a change until now would have been observed.
    fn is_current(&self, now: Time) -> bool {
        self.record.is_some() || now.since(self.looked) <= GAP
    }
}

/// One replica.
#[derive(Debug)]
pub(super) struct Machine {
    identity: String,
    namespace: String,
    name: String,
    known: Known,
    /// End of the permission, while this replica holds the Lease.
    until: Option<Time>,
    seen: Option<Seen>,
    lost: Option<Loss>,
    /// Nothing is done before.
    due: Time,
    conflicts: u32,
}

impl Machine {
    pub(super) fn new(identity: String, namespace: &str, name: &str, now: Time) -> Self {
        Self {
            identity,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            known: Known::Nothing,
            until: None,
            seen: None,
            lost: None,
            due: now,
            conflicts: 0,
        }
    }

    /// End of the permission to write; `None` while another replica may write, or none.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    /// What to do. `wall` is the time that people read.
    pub(super) fn step(&mut self, now: Time, wall: Timestamp) -> Step {
        if self.until.is_some_and(|until| until <= now) {
            self.lose(Loss::Expired);
        }
        if let Some(loss) = &self.lost {
            return Step::Lost(loss.clone());
        }
        if now < self.due {
            return Step::Sleep(self.due);
        }
        let free = self.until.is_some() || self.is_free(now);
        match &self.known {
            Known::Absent if free => Step::Create(Box::new(self.record(None, wall))),
            Known::Lease(lease) if free => Step::Replace(Box::new(self.record(Some(lease.as_ref()), wall))),
            Known::Nothing | Known::Absent | Known::Lease(_) => Step::Read,
        }
    }

    /// The server showed what it has.
    pub(super) fn read(&mut self, lease: Option<Lease>, now: Time) {
        self.due = now;
        let holder = lease.as_ref().and_then(holder).map(str::to_owned);
        let other = holder.filter(|holder| *holder != self.identity);
        if self.until.is_some() {
            if let Some(other) = other {
                self.lose(Loss::Taken(other));
            }
        } else {
            self.see(lease.as_ref(), other.is_some(), now);
            if !self.is_free(now) {
                self.conflicts = 0;
                let expiry = self.seen.as_ref().map_or(now, |seen| seen.since + DURATION);
                self.due = expiry.min(now + POLL);
            }
        }
        self.known = lease.map_or(Known::Absent, |lease| Known::Lease(Box::new(lease)));
    }

    /// The server took what [`Step::Create`] or [`Step::Replace`] said, sent at this time. Gives the value of the annotation
    /// which releases the deletion guard, where that took it away.
    pub(super) fn written(&mut self, lease: Lease, sent: Time) -> Option<String> {
        let released = match &self.known {
            Known::Lease(before) => release(before).map(str::to_owned),
            Known::Nothing | Known::Absent => None,
        };
        self.until = Some(sent + TERM);
        self.due = sent + RENEW;
        self.conflicts = 0;
        self.seen = None;
        self.known = Known::Lease(Box::new(lease));
        released
    }

    /// The server has something else than was thought.
    pub(super) fn conflict(&mut self, now: Time) {
        self.known = Known::Nothing;
        self.conflicts = self.conflicts.saturating_add(1);
        self.due = if self.conflicts > CONFLICTS { now + POLL } else { now };
    }

    /// No answer to what was sent at this time, or none that says anything. It may have been done: then the next write
    /// conflicts.
    pub(super) fn failed(&mut self, sent: Time, now: Time) {
        self.due = now.max(sent + POLL);
    }

    /// Gives the permission up, and says whether there was one: then others need not wait, see [`Self::released`].
    pub(super) fn give_up(&mut self, now: Time) -> bool {
        self.until.take().is_some_and(|until| now < until)
    }

    /// The Lease as it was known last.
    pub(super) fn known(&self) -> Option<Lease> {
        match &self.known {
            Known::Lease(lease) => Some(lease.as_ref().clone()),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// This Lease without holder, where it is this replica's.
    pub(super) fn released(&self, mut lease: Lease, wall: Timestamp) -> Option<Lease> {
        if holder(&lease) != Some(&self.identity) {
            return None;
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(RELEASED_SECONDS);
        spec.renew_time = Some(later(spec.renew_time.as_ref(), wall));
        Some(lease)
    }

    fn lose(&mut self, loss: Loss) {
        self.until = None;
        self.lost = Some(loss);
    }

    fn see(&mut self, lease: Option<&Lease>, others: bool, now: Time) {
        let record = lease.map(|lease| lease.spec.clone().unwrap_or_default());
        // A Lease that is absent may have been deleted, which takes no permission away from who held it; this replica need
        // not have seen that.
        let live = record.is_none() || others;
        let before = self.seen.as_ref().filter(|seen| seen.is_current(now));
        let since = unchanged_since(before.map(|seen| (&seen.record, seen.since)), &record, now);
        self.seen = Some(Seen {
            record,
            since,
            looked: now,
            live,
        });
    }

    /// Whether no other replica can have permission.
    fn is_free(&self, now: Time) -> bool {
        self.seen
            .as_ref()
            .is_some_and(|seen| !seen.live || seen.since + DURATION <= now && seen.is_current(now))
    }

    /// The Lease with this replica as holder.
    fn record(&self, before: Option<&Lease>, wall: Timestamp) -> Lease {
        let mut lease = before.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        // Also one that names nothing that is held: it must not release what comes to be held later.
        if let Some(annotations) = &mut lease.metadata.annotations {
            annotations.remove(MASS_DELETE);
        }
        let spec = lease.spec.get_or_insert_default();
        let renewed = later(spec.renew_time.as_ref(), wall);
        if spec.holder_identity.as_deref() != Some(&self.identity) {
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(renewed.clone());
            let transitions = spec.lease_transitions.map_or(0, |number| number.saturating_add(1));
            spec.lease_transitions = Some(transitions);
        }
        spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
        spec.renew_time = Some(renewed);
        lease
    }
}

/// Who the record says holds it; none where it was released.
fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// What is to be released.
fn release(lease: &Lease) -> Option<&str> {
    let annotations = lease.metadata.annotations.as_ref()?;
    annotations.get(MASS_DELETE).map(String::as_str)
}

/// The time, but later than `before` in any case: others tell by the change that the holder lives, and a server that is
/// sent what it has changes nothing.
fn later(before: Option<&MicroTime>, wall: Timestamp) -> MicroTime {
    let least = before.and_then(|before| before.0.checked_add(SignedDuration::from_micros(1)).ok());
    MicroTime(least.map_or(wall, |least| least.max(wall)))
}

#[cfg(test)]
mod tests;
