//! One pass: observe, decide, carry out, report. The same for all reconcilers of both sides
//! (docs/decisions/21-reconcile-and-writes.md).
//!
//! What a server rejects is shown where it was asked for: the pass is decided again with the rejection in view, and of that
//! plan only the status is written, since a status that is decided before says nothing of it.
//!
//! Invariants: deciding reads no server and no clock but through its arguments; what was decided on and has changed is
//! read live and decided again at once, [`IMMEDIATE_RETRIES`] times; a pass that met an unknown plane of its own waits for
//! that plane's list.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{Kind, RESOURCE_CLAIM, WORKLOAD_DEPLOYMENT};
use popcell_core::brake;
use popcell_core::object::Fields;
use popcell_core::plan::{Action, Note, Plan, Plane};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span, warn};

use crate::apply::{ApplyError, Difference, Done, Heard, Spot};
use crate::planes::Change;
use crate::queue::{Key, Pace, Verdict};
use crate::world::World;
pub use crate::world::{Live, Outcome, Reporter, Sight, refs};

/// How often a conflict is followed by another look at once.
pub const IMMEDIATE_RETRIES: usize = 3;
/// When a plan whose deletes are held is decided again, for the case that the world recovers without an event.
const HELD_AGAIN: Duration = Duration::from_mins(1);

