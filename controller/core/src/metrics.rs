//! Every metric of the controller, as data: name, kind, labels, help.
//!
//! The runtime registers from this table, the documentation is written from it, and a test holds it to its rules: labels of
//! bounded cardinality only, no project on a histogram, and names of controller-runtime beside ours, so that existing
//! dashboards work. A series ends with its subject: labels in [`PER_SUBJECT`] name one.

use popcell_api::metrics as upstream;

use crate::plan::Plane;

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times, in seconds.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The whole name, `_total` of counters included.
    pub name: &'static str,
    /// What it is.
    pub type_: Type,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// Labels that name something that comes and goes: its series end with it.
pub const PER_SUBJECT: [&str; 2] = ["plane", "source_cluster"];

/// Values of the label `outcome` of [`PASSES`].
pub mod outcome {
    /// Nothing differed.
    pub const QUIET: &str = "quiet";
    /// Something was written.
    pub const WRITTEN: &str = "written";
    /// What was observed was not current any more, three times.
    pub const CONFLICT: &str = "conflict";
    /// Only a change of the object can help.
    pub const TERMINAL: &str = "terminal";
    /// A server did not do what was asked.
    pub const ERROR: &str = "error";
    /// Deletes were left out, for want of proof or by the brake.
    pub const SUPPRESSED: &str = "suppressed";
    /// Given up unfinished: the plane went away, or the right to write did; or it leads nowhere.
    pub const DROPPED: &str = "dropped";
    /// The pause annotation is set.
    pub const PAUSED: &str = "paused";
    /// In a dry run: something would have been written.
    pub const PLANNED: &str = "planned";
    /// All of them.
    pub const ALL: [&str; 9] = [
        QUIET, WRITTEN, CONFLICT, TERMINAL, ERROR, SUPPRESSED, DROPPED, PAUSED, PLANNED,
    ];
}

/// Values of the label `result` of [`RECONCILES`].
pub mod result {
    /// Nothing more to do until an event.
    pub const SUCCESS: &str = "success";
    /// Failed.
    pub const ERROR: &str = "error";
    /// Looks again at once.
    pub const REQUEUE: &str = "requeue";
    /// Looks again after a time.
    pub const REQUEUE_AFTER: &str = "requeue_after";
}

/// The value of the label `plane_kind`; of the label `plane` it is `plane.to_string()`.
pub const fn plane_kind(plane: &Plane) -> &'static str {
    match plane {
        Plane::Project(_) => "project",
        Plane::Hub => "hub",
        Plane::Cell => "cell",
        Plane::Discovery => "discovery",
    }
}

const RECONCILER: &[&str] = &["reconciler"];
const QUEUE: &[&str] = &["name", "controller"];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(name, Type::Counter, labels, help)
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(name, Type::Gauge, labels, help)
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(name, Type::Histogram, labels, help)
}

const fn metric(name: &'static str, type_: Type, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        type_,
        labels,
        help,
    }
}

