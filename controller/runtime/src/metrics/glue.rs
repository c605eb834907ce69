//! From what the parts count by themselves to the metrics of the table, ours and controller-runtime's beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use popcell_core::metrics::{self as table, outcome, result};

use super::Metrics;
use crate::{planes, queue};

/// A pass has ended. `outcome` is one of [`outcome::ALL`].
pub fn observe_pass(metrics: &Metrics, reconciler: &'static str, outcome: &'static str, took: Duration) {
    metrics.count(&table::PASSES, &[reconciler, outcome]);
    metrics.observe(&table::PASS_SECONDS, &[reconciler], took);

    let result = as_result(outcome);
    metrics.count(&table::RECONCILES, &[reconciler, result]);
    metrics.observe(&table::RECONCILE_SECONDS, &[reconciler], took);
    // There from the first pass on, so that a rate sees the first error.
    metrics.add(
        &table::RECONCILE_ERRORS,
        &[reconciler],
        u64::from(result == result::ERROR),
    );
    let terminal = u64::from(outcome == outcome::TERMINAL);
    metrics.add(&table::TERMINAL_ERRORS, &[reconciler], terminal);
}

/// What controller-runtime would call it. There a terminal error is an error too.
fn as_result(outcome: &str) -> &'static str {
    match outcome {
        outcome::ERROR | outcome::TERMINAL => result::ERROR,
        outcome::CONFLICT => result::REQUEUE,
        outcome::SUPPRESSED => result::REQUEUE_AFTER,
        _ => result::SUCCESS,
    }
}

/// Takes over what the queue of a reconciler has counted. For [`Metrics::before_scrape`].
pub fn observe_queue(metrics: &Metrics, reconciler: &'static str, stats: &queue::Stats) {
    let (ours, theirs) = ([reconciler], [reconciler, reconciler]);
    metrics.set(&table::QUEUE_DEPTH, &ours, number(stats.depth));
    metrics.set(&table::QUEUE_AGE, &ours, stats.oldest.as_secs_f64());

    metrics.set(&table::WORKQUEUE_DEPTH, &theirs, number(stats.depth));
    metrics.reach(&table::WORKQUEUE_ADDS, &theirs, stats.adds);
    metrics.reach(&table::WORKQUEUE_RETRIES, &theirs, stats.retries);
    metrics.show(&table::WORKQUEUE_WAIT_SECONDS, &theirs, &stats.waited);
    metrics.show(&table::WORKQUEUE_WORK_SECONDS, &theirs, &stats.worked);
    metrics.set(&table::WORKQUEUE_UNFINISHED, &theirs, stats.unfinished.as_secs_f64());
    metrics.set(&table::WORKQUEUE_LONGEST, &theirs, stats.longest.as_secs_f64());

    metrics.set(&table::MAX_WORKERS, &ours, number(stats.workers));
    metrics.set(&table::ACTIVE_WORKERS, &ours, number(stats.running));
}

/// Takes over what is known of the planes. For [`Metrics::before_scrape`].
pub fn observe_planes(metrics: &Metrics, stats: &planes::Stats) {
    metrics.set(&table::ENGAGED, &[], number(stats.projects));
    let unknown = stats.unknown_planes.iter();
    let unknown = unknown.map(|(plane_kind, count)| (vec![(*plane_kind).to_owned()], number(*count)));
    metrics.replace(&table::UNKNOWN, unknown.collect());
    metrics.replace(&table::STREAMS, rows(&stats.streams_by_sort));
    metrics.replace(&table::UNDECODABLE, rows(&stats.unreadable_by_sort));
}

/// Takes over which projects discovery could not engage. For [`Metrics::before_scrape`].
pub fn observe_discovery(metrics: &Metrics, progress: &planes::Progress) {
    let refusals = progress.refusals().into_iter();
    let rows = refusals.map(|(reason, count)| (vec![reason.to_owned()], number(count)));
    metrics.replace(&table::REFUSED, rows.collect());
}

fn rows(by_sort: &BTreeMap<(&str, &str), usize>) -> Vec<(Vec<String>, f64)> {
    let rows = by_sort.iter();
    rows.map(|((plane_kind, kind), count)| (vec![(*plane_kind).to_owned(), (*kind).to_owned()], number(*count)))
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}