/// What a reconciler is to the pass and to the queue.
pub trait Reconciler: Send + Sync + 'static {
    /// Its name in metrics and logs.
    fn name(&self) -> &'static str;

    /// How often a key may come; `None` = as often as it is asked for.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Reads live what no store has, into `live`. Most need nothing. What the pass can do without is missed
    /// ([`Live::miss`]); an error ends it.
    fn prepare<'a>(
        &'a self,
        _world: &'a World,
        _live: &'a mut Live,
        _key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Decides; `None` where the own plane is unknown, or nothing is there to decide about.
    fn decide(&self, sight: &Sight<'_>, key: &Key, now: Timestamp) -> Option<Plan>;

    /// A plan was carried out; where the deletion guard holds, without deletes.
    fn carried_out(&self, _world: &World, _key: &Key, _plan: &Plan, _done: Done) {}

    /// A plan was not carried out to its end.
    fn failed(&self, _world: &World, _key: &Key, _error: &ApplyError) {}

    /// Keys of other reconcilers that show what is rejected of a key of this one, beside itself.
    fn shown_by(&self, _world: &World, _key: &Key) -> Vec<(&'static str, Key)> {
        Vec::new()
    }

    /// Takes in an event: on every replica, also on those that do not lead, and before it wakes anybody.
    fn note(&self, _plane: &Plane, _kind: Kind, _change: &Change) {}

    /// Keys that an event wakes. Asked only while the process leads.
    fn wake(&self, world: &World, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key>;

    /// How long a key that an event wakes waits for more of them: what makes no haste is looked at once for all that comes in
    /// that time, and at once with what does.
    fn debounce(&self, _world: &World, _plane: &Plane, _kind: Kind, _change: &Change, _key: &Key) -> Duration {
        Duration::ZERO
    }

    /// Keys that a disengaged plane wakes; on every replica.
    fn left(&self, _world: &World, _plane: &Plane) -> Vec<Key> {
        Vec::new()
    }

    /// All keys whose plans may delete on a plane what the deletion guard counts.
    fn keys(&self, world: &World, plane: &Plane) -> Vec<Key>;

    /// How many objects of ours there are on a plane, and how many deletes the deletion guard counts, where that is not said
    /// by the plans of all keys: they rest on what is read live.
    fn count(&self, _sight: &Sight<'_>, _plane: &Plane, _kind: Kind) -> Option<Difference> {
        None
    }

    /// All keys that there is anything to decide about, as far as stores are listed: what the events of a first list would
    /// have woken. A key may be there more than once.
    fn all(&self, world: &World) -> Vec<Key> {
        let planes = world.planes.planes().into_iter();
        planes.flat_map(|plane| self.keys(world, &plane)).collect()
    }
}

/// Runs passes of one reconciler.
pub struct Runner {
    reconciler: Arc<dyn Reconciler>,
    world: Arc<World>,
    /// How many passes have written.
    writes: AtomicU64,
}

impl Runner {
    /// Passes in a world.
    pub fn new(reconciler: Arc<dyn Reconciler>, world: Arc<World>) -> Self {
        Self {
            reconciler,
            world,
            writes: AtomicU64::default(),
        }
    }

    /// The name of the reconciler.
    pub fn name(&self) -> &'static str {
        self.reconciler.name()
    }

    /// One pass of a key.
    pub async fn pass(&self, key: &Key) -> Verdict {
        let (name, world) = (self.name(), &self.world);
        let (start, memory) = (Instant::now(), world.memory(&key.plane));
        let since = memory.as_ref().and_then(|memory| memory.begin(name, key));
        let span = info_span!("pass", reconciler = name, %key);
        let (outcome, verdict) = self.reconcile(key).instrument(span).await;
        world.waiting.opened(&world.applier.opened());
        world.reporter.passed(name, outcome, start.elapsed());
        if let (Some(memory), Some(since)) = (memory, since) {
            match verdict {
                Verdict::Failed(_) | Verdict::Postponed(_) => memory.begin_again(name, key, since),
                _ if outcome == Outcome::Written => world.reporter.answered(name, since.elapsed()),
                _ => {}
            }
        }
        verdict
    }

    /// Observes, decides, carries out and reports; what was decided on and has changed meanwhile is read and decided again.
    async fn reconcile(&self, key: &Key) -> (Outcome, Verdict) {
        let (mut live, mut retries) = (Live::default(), 0..IMMEDIATE_RETRIES);
        loop {
            let (last, mut heard) = (retries.next().is_none(), Heard::default());
            let error = match self.attempt(key, &mut live, last, &mut heard).await {
                Ok(ended) => return self.went(key, ended),
                Err(error) => error,
            };
            self.show(key, &live, heard, &error).await;
            let Some(target) = error.stale().filter(|_| !last) else {
                return self.failed(key, &error);
            };
            debug!(%error, "deciding again");
            match self.world.applier.read(target).await {
                Ok(found) => live.put(target, found),
                Err(error) => return self.failed(key, &error),
            }
        }
    }

    /// Observes, decides and carries out, once.
    async fn attempt(
        &self,
        key: &Key,
        live: &mut Live,
        last: bool,
        heard: &mut Heard,
    ) -> Result<(Outcome, Verdict), ApplyError> {
        let observed = self.reconciler.prepare(&self.world, live, key).await;
        let ended = match observed.map(|()| self.decide(key, live)) {
            Ok(Some(plan)) => self.carry_out(key, &plan, last, heard).await,
            Ok(None) => Ok((Outcome::Dropped, Verdict::Done)),
            Err(error) => Err(error),
        };
        match (ended, live.take_missed()) {
            (ended, None) => ended,
            (Ok(_), Some(missed)) => Err(missed),
            (Err(error), Some(missed)) => Err(error.or_worse(missed).0),
        }
    }

    /// The plan for a key as it was observed, whose notes are kept; `None` where there is nothing to decide about.
    fn decide(&self, key: &Key, live: &Live) -> Option<Plan> {
        let sight = Sight::new(&self.world, live);
        let plan = self.reconciler.decide(&sight, key, Timestamp::now());
        if let Some(memory) = self.world.memory(&key.plane) {
            memory.tally.put(self.name(), key, plan.as_ref());
        }
        plan
    }

    async fn carry_out(
        &self,
        key: &Key,
        plan: &Plan,
        last: bool,
        heard: &mut Heard,
    ) -> Result<(Outcome, Verdict), ApplyError> {
        for action in plan.writes() {
            debug!(%action, "planned");
        }
        if let Some(action) = &plan.status {
            debug!(%action, "planned");
        }
        let differ = |plane: &_, kind| self.difference(plane, kind);
        let done = self.world.applier.carry_out(plan, &differ, last, heard).await?;
        self.reconciler.carried_out(&self.world, key, plan, done);
        if done == Done::Written {
            self.writes.fetch_add(1, Ordering::Relaxed);
            plan.notes.iter().for_each(|note| self.world.reporter.noted(note));
        }
        Ok(ended(plan, done))
    }

    /// Shows what was rejected in the status of the object that asked for it.
    async fn show(&self, key: &Key, live: &Live, mut heard: Heard, error: &ApplyError) {
        let Some(memory) = self.world.memory(&key.plane) else {
            return;
        };
        let (name, rejections) = (self.name(), &memory.rejections);
        if heard.rejections.is_empty() && rejections.of(name, key).is_empty() {
            // It was not even decided, because of what another one heard.
            heard.note_error(error);
        }
        if heard.rejections.is_empty() {
            return;
        }
        let is_new = rejections.put(name, key, &heard.rejections);
        if is_new {
            self.tell_others(key);
        }
        if !is_new && (heard.shown || rejections.is_unshown(name, key)) {
            return;
        }
        let sight = Sight::new(&self.world, live);
        let Some(plan) = self.reconciler.decide(&sight, key, Timestamp::now()) else {
            return;
        };
        if let Err(error) = self.world.applier.report(&plan).await {
            debug!(%error, "what was rejected is not shown yet");
            if error.rejected().is_some() {
                rejections.unshown(name, key);
            }
        }
    }

    /// A pass came to its end: what was rejected before is not, or is not asked for any more.
    fn went(&self, key: &Key, (outcome, verdict): (Outcome, Verdict)) -> (Outcome, Verdict) {
        let (name, memory) = (self.name(), self.world.memory(&key.plane));
        self.world.waiting.left(name, key);
        if memory.is_some_and(|memory| memory.rejections.clear(name, key)) {
            self.tell_others(key);
            if outcome != Outcome::Dropped {
                // What the status says of it is taken back by the next pass.
                return (outcome, Verdict::After(Duration::ZERO));
            }
        }
        (outcome, verdict)
    }

    fn failed(&self, key: &Key, error: &ApplyError) -> (Outcome, Verdict) {
        self.reconciler.failed(&self.world, key, error);
        match error {
            ApplyError::Away(..) | ApplyError::Shut(..) | ApplyError::Disengaged(_) | ApplyError::NotAllowed => {
                debug!(%error, "a pass ends");
            }
            _ => warn!(%error, "a pass failed: conditions of the object have the words of the server"),
        }
        let (name, waiting) = (self.name(), &self.world.waiting);
        let waits = match error {
            ApplyError::Shut(failed, delay) => Some(waiting.shut(name, key, &Spot::of(failed), *delay)),
            ApplyError::Failed(failed) if error.rejected().is_some() => waiting.refused(name, key, &Spot::of(failed)),
            _ => {
                waiting.left(name, key);
                None
            }
        };
        (Outcome::of(error), waits.map_or(error.verdict(), Verdict::Postponed))
    }

    /// What is rejected of a key has changed.
    fn tell_others(&self, key: &Key) {
        for (reconciler, key) in self.reconciler.shown_by(&self.world, key) {
            self.world.waiting.wake(reconciler, key);
        }
    }

    /// The whole difference of this reconciler on a plane and kind, as the deletion guard asks for it. While another
    /// reconciler's is held, it is a part only.
    fn difference(&self, plane: &Plane, kind: Kind) -> Difference {
        let (name, world) = (self.name(), &self.world);
        let Some(memory) = world.memory(plane) else {
            return self.decide_all(plane, kind);
        };
        let writes = self.writes.load(Ordering::Relaxed);
        let seen = (memory.changes(), world.changes(&Plane::Hub), writes);
        let mut difference = memory
            .held
            .difference(name, kind, seen, || self.decide_all(plane, kind));
        difference.partial |= !memory.held.knows(name, kind) && world.applier.brakes().is_held(plane, kind);
        difference
    }

    /// Looks every minute whether the planes have recovered from what the deletion guard holds, and whether what was
    /// released is done, until `stop`: where it is so, no plan deletes anything, and nobody asks.
    pub async fn review(&self, stop: &CancellationToken) {
        let (name, applier) = (self.name(), &self.world.applier);
        while stop.run_until_cancelled(sleep(HELD_AGAIN)).await.is_some() {
            for engaged in self.world.planes.engaged() {
                let (plane, held) = (engaged.plane(), &engaged.memory().held);
                for kind in held.kinds(name) {
                    let is_set = || applier.brakes().is_held(plane, kind) || applier.brakes().is_released(plane, kind);
                    if is_set() {
                        applier.judge(plane, kind, self.difference(plane, kind));
                    }
                    if !is_set() {
                        held.forget(name, kind);
                    }
                }
            }
        }
    }

    fn decide_all(&self, plane: &Plane, kind: Kind) -> Difference {
        let (live, now) = (Live::default(), Timestamp::now());
        let sight = Sight::new(&self.world, &live);
        if let Some(counted) = self.reconciler.count(&sight, plane, kind) {
            return counted;
        }
        // In a project every WorkloadDeployment is a Workload's, and of claims a cell sees its own only; elsewhere ours carry
        // the marker.
        let whole = matches!(plane, Plane::Project(_)) && [WORKLOAD_DEPLOYMENT, RESOURCE_CLAIM].contains(&kind);
        let ours = sight.all(plane, kind).known().unwrap_or_default();
        let ours = ours.iter().filter(|one| whole || one.marked()).count();
        let (mut doomed, mut partial) = (0, false);
        for key in self.reconciler.keys(&self.world, plane) {
            let Some(plan) = self.reconciler.decide(&sight, &key, now) else {
                partial = true;
                continue;
            };
            partial |= plan.notes.iter().any(|note| matches!(note, Note::Unknown(_)));
            doomed += brake::counted(&plan)
                .filter(|counted| *counted == (plane, kind.kind))
                .count();
        }
        Difference { ours, doomed, partial }
    }
}

