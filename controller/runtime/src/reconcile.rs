//! One reconcile: observe, decide, carry out, report. The same for all reconcilers of both sides
//! (docs/decisions/21-reconcile-and-writes.md).
//!
//! What a server rejects is shown where it was asked for: the reconcile is decided again with the rejection in view, and
//! of that plan only the status is written, since a status that is decided before says nothing of it.
//!
//! Invariants: deciding reads no server and no clock but through its arguments; what was decided on and has changed is
//! read live and decided again at once, [`IMMEDIATE_RETRIES`] times; a reconcile that met an unknown plane of its own
//! waits for that plane's list.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{Kind, RESOURCE_CLAIM, WORKLOAD_DEPLOYMENT};
use popcell_core::object::Fields;
use popcell_core::plan::{Action, Note, Plan, Plane};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span, warn};

use crate::apply::{ApplyError, Difference, Done, WriteResponses, WriteScope};
use crate::context::Context;
pub use crate::context::{LiveReads, Outcome, Reporter, Snapshot, refs};
use crate::planes::Change;
use crate::queue::{Key, RateLimit, Requeue, Urgency, WorkQueue};

/// How often a conflict is followed by another look at once.
pub const IMMEDIATE_RETRIES: usize = 3;
/// When a plan whose deletes are held is decided again, for the case that the planes recover without an event.
const GUARD_RETRY: Duration = Duration::from_mins(1);

/// Live reads of a reconcile, before it decides.
pub type Preparing<'a> = BoxFuture<'a, Result<(), ApplyError>>;

/// What a reconciler is to the reconcile and to the queue.
pub trait Reconciler: Send + Sync + 'static {
    /// Its name in metrics and logs.
    fn name(&self) -> &'static str;

    /// How often a key may come; `None` = as often as it is asked for.
    fn rate_limit(&self) -> Option<RateLimit> {
        None
    }

    /// Reads live what no store has, into `live`. Most need nothing. What the reconcile can do without is missed
    /// ([`LiveReads::miss`]); an error ends it.
    fn prepare<'a>(&'a self, _context: &'a Context, _live: &'a mut LiveReads, _key: &'a Key) -> Preparing<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Decides; `None` where the own plane is unknown, or nothing is there to decide about.
    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan>;

    /// A plan was carried out; where the deletion guard holds, without deletes.
    fn executed(&self, _context: &Context, _key: &Key, _plan: &Plan, _done: Done) {}

    /// A plan was not carried out to its end.
    fn failed(&self, _context: &Context, _key: &Key, _error: &ApplyError) {}

    /// Keys of other reconcilers that show what is rejected of a key of this one, beside itself.
    fn shown_by(&self, _context: &Context, _key: &Key) -> Vec<(&'static str, Key)> {
        Vec::new()
    }

    /// Takes in an event: on every replica, also on those that do not lead, and before it enqueues any key.
    fn observe_event(&self, _plane: &Plane, _kind: Kind, _change: &Change) {}

    /// Keys that an event enqueues. Asked only while the process leads. A key may be there more than once.
    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key>;

    /// How soon a key that an event enqueues has its reconcile.
    fn urgency(&self, _context: &Context, _plane: &Plane, _kind: Kind, _change: &Change, _key: &Key) -> Urgency {
        Urgency::AtOnce
    }

    /// Keys that a disengaged plane enqueues; on every replica.
    fn keys_on_disengage(&self, _context: &Context, _plane: &Plane) -> Vec<Key> {
        Vec::new()
    }

    /// All keys whose plans may delete on a plane what the deletion guard counts.
    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key>;

    /// How many objects of ours there are on a plane, and how many deletes the deletion guard counts, where that is not said
    /// by the plans of all keys: they rest on what is read live.
    fn count(&self, _snapshot: &Snapshot<'_>, _plane: &Plane, _kind: Kind) -> Option<Difference> {
        None
    }

    /// All keys that there is anything to decide about, as far as stores are listed: what the events of a first list would
    /// have enqueued. A key may be there more than once.
    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        let planes = context.planes.planes().into_iter();
        planes.flat_map(|plane| self.keys(context, &plane)).collect()
    }
}

