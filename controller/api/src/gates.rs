//! Scheduling gates: `spec.controller.schedulingGates[].name` of an Instance.

/// The networks of the instance are not ready yet.
pub const NETWORK: &str = "Network";
/// The quota of the instance is not granted yet.
pub const QUOTA: &str = "Quota";
