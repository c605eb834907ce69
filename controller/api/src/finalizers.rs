//! Finalizers. popcell sets none on Instances: one that waits for a remote plane would keep a slot occupied while that
//! plane is unreachable. Copies and claims are deleted afterwards, from what then exists.

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
