//! What is measured: counts of reconciles and writes as they happen, and gauges that are computed before a scrape.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::CLUSTER;
use popcell_api::names::LEASE;
use popcell_core::metrics::{self as table, outcome, plane_kind, result};
use popcell_core::object::Fields;
use popcell_core::observed::Observed;
use popcell_core::plan::{Note, Plane, Target};
use popcell_core::removed_cells;

use super::guard_events::GuardEvents;
use crate::apply::{GuardChange, MayWrite, Meter};
use crate::context::{Context, Outcome, Reporter};
use crate::memory::{Counts, GaugeCounts};
use crate::metrics::Metrics;
use crate::reconcilers::QueuedReconciler;
use crate::{planes, queue};

/// Counts into the process's metrics, and tells on its Lease.
pub(super) struct Meters {
    pub(super) metrics: Metrics,
    /// `None` where there is no Lease to tell on.
    pub(super) guard_events: Option<GuardEvents>,
}

impl Reporter for Meters {
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration) {
        observe_reconcile(&self.metrics, reconciler, outcome.as_str(), took);
    }

    fn noted(&self, note: &Note) {
        match note {
            Note::QuotaFailed(reason) => self.metrics.count(&table::QUOTA_FAILURES, &[reason]),
            Note::ClaimOrphaned => self.metrics.count(&table::QUOTA_ORPHANED_CLAIMS, &[]),
            _ => {}
        }
    }

    fn answered(&self, reconciler: &'static str, after: Duration) {
        self.metrics.observe(&table::EVENT_TO_WRITE, &[reconciler], after);
    }
}

impl Meter for Meters {
    fn wrote(&self, target: &Target, verb: &'static str, code: u16) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb, &code.to_string()];
        self.metrics.count(&table::WRITES, &labels);
    }

    fn planned(&self, target: &Target, verb: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb];
        self.metrics.count(&table::DRY_RUN, &labels);
    }

    fn withheld(&self, target: &Target, why: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, why];
        self.metrics.count(&table::WITHHELD, &labels);
    }

    fn guard_changed(&self, plane: &Plane, kind: &'static str, change: GuardChange) {
        if let Some(guard_events) = &self.guard_events {
            guard_events.guard_changed(plane, kind, change);
        }
    }

    fn unreleased(&self, value: &str, held: &str) {
        if let Some(guard_events) = &self.guard_events {
            guard_events.unreleased(value, held);
        }
    }
}

/// A reconcile has ended, under our names and those of controller-runtime. `outcome` is one of [`outcome::ALL`].
fn observe_reconcile(metrics: &Metrics, reconciler: &'static str, outcome: &'static str, took: Duration) {
    metrics.count(&table::POPCELL_RECONCILES, &[reconciler, outcome]);
    metrics.observe(&table::POPCELL_RECONCILE_SECONDS, &[reconciler], took);

    let result = as_result(outcome);
    metrics.count(&table::RECONCILES, &[reconciler, result]);
    metrics.observe(&table::RECONCILE_SECONDS, &[reconciler], took);
    // There from the first reconcile on, so that a rate sees the first error.
    let failed = u64::from(result == result::ERROR);
    metrics.add(&table::RECONCILE_ERRORS, &[reconciler], failed);
    let terminal = u64::from(outcome == outcome::TERMINAL);
    metrics.add(&table::TERMINAL_ERRORS, &[reconciler], terminal);
}

/// What controller-runtime would call it. There a terminal error is an error too.
fn as_result(outcome: &str) -> &'static str {
    match outcome {
        outcome::ERROR | outcome::TERMINAL => result::ERROR,
        outcome::CONFLICT => result::REQUEUE,
        outcome::WITHHELD => result::REQUEUE_AFTER,
        _ => result::SUCCESS,
    }
}

/// Before each scrape: what the context and its queues say.
pub(super) fn observe_all(
    metrics: &Metrics,
    context: Arc<Context>,
    queued_reconcilers: Vec<QueuedReconciler>,
    may_write: MayWrite,
) {
    metrics.before_scrape(Box::new(move |metrics| {
        let leads = may_write();
        let leading = f64::from(u8::from(leads));
        metrics.set(&table::LEADER, &[], leading);
        metrics.set(&table::MASTER, &[LEASE], leading);
        for queued in queued_reconcilers.iter().filter(|_| leads) {
            observe_queue(metrics, queued.reconciler.name(), &queued.queue.stats());
        }
        let gauge_counts = context.gauge_counts();
        observe_planes(metrics, &context.planes.stats(), &gauge_counts.undecodable);
        observe_objects(metrics, &context, &gauge_counts);
        observe_clusters(metrics, &context);
    }));
}

/// Before each scrape: which projects discovery could not engage.
pub(super) fn observe_discovery(metrics: &Metrics, progress: Arc<planes::Progress>) {
    metrics.before_scrape(Box::new(move |metrics| {
        let refusals = progress.refusals().into_iter();
        let rows = refusals.map(|(reason, count)| ([reason.to_owned()], number(count)));
        metrics.replace(&table::REFUSED, rows);
    }));
}

