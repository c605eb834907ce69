//! Words of other owners' APIs that decisions depend on. Their objects are read and written as text and JSON, so that no field of a
//! newer release is lost.

/// Karmada v1.18.
pub mod karmada {
    /// `spec.conflictResolution` of a policy: an existing object in the member that Karmada does not manage is not changed.
    pub const CONFLICT_RESOLUTION_ABORT: &str = "Abort";
    /// `spreadByField` of a policy: a spread over clusters.
    pub const SPREAD_BY_CLUSTER: &str = "cluster";

    /// Condition of a ResourceBinding: Karmada has placed the object.
    pub const SCHEDULED: &str = "Scheduled";
    /// Reason of [`SCHEDULED`] = False: no cluster fits. Karmada then takes all clusters out of the binding.
    pub const NO_CLUSTER_FIT: &str = "NoClusterFit";
}

/// The network services.
///
/// Location and LocationBinding are namespaced on some servers and cluster-scoped on others, and so are references to
/// Locations.
pub mod networking {
    /// API group.
    pub const GROUP: &str = "networking.datumapis.com";
    /// Version.
    pub const VERSION: &str = "v1alpha";
    /// The class of the SubnetClaims that the cell makes.
    pub const SUBNET_CLASS_PRIVATE: &str = "private";
    /// The only family of addresses that the cell asks for.
    pub const IP_FAMILY_IPV4: &str = "IPv4";
}

/// Milo's resource manager.
pub mod resource_manager {
    /// API group. Claims name their project by it.
    pub const GROUP: &str = "resourcemanager.miloapis.com";
    /// Version.
    pub const VERSION: &str = "v1alpha1";
    /// Kind of projects. Claims name their project by it.
    pub const PROJECT_KIND: &str = "Project";
}
