//! Types of conditions, their reasons and messages; and reasons of events.

/// On Workloads, their placements, WorkloadDeployments and Instances: it serves. `kubectl wait --for=condition=Available`
/// works on every kind.
pub const AVAILABLE: &str = "Available";
/// On a WorkloadDeployment: every desired replica is available.
pub const REPLICAS_READY: &str = "ReplicasReady";
/// On a WorkloadDeployment with `maxReplicas`, or with `spec.replicas`, in its cell: an autoscaler works on it.
pub const AUTOSCALING: &str = "Autoscaling";
/// On an Instance: all that it needs is there, and it is available.
pub const READY: &str = "Ready";
/// On an Instance: the provider has made it.
pub const PROGRAMMED: &str = "Programmed";
/// On an Instance: its quota is granted.
pub const QUOTA_GRANTED: &str = "QuotaGranted";
/// On a Workload or WorkloadDeployment, type and reason, always True: fields are set that popcell accepts without doing all that
/// they ask for. It is there while they are set.
pub const UNSUPPORTED_FIELDS: &str = "UnsupportedFields";

/// Reasons of conditions. One word means one thing on every kind that uses it.
pub mod reasons {
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

    // WorkloadDeployment: Autoscaling.

    /// Autoscaling=True: the cell has a HorizontalPodAutoscaler for it.
    pub const AUTOSCALER_CREATED: &str = "AutoscalerCreated";
    /// Autoscaling=Unknown: the HorizontalPodAutoscalers of the cell are not known.
    pub const AUTOSCALERS_UNKNOWN: &str = "AutoscalersUnknown";
    /// Autoscaling=False: a metric has a target that a HorizontalPodAutoscaler does not take.
    pub const UNSUPPORTED_METRIC: &str = "UnsupportedMetric";
    /// Autoscaling=False: `spec.replicas` asks for a number, and there is no room above `minReplicas`.
    pub const REPLICAS_IGNORED: &str = "ReplicasIgnored";

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
    /// Available=False on a Workload: a network that it names does not exist. Ready=False on an Instance: its network is not
    /// in its city. Also a reason of NetworkBindings.
    pub const NETWORK_NOT_FOUND: &str = "NetworkNotFound";

    /// Available=False where nothing runs, ReplicasReady=False: the catalogue does not have the instance type.
    pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";

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

    /// Not reconciled yet.
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
    /// Ready=False on an Instance, Available=False or ReplicasReady=False on a WorkloadDeployment: a ConfigMap or Secret that the
    /// template names is not in the city, or not as it was when the template changed.
    pub const REFERENCED_DATA_NOT_READY: &str = "ReferencedDataNotReady";
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
    /// QuotaGranted=True: quota is not enforced.
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
    /// QuotaGranted=Unknown: the project has no grant.
    pub const QUOTA_NO_BUDGET: &str = "QuotaNoBudget";
}

/// Messages of conditions, to the letter.
pub mod messages {
    // Instance.

    /// Of every condition but QuotaGranted before the first reconcile.
    pub const WAITING_FOR_CONTROLLER: &str = "Waiting for controller";
    /// QuotaGranted before a decision.
    pub const WAITING_FOR_QUOTA_EVALUATION: &str = "Waiting for quota evaluation";
    /// QuotaGranted=Unknown/QuotaNoBudget.
    pub const NO_ALLOWANCE_BUCKET: &str = "ResourceClaim is pending: no AllowanceBucket configured for this project";
    /// QuotaGranted=True/QuotaDisabled.
    pub const QUOTA_ENFORCEMENT_DISABLED: &str = "Quota enforcement disabled: no credential configured";
    /// Ready=False/PendingProgramming.
    pub const INSTANCE_NOT_PROGRAMMED: &str = "Instance has not been programmed";
    /// Programmed=True.
    pub const INSTANCE_PROGRAMMED: &str = "Instance has been programmed";
    /// Available=True.
    pub const INSTANCE_AVAILABLE: &str = "Instance is available";
    /// Ready=False/Pending, once the instance is programmed.
    pub const INSTANCE_NOT_AVAILABLE: &str = "Instance is not available";
    /// Ready=False/Pending on the hub copy of a slot whose Instance is deleted and whose next one does not exist yet.
    pub const INSTANCE_MADE_ANEW: &str = "Instance is being recreated";
    /// Ready=True.
    pub const INSTANCE_READY: &str = "Instance is ready";

    /// Ready=False/SchedulingGatesPresent.
    pub fn scheduling_gates_present(gates: &[&str]) -> String {
        format!("Scheduling gates present: {}", gates.join(", "))
    }

    // WorkloadDeployment.