/// What the queue of a reconciler has counted, under our names and those of controller-runtime.
fn observe_queue(metrics: &Metrics, reconciler: &'static str, stats: &queue::Stats) {
    let (ours, theirs) = (&[reconciler], &[reconciler, reconciler]);
    metrics.set(&table::QUEUE_DEPTH, ours, number(stats.depth));
    metrics.set(&table::QUEUE_AGE, ours, stats.oldest.as_secs_f64());

    metrics.set(&table::WORKQUEUE_DEPTH, theirs, number(stats.depth));
    metrics.reach(&table::WORKQUEUE_ADDS, theirs, stats.adds);
    metrics.reach(&table::WORKQUEUE_RETRIES, theirs, stats.retries);
    metrics.show(&table::WORKQUEUE_WAIT_SECONDS, theirs, &stats.waited);
    metrics.show(&table::WORKQUEUE_WORK_SECONDS, theirs, &stats.worked);
    metrics.set(&table::WORKQUEUE_UNFINISHED, theirs, stats.unfinished.as_secs_f64());
    metrics.set(&table::WORKQUEUE_LONGEST, theirs, stats.longest.as_secs_f64());

    metrics.set(&table::MAX_WORKERS, ours, number(stats.workers));
    metrics.set(&table::ACTIVE_WORKERS, ours, number(stats.running));
}

/// What is known of the planes. `undecodable`: what reconciles could not read, beside what stores could not.
fn observe_planes(metrics: &Metrics, stats: &planes::Stats, undecodable: &Counts) {
    metrics.set(&table::ENGAGED, &[], number(stats.projects));
    let unknown = stats.not_synced_planes.iter();
    let unknown = unknown.map(|(plane_kind, count)| ([(*plane_kind).to_owned()], number(*count)));
    metrics.replace(&table::NOT_SYNCED, unknown);
    metrics.replace(&table::STREAMS, rows(&stats.streams_by_sort));
    let mut unreadable = stats.unreadable_by_sort.clone();
    for (sort, count) in undecodable {
        *unreadable.entry(*sort).or_default() += count;
    }
    metrics.replace(&table::UNDECODABLE, rows(&unreadable));
    let excessive = stats.excessive_by_plane.iter();
    let excessive = excessive.map(|(plane, count)| ([plane.to_string()], number(*count)));
    metrics.replace(&table::OVER_LIMIT, excessive);
}

/// What reconciles found on objects, and what is held or has not ended.
fn observe_objects(metrics: &Metrics, context: &Context, gauge_counts: &GaugeCounts) {
    metrics.replace(&table::SKEW, rows(&gauge_counts.skews));
    let orphans = by_kind(&gauge_counts.orphans).into_iter();
    metrics.replace(&table::ORPHANS, orphans.map(|(kind, count)| ([kind.to_owned()], count)));
    let foreign = by_kind(&gauge_counts.foreign).into_iter();
    let foreign = foreign.map(|(kind, count)| ([kind.to_owned(), "Foreign".to_owned()], count));
    metrics.replace(&table::FOREIGN, foreign);
    let deletion_guards = context.applier.deletion_guards();
    let held = deletion_guards.held();
    metrics.replace(
        &table::DELETION_GUARD,
        held.map(|(plane, kind)| ([plane.to_string(), kind.to_owned()], 1.0)),
    );
    drop(deletion_guards);
    metrics.replace(&table::OLDEST_DELETION, oldest_deletions(context, Timestamp::now()));
}

/// What Karmada says of the cells. While it is not known the gauges keep what it last was.
fn observe_clusters(metrics: &Metrics, context: &Context) {
    let hub = context.planes.get(&Plane::Hub);
    let all = hub.and_then(|hub| hub.store(CLUSTER).map(|store| store.all()));
    let Some(Observed::Known(clusters)) = all else {
        return;
    };
    let clusters = crate::context::refs(&clusters);
    let crowded = removed_cells::crowded_cities(&clusters).len();
    metrics.set(&table::CITY_CLUSTERS, &[], number(crowded));
    let twins = removed_cells::twins(&clusters)
        .into_values()
        .map(|names| names.len())
        .sum();
    metrics.set(&table::CELL_TWINS, &[], number(twins));
    let silent = clusters.iter().filter_map(|cluster| {
        let age = age(removed_cells::silent_since(cluster)?, Timestamp::now());
        Some(([cluster.name().to_owned()], age.as_secs_f64()))
    });
    metrics.replace(&table::STATUS_AGE, silent);
}

/// Ages by kind of plane and kind: one series for each, whatever the number of projects.
fn oldest_deletions(context: &Context, now: Timestamp) -> Vec<([String; 2], f64)> {
    let mut oldest: BTreeMap<(&'static str, &'static str), Duration> = BTreeMap::new();
    for plane in context.planes.planes() {
        let Some(engaged) = context.planes.get(&plane) else {
            continue;
        };
        for (kind, store) in engaged.stores() {
            let Observed::Known(objects) = store.all() else {
                continue;
            };
            let deletions = objects
                .iter()
                .filter_map(|one| one.metadata.deletion_timestamp.as_ref());
            if let Some(age) = deletions.map(|since| age(since.0, now)).max() {
                let known = oldest.entry((plane_kind(&plane), kind.kind)).or_default();
                *known = age.max(*known);
            }
        }
    }
    let rows = oldest.into_iter();
    rows.map(|((plane, kind), age)| ([plane.to_owned(), kind.to_owned()], age.as_secs_f64()))
        .collect()
}

/// A clock that is behind sees the future: that is no age at all.
fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// By kind of plane and kind.
fn rows(counts: &Counts) -> impl Iterator<Item = ([String; 2], f64)> {
    let rows = counts.iter();
    rows.map(|((plane, kind), count)| ([(*plane).to_owned(), (*kind).to_owned()], number(*count)))
}

fn by_kind(counts: &Counts) -> BTreeMap<&'static str, f64> {
    let mut summed = BTreeMap::new();
    for ((_, kind), count) in counts {
        *summed.entry(*kind).or_default() += number(*count);
    }
    summed
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
