//! Between the SDK's types and those of the interface text, field by field.

use super::wit;
use crate::module::{Aggregation, Change, ModuleDef, TargetDef};
use crate::types::PatchOp;
use crate::{Component, Dependency, Error, Health, Json, NodeClaim, Operation, Replicas, Requirements};

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidObject { path, message } => Self::InvalidObject(wit::InvalidObject { path, message }),
            Error::Undecided(reason) => Self::Undecided(reason),
            Error::Unsupported => Self::Unsupported,
            Error::Failed(message) => Self::Failed(message),
        }
    }
}

impl From<ModuleDef> for wit::Description {
    fn from(module: ModuleDef) -> Self {
        let targets = module.targets.iter().map(Into::into).collect();
        Self {
            name: module.name.to_owned(),
            version: module.version.to_owned(),
            targets,
        }
    }
}

impl From<&TargetDef> for wit::Target {
    fn from(target: &TargetDef) -> Self {
        let kind = wit::Gvk {
            group: target.group.to_owned(),
            version: target.version.to_owned(),
            kind: target.kind.to_owned(),
        };
        let operations = target
            .operations
            .iter()
            .map(|implemented| wit::Implemented {
                operation: implemented.operation.into(),
                register: implemented.register,
            })
            .collect();
        Self { kind, operations }
    }
}

impl From<Operation> for wit::Operation {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::InterpretReplica => Self::InterpretReplica,
            Operation::InterpretComponent => Self::InterpretComponent,
            Operation::ReviseReplica => Self::ReviseReplica,
            Operation::Retain => Self::Retain,
            Operation::AggregateStatus => Self::AggregateStatus,
            Operation::InterpretStatus => Self::InterpretStatus,
            Operation::InterpretHealth => Self::InterpretHealth,
            Operation::InterpretDependency => Self::InterpretDependency,
        }
    }
}

impl From<wit::Health> for Health {
    fn from(health: wit::Health) -> Self {
        match health {
            wit::Health::Healthy => Self::Healthy,
            wit::Health::Unhealthy => Self::Unhealthy,
            wit::Health::Unknown => Self::Unknown,
        }
    }
}

impl From<Replicas> for wit::Replicas {
    fn from(replicas: Replicas) -> Self {
        Self {
            replicas: replicas.replicas,
            requirements: replicas.requirements.map(Into::into),
        }
    }
}

impl From<Requirements> for wit::Requirements {
    fn from(requirements: Requirements) -> Self {
        let quantities = requirements.resource_request.into_iter();
        Self {
            node_claim: requirements.node_claim.map(Into::into),
            resource_request: quantities
                .map(|(name, quantity)| (name, quantity.to_string()))
                .collect(),
            namespace: requirements.namespace,
            priority_class_name: requirements.priority_class_name,
        }
    }
}

impl From<NodeClaim> for wit::NodeClaim {
    fn from(claim: NodeClaim) -> Self {
        Self {
            hard_node_affinity: claim.hard_node_affinity.as_ref().map(bytes),
            node_selector: claim.node_selector.into_iter().collect(),
            tolerations: claim.tolerations.iter().map(bytes).collect(),
        }
    }
}

impl From<Component> for wit::Component {
    fn from(component: Component) -> Self {
        Self {
            name: component.name,
            replicas: component.replicas,
            requirements: component.requirements.map(Into::into),
        }
    }
}

impl From<Dependency> for wit::Dependency {
    fn from(dependency: Dependency) -> Self {
        Self {
            api_version: dependency.api_version,
            kind: dependency.kind,
            namespace: dependency.namespace,
            name: dependency.name,
            label_selector: dependency.label_selector.as_ref().map(bytes),
        }
    }
}

impl From<Change> for wit::Change {
    fn from(change: Change) -> Self {
        match change {
            Change::Unchanged => Self::Unchanged,
            Change::Patch(patch) => Self::Patch(patch.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<Aggregation> for wit::Aggregation {
    fn from(aggregation: Aggregation) -> Self {
        Self {
            change: aggregation.change.into(),
            left_out: aggregation.left_out,
        }
    }
}

impl From<PatchOp> for wit::PatchOp {
    fn from(step: PatchOp) -> Self {
        match step {
            PatchOp::Add { path, value } => Self::Add(wit::PathValue {
                path,
                value: bytes(&value),
            }),
            PatchOp::Replace { path, value } => Self::Replace(wit::PathValue {
                path,
                value: bytes(&value),
            }),
            PatchOp::Remove { path } => Self::Remove(path),
        }
    }
}

fn bytes(value: &Json) -> Vec<u8> {
    value.to_text().into_bytes()
}