    /// Available=True/StableInstanceFound.
    pub fn instances_ready(ready: i32, replicas: i32) -> String {
        format!("{ready}/{replicas} instances are ready")
    }

    /// Available=False/NoMatchingLocation.
    pub fn no_matching_location(city_code: &str) -> String {
        format!("No Location matches city code \"{city_code}\"")
    }

    /// Available=False/ProvisioningNetwork.
    pub const NETWORK_BEING_PROVISIONED: &str = "Network is being provisioned";
    /// Available=False/ProvisioningInstances.
    pub const INSTANCES_BEING_PROVISIONED: &str = "Instances are being provisioned";

    /// Available=False/ProvisioningInstances while a new WorkloadDeployment has no status from its city.
    pub fn waiting_for_city(city_code: &str) -> String {
        format!("Waiting for city {city_code}")
    }

    /// ReplicasReady=False/QuotaExceeded.
    pub fn replicas_pending_quota(pending: i32, desired: i32) -> String {
        format!("{pending} of {desired} desired replicas are pending quota")
    }

    /// Available=False and ReplicasReady=False/NameConflict in a cell: another client's object has a name that is needed.
    pub fn held_by_another(kind: &str, name: &str) -> String {
        format!("{kind} {name} is held by another owner: delete it, or rename the Workload")
    }

    /// ReplicasReady=False/NameConflict in a project: on the hub, another client's object has the name of a copy.
    pub fn held_on_the_hub(kind: &str, name: &str) -> String {
        format!("{kind} {name} is held by another owner on the platform: have an operator delete it there")
    }

    /// Ready=False/NetworkNotFound on an Instance.
    pub fn network_not_in_city(name: &str, city_code: &str) -> String {
        format!("Network {name} is not in city {city_code}")
    }

    /// Ready=False/NetworkNotFound on an Instance whose cell does not serve the kinds of networks.
    pub fn network_not_served(name: &str, city_code: &str) -> String {
        format!("Network {name} is not served in city {city_code}")
    }

    /// Ready=False/NetworkNotFound on an Instance whose template names a Network of another namespace.
    pub fn network_elsewhere(namespace: &str, name: &str, city_code: &str) -> String {
        format!(
            "Network {namespace}/{name} is not carried to city {city_code}: name a Network of the Workload's own namespace"
        )
    }

    /// ReferencedDataNotReady: `kind` is ConfigMap or Secret.
    pub fn data_not_in_city(kind: &str, name: &str, city_code: &str) -> String {
        format!("{kind} {name} is not in city {city_code}")
    }

    /// ReferencedDataNotReady: all are there, and one is older than the WorkloadDeployment.
    pub fn data_on_its_way(city_code: &str) -> String {
        format!("ConfigMaps and Secrets are on their way to city {city_code}")
    }

    /// ReferencedDataNotReady: another client's object of this name is where the project's is to be.
    pub fn data_held_in_city(kind: &str, name: &str, city_code: &str) -> String {
        format!("{kind} {name} is held by another owner in city {city_code}: have an operator delete it there")
    }

    /// ReferencedDataNotReady: the city's controller may not read it.
    pub fn data_unreadable_in_city(kind: &str, name: &str, city_code: &str) -> String {
        format!("{kind} {name} cannot be read in city {city_code}: the city's controller has no right to")
    }

    /// ReferencedDataNotReady: the template names more than are read.
    pub fn too_much_data(named: usize, most: usize) -> String {
        format!("the template names {named} ConfigMaps and Secrets, the limit is {most}: name fewer")
    }

    /// ReferencedDataNotReady: no ConfigMap or Secret of the Workload can be carried.
    pub const NO_ACCESS_TO_DATA: &str =
        "ConfigMaps and Secrets cannot be carried: the platform gives the controller no right to; tell an operator";

    /// ReferencedDataNotReady: the project has none of this name.
    pub fn data_not_found(kind: &str, name: &str) -> String {
        format!("{kind} {name} does not exist in the namespace of the Workload")
    }

    /// ReferencedDataNotReady: the project gives the controller no right to read it.
    pub fn data_not_readable(kind: &str, name: &str) -> String {
        format!("{kind} {name} cannot be read: the project gives the controller no right to")
    }

    /// Autoscaling=True/AutoscalerCreated.
    pub fn scales_between(name: &str, least: i64, most: i64) -> String {
        format!("HorizontalPodAutoscaler {name} scales between {least} and {most} instances")
    }

    /// Autoscaling=Unknown/AutoscalersUnknown.
    pub const AUTOSCALERS_UNKNOWN: &str = "The cell does not serve HorizontalPodAutoscalers of autoscaling/v2, denies them, or \
        they are not listed yet: the number of instances stays as it is";