/// What a plan that was carried out came to, and when its key is looked at again.
fn ended(plan: &Plan, done: Done) -> (Outcome, Verdict) {
    if let Some(terminal) = &plan.terminal {
        debug!(
            reason = terminal.reason,
            message = terminal.message,
            "nothing more to do until it changes"
        );
    }
    let again = match done {
        Done::Held => Some(HELD_AGAIN),
        _ => plan.requeue,
    };
    if let Some(delay) = again {
        debug!(?delay, "looks again");
    }
    let verdict = again.map_or(Verdict::Done, Verdict::After);
    let outcome = if done == Done::Held {
        Outcome::Suppressed
    } else if plan.notes.contains(&Note::Paused) {
        Outcome::Paused
    } else if plan.terminal.is_some() {
        Outcome::Terminal
    } else if done == Done::Written {
        Outcome::Written
    } else if done == Done::Planned {
        Outcome::Planned
    } else if plan.is_dropped() {
        Outcome::Dropped
    } else {
        Outcome::Quiet
    };
    (outcome, verdict)
}

/// Whether a plan creates, changes or deletes an object of a kind.
pub fn writes(plan: &Plan, kind: Kind) -> bool {
    plan.writes().map(Action::target).any(|target| target.kind == kind)
}

#[cfg(test)]
mod tests;
