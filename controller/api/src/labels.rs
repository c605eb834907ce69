//! Label keys.

/// City code of the site, written as in `spec.cityCode`. On hub WorkloadDeployments and on Karmada `Cluster`s; both
/// halves of the per-city PropagationPolicy select by it.
pub const CITY_CODE: &str = "topology.datum.net/city-code";

/// Uid of the Workload; on project WorkloadDeployments and on Instances.
pub const WORKLOAD_UID: &str = "compute.datumapis.com/workload-uid";

/// Marks what popcell wrote in the hub and may therefore delete there; see [`MANAGED_BY_POPCELL`].
pub const MANAGED_BY: &str = "compute.datumapis.com/managed-by";

/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_POPCELL: &str = "popcell";

/// Project whose objects a hub namespace holds, encoded as a label value.
pub const UPSTREAM_CLUSTER_NAME: &str = "meta.datumapis.com/upstream-cluster-name";

/// Namespace in the project that a hub object came from.
pub const UPSTREAM_NAMESPACE: &str = "meta.datumapis.com/upstream-namespace";
