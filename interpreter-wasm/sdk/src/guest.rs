//! The component's exports: a module as the interface text wants it. Only in WebAssembly.
//!
//! Nothing is decided here: every function finds the kind, reads the objects and calls what native tests call. What was
//! read is never freed: the instance lives for this one call, and taking an object apart costs as much as reading it.

use self::bindings::exports::popcell::interpreter::operations as wit;
use crate::module::{Aggregation, Change, Functions, ModuleDef, OBSERVED_BASE, TargetDef, status_base};
use crate::types::PatchOp;
use crate::{
    Component, Dependency, Error, Health, Json, NodeClaim, Object, Operation, Replicas, Requirements, Result,
    StatusItem,
};

/// What wit-bindgen makes of the interface text.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "interpreter",
        pub_export_macro: true,
        export_macro_name: "export_operations",
        default_bindings_module: "popcell_sdk::guest::bindings",
    });
}

/// Where the exports find the module; `export_interpreters!` implements it.
pub trait Provider {
    /// The module.
    fn module() -> ModuleDef;
}

/// Exports the module that the function returns.
#[doc(hidden)]
#[macro_export]
macro_rules! export_component {
    ($module:path) => {
        const _: () = {
            struct Exported;
            impl $crate::guest::Provider for Exported {
                fn module() -> $crate::ModuleDef {
                    $module()
                }
            }
    $crate::guest::bindings::export_operations!(Exported with_types_in $crate::guest::bindings);
        };
    };
}

impl<P: Provider> wit::Guest for P {
    fn describe() -> wit::Description {
        P::module().into()
    }

    fn interpret_replica(kind: wit::Gvk, object: Vec<u8>) -> Result<wit::Replicas, wit::Error> {
        Ok((functions::<P>(&kind)?.replicas)(read(object)?)?.into())
    }

    fn interpret_component(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<wit::Component>, wit::Error> {
        let components = (functions::<P>(&kind)?.components)(read(object)?)?;
        Ok(components.into_iter().map(Into::into).collect())
    }

    fn revise_replica(kind: wit::Gvk, object: Vec<u8>, replicas: i32) -> Result<wit::Change, wit::Error> {
        Ok(functions::<P>(&kind)?.revised(read(object)?, replicas)?.into())
    }

    fn retain(kind: wit::Gvk, desired: Vec<u8>, observed: Vec<u8>) -> Result<wit::Change, wit::Error> {
        let observed = read_at(observed, OBSERVED_BASE)?;
        Ok(functions::<P>(&kind)?.retained(read(desired)?, observed)?.into())
    }

    fn aggregate_status(
        kind: wit::Gvk,
        object: Vec<u8>,
        items: Vec<wit::StatusItem>,
    ) -> Result<wit::Aggregation, wit::Error> {
        let items: Vec<_> = items.into_iter().enumerate().map(status_item).collect::<Result<_>>()?;
        Ok(functions::<P>(&kind)?.aggregated(read(object)?, items.leak())?.into())
    }

    fn interpret_status(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<u8>, wit::Error> {
        let status = (functions::<P>(&kind)?.status)(read(object)?)?;
        Ok(status.to_text().into_bytes())
    }

    fn interpret_health(kind: wit::Gvk, object: Vec<u8>) -> Result<bool, wit::Error> {
        Ok((functions::<P>(&kind)?.health)(read(object)?)?)
    }

    fn interpret_dependency(kind: wit::Gvk, object: Vec<u8>) -> Result<Vec<wit::Dependency>, wit::Error> {
        let dependencies = (functions::<P>(&kind)?.dependencies)(read(object)?)?;
        Ok(dependencies.into_iter().map(Into::into).collect())
    }
}

fn functions<P: Provider>(kind: &wit::Gvk) -> Result<Functions> {
    let target = P::module()
        .target(&kind.group, &kind.version, &kind.kind)
        .ok_or(Error::Unsupported)?;
    Ok(target.functions)
}

fn read(object: Vec<u8>) -> Result<&'static Object> {
    read_at(object, "")
}

fn read_at(object: Vec<u8>, base: &str) -> Result<&'static Object> {
    Ok(Box::leak(Box::new(Json::parse_at(object, base)?.try_into()?)))
}

fn status_item((position, item): (usize, wit::StatusItem)) -> Result<StatusItem> {
    let status = item.status.map(|status| Json::parse_at(status, &status_base(position)));
    Ok(StatusItem {
        cluster_name: item.cluster_name,
        status: status.transpose()?,
        applied: item.applied,
        applied_message: item.applied_message,
        health: item.health.map(Into::into),
    })
}

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
