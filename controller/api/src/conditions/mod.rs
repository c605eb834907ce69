//! Types of conditions; their reasons and messages are in the modules below.

pub mod messages;
pub mod reasons;

/// On Workloads, their placements, WorkloadDeployments and Instances: it serves. `kubectl wait --for=condition=Available`
/// works on every kind.
pub const AVAILABLE: &str = "Available";
/// On a WorkloadDeployment: every desired replica is available.
pub const REPLICAS_READY: &str = "ReplicasReady";
/// On an Instance: all that it needs is there, and it is available.
pub const READY: &str = "Ready";
/// On an Instance: the provider has made it.
pub const PROGRAMMED: &str = "Programmed";
/// On an Instance: its quota is granted.
pub const QUOTA_GRANTED: &str = "QuotaGranted";
