//! Karmada's operations on the command line, and what Karmada does without each of them.

use popcell_protocol::Operation;

/// Reads an operation in any case, as Karmada's own tools do.
pub fn parse(text: &str) -> Result<Operation, String> {
    text.parse()
        .map_err(|error: popcell_protocol::UnknownOperation| error.to_string())
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
