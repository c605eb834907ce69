//! The queue without threads or clock: time is an argument.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use popcell_core::plan::Plane;
use tokio::time::Instant;

use super::Key;
use super::backoff::Backoff;
use super::fair_order::{FairOrder, Place};
use super::rate_limit::{ProgressTurns, RateLimit, RateLimits};
use crate::duration_histogram::DurationHistogram;

/// How many reconciles may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// In all.
    pub total: usize,
    /// For one tenant: whose server or webhook hangs must not hold every worker.
    pub share: usize,
}

/// How soon a key that an event enqueues has its reconcile. One that waits is reconciled once for all that comes in that
/// time, and at once with the first event that is urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As soon as it is its turn.
    AtOnce,
    /// Once what it is about has settled for 100 ms.
    Settled,
    /// After 1 s ([`PROGRESS`](popcell_core::deployment::PROGRESS)), or with what comes sooner.
    Gathered,
    /// As [`Urgency::Gathered`], and where many keys of a tenant come so, each in its turn: [`Queue::add_progress`].
    Progress,
}

/// What a reconcile says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Wait for events.
    OnEvent,
    /// Look again after this time, or at an event.
    After(Duration),
    /// Failed: look again after a delay that grows with each failure in a row, or at an event.
    WithBackoff(Backoff),
    /// Not begun, because of its plane (see [`crate::memory`]): look again after this time, or at an event, and keep the
    /// count of failures as it is.
    Postponed(Duration),
}

/// Where a key is. One that waits for events only is not held.
#[derive(Clone, Copy, Debug)]
enum State {
    Ready(Place),
    Waiting(Place),
    /// `again`: it was asked for during its reconcile, for this time. `retired`: its plane went away during its reconcile.
    Running {
        again: Option<Instant>,
        retired: bool,
    },
}

#[derive(Debug)]
struct Entry {
    key: Arc<Key>,
    state: State,
    failures: u32,
}

/// Values for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Reconciles that may run at once.
    pub workers: usize,
    /// Keys that are ready and not running.
    pub depth: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// Keys that wait for their time.
    pub waiting: usize,
    /// Reconciles that run.
    pub running: usize,
    /// How long the longest of them has run.
    pub longest: Duration,
    /// How long they have run together.
    pub unfinished: Duration,
    /// How often a key became ready, since the start; however often it was asked for meanwhile.
    pub adds: u64,
    /// How often a key was to come back because its reconcile failed, since the start.
    pub retries: u64,
    /// How long keys were ready before their reconciles, since the start.
    pub waited: DurationHistogram,
    /// How long reconciles ran that have ended, since the start.
    pub worked: DurationHistogram,
}

/// The queue. See the module's head for what it promises.
#[derive(Debug)]
pub struct Queue {
    workers: Workers,
    entries: HashMap<Arc<Key>, Entry>,
    turns: FairOrder,
    waiting: BTreeMap<Place, Arc<Key>>,
    places: u64,
    rate_limits: RateLimits,
    progress_turns: ProgressTurns,
    /// Those whose reconcile runs, and since when.
    running: HashMap<Arc<Key>, Instant>,
    retries: u64,
    waited: DurationHistogram,
    worked: DurationHistogram,
}

impl Queue {
    /// An empty queue; less than one worker counts as one.
    pub fn new(workers: Workers) -> Self {
        Self::rate_limited(workers, None)
    }

    /// The same, whose keys come at this pace at most.
    pub fn rate_limited(workers: Workers, rate_limit: Option<RateLimit>) -> Self {
        let total = workers.total.max(1);
        Self {
            workers: Workers {
                total,
                share: workers.share.clamp(1, total),
            },
            entries: HashMap::new(),
            turns: FairOrder::default(),
            waiting: BTreeMap::new(),
            places: 0,
            rate_limits: RateLimits::new(rate_limit),
            progress_turns: ProgressTurns::default(),
            running: HashMap::new(),
            retries: 0,
            waited: DurationHistogram::default(),
            worked: DurationHistogram::default(),
        }
    }

    /// Something happened to the key: a reconcile as soon as it is its turn, also where it waits after failures.
    pub fn add(&mut self, key: Key, now: Instant) {
        self.add_at(key, now, now);
    }

    /// A reconcile for what only tells of progress: after 1 s, and where many keys of a tenant tell of it, one after the other
    /// ([`ProgressTurns`]).
    pub fn add_progress(&mut self, key: Key, now: Instant) {
        let tenant = key.tenant();
        let at = self.progress_turns.next(&tenant, now);
        if !self.is_due_by(&key, at) {
            self.progress_turns.take(tenant, at, now);
        }
        self.add_at(key, at, now);
    }

    /// Whether a key has its turn by then in any case.
    fn is_due_by(&self, key: &Key, at: Instant) -> bool {
        match self.entries.get(key).map(|entry| entry.state) {
            Some(State::Ready(_)) => true,
            Some(State::Waiting((due, _))) => due <= at,
            Some(State::Running { again, .. }) => again.is_some_and(|again| again <= at),
            None => false,
        }
    }

