//! Reasons of conditions. One word means one thing on every kind that uses it.

// WorkloadDeployment: Available, ReplicasReady.

/// Available=True on a WorkloadDeployment: at least one instance is ready.
pub const STABLE_INSTANCE_FOUND: &str = "StableInstanceFound";
/// Available=False on a WorkloadDeployment or a placement: no site serves the city.
pub const NO_MATCHING_LOCATION: &str = "NoMatchingLocation";
/// Available=False on a WorkloadDeployment: the network is not there yet.
pub const PROVISIONING_NETWORK: &str = "ProvisioningNetwork";
/// Available=False on a WorkloadDeployment: instances are on their way.
pub const PROVISIONING_INSTANCES: &str = "ProvisioningInstances";
/// ReplicasReady=False on a WorkloadDeployment: the teardown of an instance does not end.
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
/// ReplicasReady=True.
pub const REPLICAS_AVAILABLE: &str = "ReplicasAvailable";

// Placement of a Workload: Available.

/// Available=True on a placement.
pub const AVAILABLE_DEPLOYMENT_FOUND: &str = "AvailableDeploymentFound";
/// Available=False on a placement.
pub const NO_AVAILABLE_DEPLOYMENTS: &str = "NoAvailableDeployments";

// Workload: Available.

/// Available=True on a Workload.
pub const AVAILABLE_PLACEMENT_FOUND: &str = "AvailablePlacementFound";
/// Available=False on a Workload: no placement is available.
pub const NO_AVAILABLE_PLACEMENTS: &str = "NoAvailablePlacements";
/// Available=False on a Workload: a network that it names does not exist.
pub const NETWORK_NOT_FOUND: &str = "NetworkNotFound";

// Reasons that only a change by the user ends.

/// The city code cannot be one.
pub const INVALID_CITY_CODE: &str = "InvalidCityCode";
/// Another spelling of the city has the policy of that name.
pub const CITY_CODE_CONFLICT: &str = "CityCodeConflict";
/// Another Workload, or another placement, has the WorkloadDeployment of that name.
pub const NAME_CONFLICT: &str = "NameConflict";

// What exceeds a limit of the controller.

/// Available=False where nothing runs, ReplicasReady=False: it nests too deeply, or is too large, and is not carried further.
pub const LIMIT_EXCEEDED: &str = "LimitExceeded";

// What an API server refuses.

/// Available=False, ReplicasReady=False: a server rejects what has to be written; the message has its words.
pub const REJECTED: &str = "Rejected";

// Instance: Ready, Available, Programmed.

/// Nobody has looked yet.
pub const PENDING: &str = "Pending";
/// The provider has not made the instance yet.
pub const PENDING_PROGRAMMING: &str = "PendingProgramming";
/// The provider is making the instance.
pub const PROGRAMMING_IN_PROGRESS: &str = "ProgrammingInProgress";
/// Programmed=True.
pub const PROGRAMMED: &str = "Programmed";
/// Ready=False: something must happen first; the message names it.
pub const SCHEDULING_GATES_PRESENT: &str = "SchedulingGatesPresent";
/// Quota was refused, or is not decided.
pub const PENDING_QUOTA: &str = "PendingQuota";
/// Ready=True, Available=True.
pub const AVAILABLE: &str = "Available";
/// Available=False: it has ended.
pub const STOPPED: &str = "Stopped";
/// Available=False: it is starting.
pub const STARTING: &str = "Starting";
/// Available=False: it is ending.
pub const STOPPING: &str = "Stopping";
/// Available=False: it has failed.
pub const FAILED: &str = "Failed";
/// The provider cannot say.
pub const UNKNOWN: &str = "Unknown";
/// The provider is at work.
pub const PROVISIONING: &str = "Provisioning";
/// The image cannot be pulled: caused by the user's spec.
pub const IMAGE_UNAVAILABLE: &str = "ImageUnavailable";
/// The program exits: caused by the user's spec.
pub const INSTANCE_CRASHING: &str = "InstanceCrashing";
/// The provider refuses the spec: caused by the user's spec.
pub const CONFIGURATION_ERROR: &str = "ConfigurationError";
/// The site could not make the network: a fault of the site, not of the user. Also a reason of NetworkBindings.
pub const NETWORK_FAILED_TO_CREATE: &str = "NetworkFailedToCreate";

// Instance: QuotaGranted. The first four are also reasons of a claim's condition `Granted`.

/// QuotaGranted=Unknown: no decision yet.
pub const PENDING_EVALUATION: &str = "PendingEvaluation";
/// QuotaGranted=True.
pub const QUOTA_AVAILABLE: &str = "QuotaAvailable";
/// Refused: the project's budget is used up. Also ReplicasReady=False on a WorkloadDeployment.
pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// Refused: the claim is wrong.
pub const VALIDATION_FAILED: &str = "ValidationFailed";
/// QuotaGranted=True: nobody enforces quota.
pub const QUOTA_DISABLED: &str = "QuotaDisabled";
/// The project's API server did not answer.
pub const QUOTA_BACKEND_UNAVAILABLE: &str = "QuotaBackendUnavailable";
/// There is no such project.
pub const QUOTA_PROJECT_NOT_FOUND: &str = "QuotaProjectNotFound";
/// The project has no such namespace.
pub const QUOTA_NAMESPACE_NOT_FOUND: &str = "QuotaNamespaceNotFound";
/// The claim could not be made, or another owner holds its name.
pub const QUOTA_MISCONFIGURED: &str = "QuotaMisconfigured";
/// The cell namespace does not say which project it belongs to.
pub const QUOTA_PROJECT_ID_UNRESOLVABLE: &str = "QuotaProjectIDUnresolvable";
/// QuotaGranted=Unknown: nobody has granted the project anything.
pub const QUOTA_NO_BUDGET: &str = "QuotaNoBudget";