    /// Autoscaling=False/UnsupportedMetric.
    pub fn unsupported_metric(index: usize) -> String {
        format!("metrics[{index}] needs averageUtilization or averageValue: a resource metric has no other target")
    }

    /// Autoscaling=False/ReplicasIgnored.
    pub fn replicas_ignored(asked: i64, least: i64) -> String {
        format!("spec.replicas {asked} is ignored: maxReplicas is not above minReplicas {least}")
    }

    /// ReplicasReady=True/ReplicasAvailable.
    pub fn replicas_available(available: i32, desired: i32) -> String {
        format!("{available}/{desired} replicas available")
    }

    /// ReplicasReady=False/InstanceTerminating; `since` is RFC 3339.
    pub fn being_torn_down(instance: &str, since: &str) -> String {
        format!("Instance {instance} is being torn down since {since}")
    }

    // Placement and Workload.

    /// Available=True/AvailableDeploymentFound on a placement.
    pub const AVAILABLE_DEPLOYMENT_FOUND: &str = "At least one available deployment was found";
    /// Available=False/NoAvailableDeployments on a placement.
    pub const NO_AVAILABLE_DEPLOYMENTS: &str = "No available deployments were found for the placement";
    /// Available=True/AvailablePlacementFound on a Workload.
    pub const AVAILABLE_PLACEMENT_FOUND: &str = "At least one available placement was found";
    /// Available=False/NoAvailablePlacements on a Workload.
    pub const NO_AVAILABLE_PLACEMENTS: &str = "No available placements were found for the workload";

    /// Available=False/NetworkNotFound on a Workload. The caller sorts the names, so that the message stands still.
    pub fn networks_not_found(names: &[&str]) -> String {
        format!("Unable to find networks: {}", names.join(", "))
    }
}

/// Reasons of events: of Warnings on Instances, of those on whatever has a status, and of those on our Lease.
pub mod events {
    use super::reasons;

    /// A claim lay in a project that its Namespace in the cell does not name, and is deleted.
    pub const QUOTA_CLAIM_ORPHANED: &str = "QuotaClaimOrphaned";

    /// Failures of quota: reasons of the condition `QuotaGranted` that are also events.
    pub const QUOTA_FAILURES: [&str; 6] = [
        reasons::QUOTA_BACKEND_UNAVAILABLE,
        reasons::QUOTA_PROJECT_NOT_FOUND,
        reasons::QUOTA_NAMESPACE_NOT_FOUND,
        reasons::QUOTA_MISCONFIGURED,
        reasons::QUOTA_PROJECT_ID_UNRESOLVABLE,
        reasons::QUOTA_NO_BUDGET,
    ];

    /// Reasons of the condition `Ready` that become an event when the instance gets to them.
    pub const STUCK: [&str; 4] = [
        reasons::IMAGE_UNAVAILABLE,
        reasons::INSTANCE_CRASHING,
        reasons::CONFIGURATION_ERROR,
        reasons::NETWORK_FAILED_TO_CREATE,
    ];

    /// A server rejects the status of the object, so that its conditions are not what they should be.
    pub const STATUS_REJECTED: &str = "StatusRejected";

    /// On our Lease: the deletion guard holds back a mass deletion.
    pub const MASS_DELETE_HELD: &str = "MassDeleteHeld";
    /// On our Lease: it opened by itself.
    pub const MASS_DELETE_RECOVERED: &str = "MassDeleteRecovered";
    /// On our Lease: it was opened by the annotation.
    pub const MASS_DELETE_RELEASED: &str = "MassDeleteReleased";
    /// On our Lease: the annotation names nothing that is held.
    pub const MASS_DELETE_UNRELEASED: &str = "MassDeleteUnreleased";
}

#[cfg(test)]
mod tests {
    use super::messages::*;
    use crate::gates;

    #[test]
    fn messages_with_parts_are_those_of_the_texts() {
        for (message, expected) in [
            (
                scheduling_gates_present(&[gates::NETWORK, gates::QUOTA]),
                "Scheduling gates present: Network, Quota",
            ),
            (instances_ready(1, 2), "1/2 instances are ready"),
            (no_matching_location("X"), r#"No Location matches city code "X""#),
            (waiting_for_city("DFW"), "Waiting for city DFW"),
            (
                replicas_pending_quota(1, 3),
                "1 of 3 desired replicas are pending quota",
            ),
            (replicas_available(2, 2), "2/2 replicas available"),
            (
                held_by_another("Instance", "web-1"),
                "Instance web-1 is held by another owner: delete it, or rename the Workload",
            ),
            (networks_not_found(&["a", "b"]), "Unable to find networks: a, b"),
        ] {
            assert_eq!(message, expected);
        }
    }
}