    /// A reconcile at this time at the latest.
    pub fn add_at(&mut self, key: Key, at: Instant, now: Instant) {
        let (key, failures) = match self.entries.get_mut(&key) {
            Some(entry) => match &mut entry.state {
                State::Running { again, .. } => {
                    *again = Some(again.map_or(at, |earlier| earlier.min(at)));
                    return;
                }
                State::Ready(_) => return,
                State::Waiting((due, _)) if *due <= at => return,
                State::Waiting(place) => {
                    self.waiting.remove(place);
                    (Arc::clone(&entry.key), entry.failures)
                }
            },
            None => (Arc::new(key), 0),
        };
        self.place(key, failures, at, now);
    }

    /// Ready or waiting, by the time.
    fn place(&mut self, key: Arc<Key>, failures: u32, at: Instant, now: Instant) {
        let at = at.max(self.rate_limits.earliest(&key, now));
        let state = if at <= now {
            State::Ready(self.turns.push(Arc::clone(&key), now))
        } else {
            self.places += 1;
            let place = (at, self.places);
            self.waiting.insert(place, Arc::clone(&key));
            State::Waiting(place)
        };
        let entry = Entry {
            key: Arc::clone(&key),
            state,
            failures,
        };
        self.entries.insert(key, entry);
    }

    /// The key of the next reconcile, which then runs until [`Queue::done`]; `None` where all workers are busy, nothing is
    /// ready, or what is ready belongs to tenants that use their whole share.
    pub fn pop(&mut self, now: Instant) -> Option<Arc<Key>> {
        self.enqueue(now);
        if self.running.len() >= self.workers.total {
            return None;
        }
        let key = self.turns.pop(self.workers.share)?;
        self.running.insert(Arc::clone(&key), now);
        self.rate_limits.charge(&key, now);
        if let Some(entry) = self.entries.get_mut(&key) {
            if let State::Ready((since, _)) = entry.state {
                self.waited.observe(now.saturating_duration_since(since));
            }
            entry.state = State::Running {
                again: None,
                retired: false,
            };
        }
        Some(key)
    }

    /// Makes those ready whose time has come.
    fn enqueue(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            let place = self.turns.push(Arc::clone(&key), now);
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.state = State::Ready(place);
            }
        }
    }

    /// The reconcile of this key has ended. Ignored for a key that does not run.
    pub fn done(&mut self, key: &Key, requeue: Requeue, now: Instant) {
        let Some(entry) = self.entries.get(key) else { return };
        let State::Running { again, retired } = entry.state else {
            return;
        };
        let failures = match requeue {
            _ if retired => 0,
            Requeue::WithBackoff(_) => entry.failures.saturating_add(1),
            Requeue::Postponed(_) => entry.failures,
            Requeue::OnEvent | Requeue::After(_) => 0,
        };
        let key = Arc::clone(&entry.key);
        if let Some(since) = self.running.remove(&key) {
            self.worked.observe(now.saturating_duration_since(since));
        }
        if failures > entry.failures {
            self.retries += 1;
        }
        self.turns.ended(&key.tenant());
        let wanted = if retired {
            None
        } else {
            wanted(requeue, failures, &key, now)
        };
        // What was asked for during a reconcile that failed comes a moment later: a reconcile that fails after a write of
        // its own would otherwise enqueue itself forever without a rest.
        let again = again.map(|at| match requeue {
            Requeue::WithBackoff(backoff) => at.max(now + backoff.first),
            Requeue::OnEvent | Requeue::After(_) | Requeue::Postponed(_) => at,
        });
        match [wanted, again].into_iter().flatten().min() {
            Some(at) => self.place(key, failures, at, now),
            None => {
                self.entries.remove(&key);
            }
        }
    }

    /// Forgets all keys of a plane. A reconcile of one that runs ends as it would; what it says is not followed.
    pub fn retire(&mut self, gone: &Plane) {
        let (turns, waiting) = (&mut self.turns, &mut self.waiting);
        self.entries.retain(|key, entry| {
            if key.plane != *gone {
                return true;
            }
            match &mut entry.state {
                State::Ready(place) => {
                    turns.remove(*place);
                    false
                }
                State::Waiting(place) => {
                    waiting.remove(place);
                    false
                }
                State::Running { again, retired } => {
                    (*again, *retired) = (None, true);
                    true
                }
            }
        });
    }

    /// When a waiting key becomes ready next.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Values for metrics.
    pub fn stats(&self, now: Instant) -> Stats {
        let ages = || {
            let since = self.running.values();
            since.map(|since| now.saturating_duration_since(*since))
        };
        Stats {
            workers: self.workers.total,
            depth: self.turns.len(),
            oldest: self.turns.oldest(now),
            waiting: self.waiting.len(),
            running: self.running.len(),
            longest: ages().max().unwrap_or_default(),
            unfinished: ages().sum(),
            adds: self.turns.pushed(),
            retries: self.retries,
            waited: self.waited.clone(),
            worked: self.worked.clone(),
        }
    }
}

/// When the verdict wants another reconcile.
fn wanted(requeue: Requeue, failures: u32, key: &Key, now: Instant) -> Option<Instant> {
    match requeue {
        Requeue::OnEvent => None,
        Requeue::After(delay) | Requeue::Postponed(delay) => Some(now + delay),
        Requeue::WithBackoff(backoff) => Some(now + backoff.spread_delay(failures, key)),
    }
}
