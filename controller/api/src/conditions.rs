//! Condition types and reasons of a WorkloadDeployment.

/// At least one instance is ready: the deployment serves.
pub const AVAILABLE: &str = "Available";

/// Every desired replica is available.
pub const REPLICAS_READY: &str = "ReplicasReady";

/// Reasons of [`AVAILABLE`] and [`REPLICAS_READY`].
pub mod reasons {
    /// Available=True.
    pub const STABLE_INSTANCE_FOUND: &str = "StableInstanceFound";
    /// Available=False: no site carries the city code.
    pub const NO_MATCHING_LOCATION: &str = "NoMatchingLocation";
    /// Available=False: the network is not there yet.
    pub const PROVISIONING_NETWORK: &str = "ProvisioningNetwork";
    /// Available=False: instances are on their way.
    pub const PROVISIONING_INSTANCES: &str = "ProvisioningInstances";
    /// ReplicasReady=True.
    pub const REPLICAS_AVAILABLE: &str = "ReplicasAvailable";
    /// Some replicas wait for quota that was refused.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// Some replicas wait for a decision about quota.
    pub const PENDING_QUOTA: &str = "PendingQuota";
    /// The site could not make the network: a fault of the site, not of the user.
    pub const NETWORK_FAILED_TO_CREATE: &str = "NetworkFailedToCreate";
    /// The image cannot be pulled: caused by the user's spec.
    pub const IMAGE_UNAVAILABLE: &str = "ImageUnavailable";
    /// The program exits: caused by the user's spec.
    pub const INSTANCE_CRASHING: &str = "InstanceCrashing";
    /// The provider refuses the spec: caused by the user's spec.
    pub const CONFIGURATION_ERROR: &str = "ConfigurationError";
}
