//! Messages of conditions, to the letter.

// Instance.

/// Of every condition but QuotaGranted before anybody has looked.
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
pub const INSTANCE_MADE_ANEW: &str = "Instance is being made anew";
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

/// Available=False and ReplicasReady=False/NameConflict in a cell: somebody else's object has a name that is needed.
pub fn held_by_another(kind: &str, name: &str) -> String {
    format!("{kind} {name} is held by another owner: delete it, or rename the Workload")
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

#[cfg(test)]
mod tests {
    use super::*;
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
