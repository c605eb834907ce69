//! Names of metrics that upstream's dashboards and alerts know.

/// Gauge: 1 while quota is enforced.
pub const QUOTA_ENFORCEMENT_ENABLED: &str = "compute_quota_enforcement_enabled";
/// Counter by `reason`: evaluations of quota that failed.
pub const QUOTA_EVAL_FAILURES: &str = "compute_quota_eval_failures_total";
/// Counter: claims that were deleted in a project which their Namespace in the cell does not name.
pub const QUOTA_CLAIM_ORPHANED: &str = "compute_quota_claim_orphaned_total";

/// Values of the label `reason` of [`QUOTA_EVAL_FAILURES`].
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
    /// Nobody has granted the project anything.
    pub const NO_BUDGET: &str = "no_budget";
}
