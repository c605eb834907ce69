//! Label keys and fixed values.
//!
//! The contract behind them: `docs/domain.md#labels`.

/// City code of the site, written as in `spec.cityCode`. On hub WorkloadDeployments and on Karmada `Cluster`s; both
/// halves of the per-city PropagationPolicy select by it. Also the key of the city in `spec.topology` of Locations and
/// LocationBindings.
pub const CITY_CODE: &str = "topology.datum.net/city-code";

/// Uid of the Workload; on project WorkloadDeployments, on Instances and on their copies.
pub const WORKLOAD_UID: &str = "compute.datumapis.com/workload-uid";
/// Name of the Workload (`spec.workloadRef.name`); on Instances.
pub const WORKLOAD_NAME: &str = "compute.datumapis.com/workload-name";
/// Placement in the Workload (`spec.placementName`); on Instances.
pub const PLACEMENT_NAME: &str = "compute.datumapis.com/placement-name";
/// Uid of the WorkloadDeployment **in the cell**; on Instances and their copies.
pub const WORKLOAD_DEPLOYMENT_UID: &str = "compute.datumapis.com/workload-deployment-uid";
/// Name of the WorkloadDeployment, the same on every plane; on Instances and their copies.
pub const WORKLOAD_DEPLOYMENT_NAME: &str = "compute.datumapis.com/workload-deployment-name";
/// Ordinal of the Instance in its WorkloadDeployment, in decimal.
pub const INSTANCE_INDEX: &str = "compute.datumapis.com/instance-index";
/// City code of the WorkloadDeployment (`spec.cityCode`); on Instances. Not the label that policies select by, which is
/// [`CITY_CODE`].
pub const INSTANCE_CITY_CODE: &str = "compute.datumapis.com/city-code";

/// Project whose objects a hub namespace holds, encoded as a label value (`cluster-` and the project id, `/` as `_`);
/// on hub namespaces and hub copies of Instances.
pub const UPSTREAM_CLUSTER_NAME: &str = "meta.datumapis.com/upstream-cluster-name";
/// Namespace in the project that a hub object came from; on hub namespaces, hub WorkloadDeployments and hub copies.
pub const UPSTREAM_NAMESPACE: &str = "meta.datumapis.com/upstream-namespace";
/// Group of the owner in milo's anchor scheme. Not written by popcell.
pub const UPSTREAM_GROUP: &str = "meta.datumapis.com/upstream-group";
/// Kind of the owner in milo's anchor scheme. Not written by popcell.
pub const UPSTREAM_KIND: &str = "meta.datumapis.com/upstream-kind";
/// Name of the owner in milo's anchor scheme. Not written by popcell.
pub const UPSTREAM_NAME: &str = "meta.datumapis.com/upstream-name";

/// Name of the Karmada Cluster that the object comes from; on hub copies and on ResourceClaims.
pub const SOURCE_CLUSTER: &str = "compute.datumapis.com/source-cluster";
/// Namespace of the Instance in its cell; on ResourceClaims.
pub const INSTANCE_NAMESPACE: &str = "compute.datumapis.com/instance-namespace";

/// Marks what popcell wrote outside the cell and may therefore delete there: hub Namespaces, hub WorkloadDeployments,
/// policies, hub copies, projections; see [`MANAGED_BY_POPCELL`].
pub const MANAGED_BY: &str = "compute.datumapis.com/managed-by";
/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_POPCELL: &str = "popcell";

/// Excludes an object from Karmada's policies, so that its detector does not rescan the object at each policy event; on
/// hub copies, with the value [`CLAIMED_BY_POPCELL`].
pub const CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";
/// The value of [`CLAIMED_BY`].
pub const CLAIMED_BY_POPCELL: &str = "popcell";
/// Set by Karmada's webhook on policies, and on what they have claimed; never ours to own.
pub const PROPAGATION_POLICY_PERMANENT_ID: &str = "propagationpolicy.karmada.io/permanent-id";

/// All of these: no other key decides anything.
pub const ALL: [&str; 18] = [
    CITY_CODE,
    WORKLOAD_UID,
    WORKLOAD_NAME,
    PLACEMENT_NAME,
    WORKLOAD_DEPLOYMENT_UID,
    WORKLOAD_DEPLOYMENT_NAME,
    INSTANCE_INDEX,
    INSTANCE_CITY_CODE,
    UPSTREAM_CLUSTER_NAME,
    UPSTREAM_NAMESPACE,
    UPSTREAM_GROUP,
    UPSTREAM_KIND,
    UPSTREAM_NAME,
    SOURCE_CLUSTER,
    INSTANCE_NAMESPACE,
    MANAGED_BY,
    CLAIMED_BY,
    PROPAGATION_POLICY_PERMANENT_ID,
];

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn no_key_is_skipped_of_all() {
        let lines = include_str!("labels.rs").lines();
        let defined = lines.filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1));
        let keys: Vec<&str> = defined.filter(|value| value.contains('/')).collect();
        assert_eq!(keys, ALL);
    }
}