/// Passes by outcome; values in [`outcome`].
pub const PASSES: Metric = counter("popcell_passes_total", &["reconciler", "outcome"], "Passes by outcome.");
/// Duration of a pass.
pub const PASS_SECONDS: Metric = histogram("popcell_pass_duration_seconds", RECONCILER, "How long passes take.");
/// Keys that wait.
pub const QUEUE_DEPTH: Metric = gauge("popcell_queue_depth", RECONCILER, "Keys that wait for a pass.");
/// Age of the oldest key.
pub const QUEUE_AGE: Metric = gauge(
    "popcell_queue_oldest_seconds",
    RECONCILER,
    "How long the oldest key has waited.",
);
/// Writes by kind of plane, kind and verb.
pub const WRITES: Metric = counter(
    "popcell_writes_total",
    &["plane_kind", "kind", "verb", "code"],
    "Writes that were sent.",
);
/// Writes that a dry run did not send.
pub const DRY_RUN: Metric = counter(
    "popcell_dry_run_writes_total",
    &["plane_kind", "kind", "verb"],
    "Writes that a dry run would have sent, counted by each pass that planned them.",
);
/// Time from an event to the end of the pass that wrote for it.
pub const EVENT_TO_WRITE: Metric = histogram(
    "popcell_event_to_write_seconds",
    RECONCILER,
    "From the first event that woke a key to the end of the pass that wrote for it.",
);
/// Engaged projects.
pub const ENGAGED: Metric = gauge("popcell_projects_engaged", &[], "Projects that are engaged.");
/// Projects that cannot be engaged.
pub const REFUSED: Metric = gauge(
    "popcell_projects_refused",
    &["reason"],
    "Projects that are not engaged, by reason.",
);
/// Watch streams.
pub const STREAMS: Metric = gauge(
    "popcell_watch_streams",
    &["plane_kind", "kind"],
    "Watch streams that are open.",
);
/// Planes that are not known.
pub const UNKNOWN: Metric = gauge(
    "popcell_planes_unknown",
    &["plane_kind"],
    "Planes whose stores are not fully listed since their last reconnect.",
);
/// Orphans.
pub const ORPHANS: Metric = gauge(
    "popcell_orphans",
    &["kind"],
    "Objects in the hub, and claims in projects, that nobody stands behind.",
);
/// Conflicts with what others own.
pub const FOREIGN: Metric = gauge(
    "popcell_conflicts",
    &["kind", "reason"],
    "Objects that hold a name of ours and are left alone.",
);
/// Deletes without proof.
pub const SUPPRESSED: Metric = counter(
    "popcell_deletes_suppressed_total",
    &["plane_kind", "kind", "reason"],
    "Deletes that were left out: no proof, or the brake.",
);
/// Brakes that hold.
pub const BRAKE: Metric = gauge(
    "popcell_brake_held",
    &["plane", "kind"],
    "1 while the deletion guard holds; kind=\"*\": all deletes that rest on the plane.",
);
/// Objects that cannot be read.
pub const UNDECODABLE: Metric = gauge(
    "popcell_objects_undecodable",
    &["plane_kind", "kind"],
    "Objects with a field that is needed and cannot be read.",
);
/// Objects that have too much of something.
pub const OVER_LIMIT: Metric = gauge(
    "popcell_objects_over_limit",
    &["plane"],
    "Objects that exceed a limit of depth, size or number, and are not carried or not shown.",
);
/// CRDs of other versions.
pub const SKEW: Metric = gauge(
    "popcell_crd_skew",
    &["plane_kind", "kind"],
    "Objects whose spec a server stores otherwise than it was sent.",
);
/// Age of what a cell last said.
pub const STATUS_AGE: Metric = gauge(
    "popcell_status_age_seconds",
    &["source_cluster"],
    "How old the newest status from a cell is while it is not ready.",
);
/// Cities with more than one cluster.
pub const CITY_CLUSTERS: Metric = gauge(
    "popcell_cities_with_several_clusters",
    &[],
    "Cities that more than one Cluster carries: each object goes to one of them.",
);
/// Clusters of one cell.
pub const CELL_TWINS: Metric = gauge(
    "popcell_clusters_of_one_uid",
    &[],
    "Clusters that carry the uid of another: one cell that is joined twice, or was cloned with its etcd.",
);
/// Deletions that do not end.
pub const OLDEST_DELETION: Metric = gauge(
    "popcell_oldest_deletion_seconds",
    &["plane_kind", "kind"],
    "Age of the oldest deletion that has not ended.",
);
/// Lease.
pub const LEADER: Metric = gauge("popcell_leader", &[], "1 while this process may write.");
/// Reviews at admission.
pub const ADMISSION: Metric = counter(
    "popcell_admission_reviews_total",
    &["outcome"],
    "Reviews at admission: allowed, unread, denied, error.",
);
/// Time of a review.
pub const ADMISSION_SECONDS: Metric = histogram("popcell_admission_duration_seconds", &[], "How long reviews take.");
/// Log lines that were not written.
pub const LOG_LINES_LOST: Metric = counter(
    "popcell_log_lines_lost_total",
    &[],
    "Log lines that standard error could not take.",
);

