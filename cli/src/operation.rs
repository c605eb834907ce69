//! Karmada's operations on the command line, and what Karmada does without each of them.

use popcell_protocol::Operation;
use popcell_sdk as sdk;

/// Reads an operation in any case, as Karmada's own tools do.
pub fn parse(text: &str) -> Result<Operation, String> {
    text.parse()
        .map_err(|error: popcell_protocol::UnknownOperation| error.to_string())
}

/// The host's name of a module author's operation.
pub fn of_sdk(operation: sdk::Operation) -> Operation {
    match operation {
        sdk::Operation::InterpretReplica => Operation::InterpretReplica,
        sdk::Operation::InterpretComponent => Operation::InterpretComponent,
        sdk::Operation::ReviseReplica => Operation::ReviseReplica,
        sdk::Operation::Retain => Operation::Retain,
        sdk::Operation::AggregateStatus => Operation::AggregateStatus,
        sdk::Operation::InterpretStatus => Operation::InterpretStatus,
        sdk::Operation::InterpretHealth => Operation::InterpretHealth,
        sdk::Operation::InterpretDependency => Operation::InterpretDependency,
    }
}

/// The module author's name of the host's operation.
pub fn to_sdk(operation: Operation) -> sdk::Operation {
    match operation {
        Operation::InterpretReplica => sdk::Operation::InterpretReplica,
        Operation::InterpretComponent => sdk::Operation::InterpretComponent,
        Operation::ReviseReplica => sdk::Operation::ReviseReplica,
        Operation::Retain => sdk::Operation::Retain,
        Operation::AggregateStatus => sdk::Operation::AggregateStatus,
        Operation::InterpretStatus => sdk::Operation::InterpretStatus,
        Operation::InterpretHealth => sdk::Operation::InterpretHealth,
        Operation::InterpretDependency => sdk::Operation::InterpretDependency,
    }
}

/// What Karmada v1.18 does with a custom kind that lacks the operation.
pub fn without(operation: Operation) -> &'static str {
    match operation {
        Operation::InterpretReplica => {
            "replicas are 0 to Karmada: no division of replicas among clusters, no resource-aware scheduling, no quota by replicas"
        }
        Operation::InterpretComponent => {
            "objects with several pod templates are scheduled without their components (feature gate MultiplePodTemplatesScheduling)"
        }
        Operation::ReviseReplica => {
            "every cluster gets the template's own replicas: divided replicas are not written into the object"
        }
        Operation::Retain => "fields that the member cluster owns are overwritten at every apply",
        Operation::AggregateStatus => "status of the template on the hub is never set from the clusters",
        Operation::InterpretStatus => {
            "the whole status is reflected as it is, without the generations that observedGeneration needs"
        }
        Operation::InterpretHealth => "application failover is off, and every applied object counts as healthy",
        Operation::InterpretDependency => {
            "propagateDeps finds nothing: ConfigMaps, Secrets and the like do not follow the object"
        }
    }
}
