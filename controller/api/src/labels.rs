//! Label keys and fixed values.
//!
//! The contract behind them: `docs/domain.md#labels`.

keys! {
    /// City code of the site, written as in `spec.cityCode`. On hub WorkloadDeployments and on Karmada `Cluster`s; both
    /// halves of the per-city PropagationPolicy select by it. Also the key of the city in `spec.topology` of Locations and
    /// LocationBindings.
    CITY_CODE = "topology.datum.net/city-code";

    /// Uid of the Workload; on project WorkloadDeployments, on Instances and on their copies.
    WORKLOAD_UID = "compute.datumapis.com/workload-uid";
    /// Name of the Workload (`spec.workloadRef.name`); on Instances.
    WORKLOAD_NAME = "compute.datumapis.com/workload-name";
    /// Placement in the Workload (`spec.placementName`); on Instances.
    PLACEMENT_NAME = "compute.datumapis.com/placement-name";
    /// Uid of the WorkloadDeployment **in the cell**; on Instances and their copies.
    WORKLOAD_DEPLOYMENT_UID = "compute.datumapis.com/workload-deployment-uid";
    /// Name of the WorkloadDeployment, the same on every plane; on Instances and their copies.
    WORKLOAD_DEPLOYMENT_NAME = "compute.datumapis.com/workload-deployment-name";
    /// Ordinal of the Instance in its WorkloadDeployment, in decimal.
    INSTANCE_INDEX = "compute.datumapis.com/instance-index";
    /// City code of the WorkloadDeployment (`spec.cityCode`); on Instances. Not the label that policies select by, which is
    /// [`CITY_CODE`].
    INSTANCE_CITY_CODE = "compute.datumapis.com/city-code";

    /// Project whose objects a hub namespace holds, encoded as a label value (`cluster-` and the project id, `/` as `_`);
    /// on hub namespaces and hub copies of Instances.
    UPSTREAM_CLUSTER_NAME = "meta.datumapis.com/upstream-cluster-name";
    /// Namespace in the project that a hub object came from; on hub namespaces, hub WorkloadDeployments and hub copies.
    UPSTREAM_NAMESPACE = "meta.datumapis.com/upstream-namespace";
    /// Group of the owner in milo's anchor scheme. Not written by popcell.
    UPSTREAM_GROUP = "meta.datumapis.com/upstream-group";
    /// Kind of the owner in milo's anchor scheme. Not written by popcell.
    UPSTREAM_KIND = "meta.datumapis.com/upstream-kind";
    /// Name of the owner in milo's anchor scheme. Not written by popcell.
    UPSTREAM_NAME = "meta.datumapis.com/upstream-name";

    /// Name of the Karmada Cluster that the object comes from; on hub copies and on ResourceClaims.
    SOURCE_CLUSTER = "compute.datumapis.com/source-cluster";
    /// Uid of the Instance that a Pod runs; on Pods and NetworkPolicies, by the provider of Pods, which watches those that have it.
    INSTANCE_UID = "compute.datumapis.com/instance-uid";

    /// Namespace of the Instance in its cell; on ResourceClaims.
    INSTANCE_NAMESPACE = "compute.datumapis.com/instance-namespace";

    /// Marks what popcell wrote outside the cell and may therefore delete there: hub Namespaces, hub WorkloadDeployments,
    /// policies, hub copies, projections; see [`MANAGED_BY_POPCELL`].
    MANAGED_BY = "compute.datumapis.com/managed-by";

    /// `"true"` on copies of ConfigMaps and Secrets, and on the hub Namespace that has, or had, some.
    REFERENCED_DATA = "compute.datumapis.com/referenced-data";

    /// Excludes an object from Karmada's policies, so that its detector does not rescan the object at each policy event; on
    /// hub copies, with the value [`CLAIMED_BY_POPCELL`].
    CLAIMED_BY = "resourcetemplate.karmada.io/claimed-by";
    /// Set by Karmada's webhook on policies, and on what they have claimed; never ours to own.
    PROPAGATION_POLICY_PERMANENT_ID = "propagationpolicy.karmada.io/permanent-id";
}

/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_POPCELL: &str = "popcell";
/// The value of [`REFERENCED_DATA`].
pub const REFERENCED_DATA_TRUE: &str = "true";
/// The value of [`CLAIMED_BY`].
pub const CLAIMED_BY_POPCELL: &str = "popcell";

/// On everything of popcell that is installed, such as CRDs, rights and policies: what lacks it belongs to another owner. No
/// object that the program itself writes has it.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The value of [`PART_OF`].
pub const PART_OF_POPCELL: &str = "popcell";
