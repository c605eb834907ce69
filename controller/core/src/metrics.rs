//! Every metric of the controller, as data: name, kind, labels, help.
//!
//! The runtime registers from this table, the documentation is written from it, and a test holds it to its rules: labels of
//! bounded cardinality only, no project on a histogram, and names of controller-runtime beside ours, so that existing
//! dashboards work. A series ends with its subject: labels in [`PER_SUBJECT`] name one.

use crate::plan::Plane;

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

/// A counter of the table with so many labels: the compiler counts those that are given.
#[derive(Clone, Copy, Debug)]
pub struct Counter<const LABELS: usize>(pub Metric);

/// A gauge of the table with so many labels.
#[derive(Clone, Copy, Debug)]
pub struct Gauge<const LABELS: usize>(pub Metric);

/// A histogram of the table with so many labels.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<const LABELS: usize>(pub Metric);

/// Labels that name something that comes and goes: its series end with it.
pub const PER_SUBJECT: [&str; 2] = ["plane", "source_cluster"];

/// Values of the label `outcome` of [`POPCELL_RECONCILES`].
pub mod outcome {
    /// Nothing differed.
    pub const UNCHANGED: &str = "unchanged";
    /// Something was written.
    pub const WRITTEN: &str = "written";
    /// What was observed was not current any more, three times.
    pub const CONFLICT: &str = "conflict";
    /// Only a change of the object can help.
    pub const TERMINAL: &str = "terminal";
    /// A server did not do what was asked.
    pub const ERROR: &str = "error";
    /// Deletes were skipped, for want of proof or by the deletion guard.
    pub const WITHHELD: &str = "withheld";
    /// Given up unfinished: the plane went away, or the right to write did; or it leads nowhere.
    pub const ABANDONED: &str = "abandoned";
    /// The pause annotation is set.
    pub const PAUSED: &str = "paused";
    /// In a dry run: something would have been written.
    pub const DRY_RUN: &str = "dry_run";
    /// All of them.
    pub const ALL: [&str; 9] = [
        UNCHANGED, WRITTEN, CONFLICT, TERMINAL, ERROR, WITHHELD, ABANDONED, PAUSED, DRY_RUN,
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

/// Values of the label `reason` of [`QUOTA_FAILURES`].
pub mod quota_failures {
    /// The project's API server did not answer.
    pub const BACKEND_UNAVAILABLE: &str = "backend_unavailable";
    /// There is no such project.
    pub const PROJECT_NOT_FOUND: &str = "project_not_found";
    /// The project has no such namespace.
    pub const NAMESPACE_NOT_FOUND: &str = "namespace_not_found";
    /// The claim was refused.
    pub const MISCONFIGURED: &str = "misconfigured";
    /// The cell namespace does not say which project it belongs to.
    pub const PROJECT_ID_UNRESOLVABLE: &str = "project_id_unresolvable";
    /// The project has no grant.
    pub const NO_BUDGET: &str = "no_budget";
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

/// Makes a constant of each row, and [`ALL`] of all of them.
macro_rules! table {
    ($($(#[$doc:meta])* $constant:ident: $type_:ident($name:expr, [$($label:literal),*], $help:literal);)*) => {
        $(
            #[doc = $help]
            $(
                ///
                #[$doc]
            )*
            pub const $constant: $type_<{ <[&str]>::len(&[$($label),*]) }> = $type_(Metric {
                name: $name,
                type_: Type::$type_,
                labels: &[$($label),*],
                help: $help,
            });
        )*

        /// All metrics.
        pub const ALL: &[Metric] = &[$($constant.0),*];
    };
}

table! {
    /// The values are in [`outcome`].
    POPCELL_RECONCILES: Counter("popcell_reconciles_total", ["reconciler", "outcome"], "Reconciles by outcome.");
    POPCELL_RECONCILE_SECONDS: Histogram("popcell_reconcile_duration_seconds", ["reconciler"], "Duration of \
                                                                                                reconciles.");
    QUEUE_DEPTH: Gauge("popcell_queue_depth", ["reconciler"], "Keys that wait for a reconcile.");
    QUEUE_AGE: Gauge("popcell_queue_oldest_seconds", ["reconciler"], "How long the oldest key has waited.");
    WRITES: Counter("popcell_writes_total", ["plane_kind", "kind", "verb", "code"], "Writes that were sent.");
    DRY_RUN: Counter("popcell_dry_run_writes_total", ["plane_kind", "kind", "verb"],
        "Writes that a dry run would have sent, counted by each reconcile that planned them.");
    EVENT_TO_WRITE: Histogram("popcell_event_to_write_seconds", ["reconciler"],
        "Time from the first event that enqueued a key to the end of the reconcile that wrote for it. Progress of a \
         WorkloadDeployment, which is gathered for 1 s, and up to 20 s where many have any, is not counted.");
    ENGAGED: Gauge("popcell_projects_engaged", [], "Projects that are engaged.");
    REFUSED: Gauge("popcell_projects_refused", ["reason"], "Projects that are not engaged, by reason.");
    STREAMS: Gauge("popcell_watch_streams", ["plane_kind", "kind"], "Watch streams that are open.");
    NOT_SYNCED: Gauge("popcell_planes_not_synced", ["plane_kind"],
        "API servers whose caches are not synced since their last reconnect.");
    ORPHANS: Gauge("popcell_orphans", ["kind"], "Orphaned objects: on the hub, and claims in projects, whose owner \
                                                 no longer exists.");
    FOREIGN: Gauge("popcell_conflicts", ["kind", "reason"], "Objects of other owners that hold a name popcell needs; \
                                                             they are kept.");
    WITHHELD: Counter("popcell_deletes_withheld_total", ["plane_kind", "kind", "reason"],
        "Deletes that were not sent: a live read contradicted their proof or failed, or the deletion guard holds.");
    DELETION_GUARD: Gauge("popcell_deletion_guard_held", ["plane", "kind"],
        "1 while the deletion guard holds; kind=\"*\": all deletes that depend on the plane.");
    UNDECODABLE: Gauge("popcell_objects_undecodable", ["plane_kind", "kind"],
        "Objects with a field that is needed and cannot be read.");
    OVER_LIMIT: Gauge("popcell_objects_over_limit", ["plane"],
        "Objects that exceed a limit of depth, size or number, and are not carried or not shown.");
    SKEW: Gauge("popcell_crd_skew", ["plane_kind", "kind"], "Objects whose spec a server stores differently from \
                                                             what was sent.");
    STATUS_AGE: Gauge("popcell_status_age_seconds", ["source_cluster"],
        "Age of the newest status from a cell while it is not ready.");
    CITY_CLUSTERS: Gauge("popcell_cities_with_several_clusters", [],
        "Cities that more than one Cluster carries: each object goes to one of them.");
    CELL_TWINS: Gauge("popcell_clusters_of_one_uid", [],
        "Clusters that carry the uid of another: one cell that is joined twice, or was cloned with its etcd.");
    OLDEST_DELETION: Gauge("popcell_oldest_deletion_seconds", ["plane_kind", "kind"],
        "Age of the oldest deletion that has not ended.");
    LEADER: Gauge("popcell_leader", [], "1 while this process may write.");
    ADMISSION: Counter("popcell_admission_reviews_total", ["outcome"], "Reviews at admission: allowed, unread, denied, error.");
    ADMISSION_SECONDS: Histogram("popcell_admission_duration_seconds", [], "How long reviews take.");
    LOG_LINES_LOST: Counter("popcell_log_lines_lost_total", [], "Log lines that could not be written to standard \
                                                                 error.");

    // As controller-runtime names them.
    /// The values are in [`result`].
    RECONCILES: Counter("controller_runtime_reconcile_total", ["controller", "result"],
        "Reconciles by result: success, error, requeue, requeue_after.");
    RECONCILE_ERRORS: Counter("controller_runtime_reconcile_errors_total", ["controller"], "Reconciles that ended in \
                                                                                            an error.");
    TERMINAL_ERRORS: Counter("controller_runtime_terminal_reconcile_errors_total", ["controller"],
        "Reconciles that fail until the object changes.");
    RECONCILE_SECONDS: Histogram("controller_runtime_reconcile_time_seconds", ["controller"], "Duration of \
                                                                                               reconciles.");
    MAX_WORKERS: Gauge("controller_runtime_max_concurrent_reconciles", ["controller"], "Workers.");
    ACTIVE_WORKERS: Gauge("controller_runtime_active_workers", ["controller"], "Workers that are busy.");
    WORKQUEUE_DEPTH: Gauge("workqueue_depth", ["name", "controller"], "Keys that wait.");
    WORKQUEUE_ADDS: Counter("workqueue_adds_total", ["name", "controller"], "Keys that were added.");
    WORKQUEUE_RETRIES: Counter("workqueue_retries_total", ["name", "controller"], "Keys that were added again after an error.");
    WORKQUEUE_WAIT_SECONDS: Histogram("workqueue_queue_duration_seconds", ["name", "controller"], "How long keys wait.");
    WORKQUEUE_WORK_SECONDS: Histogram("workqueue_work_duration_seconds", ["name", "controller"], "Duration of \
                                                                                                  reconciles.");
    WORKQUEUE_UNFINISHED: Gauge("workqueue_unfinished_work_seconds", ["name", "controller"],
        "Time spent in running reconciles.");
    WORKQUEUE_LONGEST: Gauge("workqueue_longest_running_processor_seconds", ["name", "controller"],
        "Age of the longest running reconcile.");

    // As client-go names it.
    MASTER: Gauge("leader_election_master_status", ["name"], "1 while this process leads.");

    // As upstream names them.
    QUOTA_ENFORCED: Gauge("compute_quota_enforcement_enabled", [], "1 while quota is enforced.");
    /// The values are in [`quota_failures`].
    QUOTA_FAILURES: Counter("compute_quota_eval_failures_total", ["reason"], "Evaluations of quota that failed.");
    /// Counts the event [`popcell_api::events::QUOTA_CLAIM_ORPHANED`].
    QUOTA_ORPHANED_CLAIMS: Counter("compute_quota_claim_orphaned_total", [],
        "Claims that were deleted in a project which their Namespace in the cell does not name.");
}
