//! Fixed names and the fixed parts of derived ones.
//!
//! Whole derived names are made in the core, where their limits are checked.

/// A hub namespace is this and the uid of the project's Namespace; the cell's has the same name.
pub const HUB_NAMESPACE_PREFIX: &str = "ns-";
/// The ResourceQuota in each hub namespace.
pub const HUB_QUOTA: &str = "popcell-hub";
/// A policy is this and the city code in lower case, with `-` for spaces.
pub const CITY_POLICY_PREFIX: &str = "city-";
/// A ResourceClaim is this and the name of the Instance.
pub const RESOURCE_CLAIM_PREFIX: &str = "instance-";
/// A NetworkBinding is the WorkloadDeployment, this, and the index of the interface.
pub const NETWORK_BINDING_INFIX: &str = "-net-";
/// A SubnetClaim is the NetworkContext and this.
pub const SUBNET_CLAIM_SUFFIX: &str = "-0";

/// A project as a label value is this and its name with `_` for `/`.
pub const PROJECT_LABEL_PREFIX: &str = "cluster-";
/// The project in discovery mode `single`.
pub const SINGLE: &str = "single";

/// Name of the Lease.
pub const LEASE: &str = "e98b06c6.datumapis.com";
/// ConfigMap in a cell, in the program's namespace: projects that may hold claims of the cell.
pub const CLAIM_PROJECTS: &str = "popcell-claim-projects";
/// ConfigMap in the program's namespace that a person makes to release the deletion guard of a program without a Lease.
pub const DELETION_GUARD: &str = "popcell-deletion-guard";
/// ConfigMap in the hub, in the program's namespace: cells whose Cluster is absent or another one's, and since when.
pub const ABSENT_CELLS: &str = "popcell-absent-cells";
/// ConfigMap in the hub, in the program's namespace: cells that `popcell cell remove` has declared gone.
pub const REMOVED_CELLS: &str = "popcell-removed-cells";

/// Finalizers. popcell sets none on Instances: one that waits for a remote plane would keep a slot occupied while that
/// plane is unreachable. Copies and claims are deleted afterwards, from what then exists.
pub mod finalizers {
    /// On project Workloads and on cell WorkloadDeployments, each set and removed by its own reconciler. In single-cluster
    /// mode one WorkloadDeployment carries it beside [`FEDERATOR`].
    pub const WORKLOAD_CONTROLLER: &str = "compute.datumapis.com/workload-controller";
    /// On project WorkloadDeployments.
    pub const FEDERATOR: &str = "compute.datumapis.com/federator";

    /// On cell Instances, by upstream's operator. popcell never sets it and takes it away where it meets it.
    pub const UPSTREAM_INSTANCE_CONTROLLER: &str = "compute.datumapis.com/instance-controller";
    /// On cell Instances, by upstream's operator. popcell never sets it and takes it away where it meets it.
    pub const UPSTREAM_CLAIM_CLEANUP: &str = "quota.compute.datumapis.com/claim-cleanup";

    /// On cell Instances, by the unikraft provider: it has something to tear down.
    pub const UNIKRAFT_PROVIDER: &str = "unikraft.datumapis.com/finalizer";
}