/// Runs reconciles of one reconciler.
pub struct Runner {
    reconciler: Arc<dyn Reconciler>,
    context: Arc<Context>,
    /// How many reconciles have written.
    writes: AtomicU64,
}

impl Runner {
    /// Reconciles in a context.
    pub fn new(reconciler: Arc<dyn Reconciler>, context: Arc<Context>) -> Self {
        Self {
            reconciler,
            context,
            writes: AtomicU64::default(),
        }
    }

    /// The name of the reconciler.
    pub fn name(&self) -> &'static str {
        self.reconciler.name()
    }

    /// Reconciles the keys of a queue until `stop`, then waits for those that run.
    pub async fn run(self: Arc<Self>, queue: WorkQueue, stop: CancellationToken) {
        let reconcile = move |key: Arc<Key>| {
            let runner = Arc::clone(&self);
            async move { runner.reconcile(&key).await }
        };
        queue.run(reconcile, stop).await;
    }

    /// One reconcile of a key.
    pub async fn reconcile(&self, key: &Key) -> Requeue {
        let (name, context) = (self.name(), &self.context);
        let (start, memory) = (Instant::now(), context.memory(&key.plane));
        let since = memory.as_ref().and_then(|memory| memory.begin(name, key));
        let span = info_span!("reconcile", reconciler = name, %key);
        let (outcome, requeue) = self.retried(key).instrument(span).await;
        context.wait_list.opened(&context.applier.opened());
        context.reporter.passed(name, outcome, start.elapsed());
        if let (Some(memory), Some(since)) = (memory, since) {
            match requeue {
                Requeue::WithBackoff(_) | Requeue::Postponed(_) => memory.begin_again(name, key, since),
                _ if outcome == Outcome::Written => context.reporter.answered(name, since.elapsed()),
                _ => {}
            }
        }
        requeue
    }

    /// Observes, decides, carries out and reports; what was decided on and has changed meanwhile is read and decided again.
    async fn retried(&self, key: &Key) -> (Outcome, Requeue) {
        let (mut live, mut retries) = (LiveReads::default(), 0..IMMEDIATE_RETRIES);
        loop {
            let (last, mut responses) = (retries.next().is_none(), WriteResponses::default());
            let error = match self.attempt(key, &mut live, last, &mut responses).await {
                Ok(ended) => return self.succeeded(key, ended),
                Err(error) => error,
            };
            self.show(key, &live, responses, &error).await;
            let Some(target) = error.stale().filter(|_| !last) else {
                return self.failed(key, &error);
            };
            debug!(%error, "conflict: reconciling again");
            match self.context.applier.read(target).await {
                Ok(found) => live.put(target, found),
                Err(error) => return self.failed(key, &error),
            }
        }
    }

    /// Observes, decides and carries out, once.
    async fn attempt(
        &self,
        key: &Key,
        live: &mut LiveReads,
        last: bool,
        responses: &mut WriteResponses,
    ) -> Result<(Outcome, Requeue), ApplyError> {
        let observed = self.reconciler.prepare(&self.context, live, key).await;
        let ended = match observed.map(|()| self.decide(key, live)) {
            Ok(Some(plan)) => self.execute(key, &plan, last, responses).await,
            Ok(None) => Ok((Outcome::Abandoned, Requeue::OnEvent)),
            Err(error) => Err(error),
        };
        match (ended, live.take_missed()) {
            (ended, None) => ended,
            (Ok(_), Some(missed)) => Err(missed),
            (Err(error), Some(missed)) => Err(error.or_worse(missed).0),
        }
    }

    /// The plan for a key as it was observed, whose notes are kept; `None` where there is nothing to decide about.
    fn decide(&self, key: &Key, live: &LiveReads) -> Option<Plan> {
        let snapshot = Snapshot::new(&self.context, live);
        let plan = self.reconciler.decide(&snapshot, key, Timestamp::now());
        if let Some(memory) = self.context.memory(&key.plane) {
            memory.note_gauges.put(self.name(), key, plan.as_ref());
        }
        plan
    }

    async fn execute(
        &self,
        key: &Key,
        plan: &Plan,
        last: bool,
        responses: &mut WriteResponses,
    ) -> Result<(Outcome, Requeue), ApplyError> {
        for action in plan.writes() {
            debug!(%action, "planned");
        }
        if let Some(action) = &plan.status {
            debug!(%action, "planned");
        }
        let differ = |plane: &_, kind| self.difference(plane, kind);
        let done = self.context.applier.execute(plan, &differ, last, responses).await?;
        self.reconciler.executed(&self.context, key, plan, done);
        if done == Done::Written {
            self.writes.fetch_add(1, Ordering::Relaxed);
            plan.notes.iter().for_each(|note| self.context.reporter.noted(note));
        }
        Ok(ended(plan, done))
    }

    /// Shows what was rejected in the status of the object that asked for it.
    async fn show(&self, key: &Key, live: &LiveReads, mut responses: WriteResponses, error: &ApplyError) {
        let Some(memory) = self.context.memory(&key.plane) else {
            return;
        };
        let (name, rejections) = (self.name(), &memory.rejections);
        if responses.rejections.is_empty() && rejections.of(name, key).is_empty() {
            // It was not even decided, because of what another one heard.
            responses.note_error(error);
        }
        if responses.rejections.is_empty() {
            return;
        }
        let is_new = rejections.put(name, key, &responses.rejections);
        if is_new {
            self.enqueue_shown_by(key);
        }
        if !is_new && (responses.shown || rejections.is_unshown(name, key)) {
            return;
        }
        let snapshot = Snapshot::new(&self.context, live);
        let Some(plan) = self.reconciler.decide(&snapshot, key, Timestamp::now()) else {
            return;
        };
        if let Err(error) = self.context.applier.report(&plan).await {
            debug!(%error, "a rejection is not in the status yet");
            if error.rejected().is_some() {
                rejections.unshown(name, key);
            }
        }
    }

    /// A reconcile came to its end: what was rejected before is not, or is not asked for any more.
    fn succeeded(&self, key: &Key, (outcome, requeue): (Outcome, Requeue)) -> (Outcome, Requeue) {
        let (name, memory) = (self.name(), self.context.memory(&key.plane));
        self.context.wait_list.left(name, key);
        if memory.is_some_and(|memory| memory.rejections.clear(name, key)) {
            self.enqueue_shown_by(key);
            if outcome != Outcome::Abandoned {
                // What the status says of it is taken back by the next reconcile.
                return (outcome, Requeue::After(Duration::ZERO));
            }
        }
        (outcome, requeue)
    }

    fn failed(&self, key: &Key, error: &ApplyError) -> (Outcome, Requeue) {
        self.reconciler.failed(&self.context, key, error);
        match error {
            ApplyError::Unreachable(..)
            | ApplyError::CircuitOpen(..)
            | ApplyError::Disengaged(_)
            | ApplyError::NotAllowed => {
                debug!(%error, "reconcile ended early");
            }
            // What was rejected has the server's message in conditions only: a log must not show values of the object.
            _ if error.rejected().is_some() => {
                warn!(%error, "reconcile failed: the object's conditions have the server's message");
            }
            _ => warn!(%error, "reconcile failed"),
        }
        let (name, waiting) = (self.name(), &self.context.wait_list);
        let waits = match error {
            ApplyError::CircuitOpen(failed, delay) => {
                Some(waiting.wait_behind(name, key, &WriteScope::of(failed), *delay))
            }
            ApplyError::Failed(failed) if error.rejected().is_some() => {
                waiting.refused(name, key, &WriteScope::of(failed))
            }
            _ => {
                waiting.left(name, key);
                None
            }
        };
        (Outcome::of(error), waits.map_or(error.requeue(), Requeue::Postponed))
    }

    /// What is rejected of a key has changed.
    fn enqueue_shown_by(&self, key: &Key) {
        for (reconciler, key) in self.reconciler.shown_by(&self.context, key) {
            self.context.wait_list.enqueue(reconciler, key);
        }
    }

    /// The whole difference of this reconciler on a plane and kind, as the deletion guard asks for it. While another
    /// reconciler's is held, it is a part only.
    fn difference(&self, plane: &Plane, kind: Kind) -> Difference {
        let (name, context) = (self.name(), &self.context);
        let Some(memory) = context.memory(plane) else {
            return self.decide_all(plane, kind);
        };
        let writes = self.writes.load(Ordering::Relaxed);
        let seen = (memory.changes(), context.changes(&Plane::Hub), writes);
        let mut difference = memory
            .held
            .difference(name, kind, seen, || self.decide_all(plane, kind));
        difference.partial |= !memory.held.knows(name, kind) && context.applier.deletion_guards().is_held(plane, kind);
        difference
    }

    /// Looks every minute whether the planes have recovered from what the deletion guard holds, and whether what was
    /// released is done, until `stop`: where it is so, no plan deletes anything, and no check happens.
    pub async fn review(&self, stop: &CancellationToken) {
        let (name, applier) = (self.name(), &self.context.applier);
        while stop.run_until_cancelled(sleep(GUARD_RETRY)).await.is_some() {
            for engaged in self.context.planes.engaged() {
                let (plane, held) = (engaged.plane(), &engaged.memory().held);
                for kind in held.kinds(name) {
                    let is_set = || {
                        applier.deletion_guards().is_held(plane, kind)
                            || applier.deletion_guards().is_released(plane, kind)
                    };
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
        let (live, now) = (LiveReads::default(), Timestamp::now());
        let snapshot = Snapshot::new(&self.context, &live);
        if let Some(counted) = self.reconciler.count(&snapshot, plane, kind) {
            return counted;
        }
        // In a project every WorkloadDeployment is a Workload's, and of claims a cell sees its own only; elsewhere ours carry
        // the marker.
        let whole = matches!(plane, Plane::Project(_)) && [WORKLOAD_DEPLOYMENT, RESOURCE_CLAIM].contains(&kind);
        let ours = snapshot.all(plane, kind).known().unwrap_or_default();
        let mut difference = Difference {
            ours: ours.iter().filter(|one| whole || one.marked()).count(),
            ..Difference::default()
        };
        for key in self.reconciler.keys(&self.context, plane) {
            let plan = self.reconciler.decide(&snapshot, &key, now);
            difference.add(plan.as_ref(), plane, kind);
        }
        difference
    }
}

/// What a plan that was carried out came to, and when its key is looked at again.
fn ended(plan: &Plan, done: Done) -> (Outcome, Requeue) {
    if let Some(terminal) = &plan.terminal {
        debug!(
            reason = terminal.reason,
            message = terminal.message,
            "terminal until the object changes"
        );
    }
    let again = match done {
        Done::Held => Some(GUARD_RETRY),
        _ => plan.requeue,
    };
    match (again, done) {
        // Once for a change: what only waits is looked at again and again.
        (Some(delay), Done::Written | Done::Planned) => info!(?delay, "requeued"),
        (Some(delay), _) => debug!(?delay, "requeued"),
        (None, _) => {}
    }
    let requeue = again.map_or(Requeue::OnEvent, Requeue::After);
    let outcome = if done == Done::Held {
        Outcome::Withheld
    } else if plan.notes.contains(&Note::Paused) {
        Outcome::Paused
    } else if plan.terminal.is_some() {
        Outcome::Terminal
    } else if done == Done::Written {
        Outcome::Written
    } else if done == Done::Planned {
        Outcome::DryRun
    } else if plan.is_dropped() {
        Outcome::Abandoned
    } else {
        Outcome::Unchanged
    };
    (outcome, requeue)
}

/// Whether a plan creates, changes or deletes an object of a kind.
pub fn writes(plan: &Plan, kind: Kind) -> bool {
    plan.writes().map(Action::target).any(|target| target.kind == kind)
}

#[cfg(test)]
mod tests;