/// As controller-runtime names passes by result; values in [`result`].
pub const RECONCILES: Metric = counter(
    "controller_runtime_reconcile_total",
    &["controller", "result"],
    "Passes by result: success, error, requeue, requeue_after.",
);
/// As controller-runtime names passes that ended in an error.
pub const RECONCILE_ERRORS: Metric = counter(
    "controller_runtime_reconcile_errors_total",
    &["controller"],
    "Passes that ended in an error.",
);
/// As controller-runtime names passes that only a change of the object can help.
pub const TERMINAL_ERRORS: Metric = counter(
    "controller_runtime_terminal_reconcile_errors_total",
    &["controller"],
    "Passes that only a change of the object can help.",
);
/// As controller-runtime names the duration of a pass.
pub const RECONCILE_SECONDS: Metric = histogram(
    "controller_runtime_reconcile_time_seconds",
    &["controller"],
    "How long passes take.",
);
/// As controller-runtime names the number of workers.
pub const MAX_WORKERS: Metric = gauge(
    "controller_runtime_max_concurrent_reconciles",
    &["controller"],
    "Workers.",
);
/// As controller-runtime names workers that are busy.
pub const ACTIVE_WORKERS: Metric = gauge(
    "controller_runtime_active_workers",
    &["controller"],
    "Workers that are busy.",
);
/// As controller-runtime names keys that wait for a pass.
pub const WORKQUEUE_DEPTH: Metric = gauge("workqueue_depth", QUEUE, "Keys that wait.");
/// As controller-runtime names keys that became ready.
pub const WORKQUEUE_ADDS: Metric = counter("workqueue_adds_total", QUEUE, "Keys that were added.");
/// As controller-runtime names keys that come back after an error.
pub const WORKQUEUE_RETRIES: Metric = counter(
    "workqueue_retries_total",
    QUEUE,
    "Keys that were added again after an error.",
);
/// As controller-runtime names the time that keys wait for a pass.
pub const WORKQUEUE_WAIT_SECONDS: Metric = histogram("workqueue_queue_duration_seconds", QUEUE, "How long keys wait.");
/// As controller-runtime names the time that workers spend on keys.
pub const WORKQUEUE_WORK_SECONDS: Metric = histogram("workqueue_work_duration_seconds", QUEUE, "How long passes take.");
/// As controller-runtime names the work in progress.
pub const WORKQUEUE_UNFINISHED: Metric = gauge(
    "workqueue_unfinished_work_seconds",
    QUEUE,
    "Time spent in passes that go on.",
);
/// As controller-runtime names the pass that has gone on longest.
pub const WORKQUEUE_LONGEST: Metric = gauge(
    "workqueue_longest_running_processor_seconds",
    QUEUE,
    "Age of the longest pass that goes on.",
);
/// As client-go names the holder of a Lease.
pub const MASTER: Metric = gauge(
    "leader_election_master_status",
    &["name"],
    "1 while this process leads.",
);
/// As upstream names whether quota is enforced.
pub const QUOTA_ENFORCED: Metric = gauge(upstream::QUOTA_ENFORCEMENT_ENABLED, &[], "1 while quota is enforced.");
/// As upstream names evaluations of quota that failed; values in [`upstream::quota_failures`].
pub const QUOTA_FAILURES: Metric = counter(
    upstream::QUOTA_EVAL_FAILURES,
    &["reason"],
    "Evaluations of quota that failed.",
);
/// Counts the event [`popcell_api::events::QUOTA_CLAIM_ORPHANED`], under upstream's name.
pub const QUOTA_ORPHANED_CLAIMS: Metric = counter(
    upstream::QUOTA_CLAIM_ORPHANED,
    &[],
    "Claims that were deleted in a project which their Namespace in the cell does not name.",
);

/// All metrics.
pub const ALL: &[Metric] = &[
    PASSES,
    PASS_SECONDS,
    QUEUE_DEPTH,
    QUEUE_AGE,
    WRITES,
    DRY_RUN,
    EVENT_TO_WRITE,
    ENGAGED,
    REFUSED,
    STREAMS,
    UNKNOWN,
    ORPHANS,
    FOREIGN,
    SUPPRESSED,
    BRAKE,
    UNDECODABLE,
    OVER_LIMIT,
    SKEW,
    STATUS_AGE,
    CITY_CLUSTERS,
    CELL_TWINS,
    OLDEST_DELETION,
    LEADER,
    ADMISSION,
    ADMISSION_SECONDS,
    LOG_LINES_LOST,
    // As controller-runtime names them.
    RECONCILES,
    RECONCILE_ERRORS,
    TERMINAL_ERRORS,
    RECONCILE_SECONDS,
    MAX_WORKERS,
    ACTIVE_WORKERS,
    WORKQUEUE_DEPTH,
    WORKQUEUE_ADDS,
    WORKQUEUE_RETRIES,
    WORKQUEUE_WAIT_SECONDS,
    WORKQUEUE_WORK_SECONDS,
    WORKQUEUE_UNFINISHED,
    WORKQUEUE_LONGEST,
    // As client-go names it.
    MASTER,
    // As upstream names them.
    QUOTA_ENFORCED,
    QUOTA_FAILURES,
    QUOTA_ORPHANED_CLAIMS,
];
