//! A module as data: who it is, and the functions behind each kind. The guest glue and the native runner both call it,
//! so that a module behaves the same in WebAssembly and in `cargo test`.

use crate::diff::diff;
pub use crate::types::{Aggregation, Change, Output};
use crate::types::{Description, Gvk, Implemented, Target};
use crate::{Component, Dependency, Error, Interpreter, Json, Object, Operation, Replicas, Result, StatusItem};

/// Where the paths of errors in the observed object of Retain begin, so that they name one of the two objects.
pub const OBSERVED_BASE: &str = "/observedObject";

/// Where the paths of errors in the status of an item begin: its place in Karmada's request.
pub fn status_base(position: usize) -> String {
    format!("/aggregatedStatus/{position}/status")
}

/// A module: made by `#[interpreter]` or `export_interpreters!` as the function `module` of the crate.
#[derive(Debug, Clone, Copy)]
pub struct ModuleDef {
    /// Package name of the module's crate.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its kinds.
    pub targets: &'static [TargetDef],
}

/// Makes the crate a module of several kinds.
///
/// Each kind carries `#[interpreter(.., export = false)]`, because otherwise each of them would be a module of its own;
/// then, once, at the root of the crate:
///
/// ```
/// # use popcell_sdk::prelude::*;
/// # struct Widget;
/// # #[interpreter(api_version = "example.io/v1", kind = "Widget", export = false)]
/// # impl Interpreter for Widget {}
/// # struct Gadget;
/// # #[interpreter(api_version = "example.io/v1", kind = "Gadget", export = false)]
/// # impl Interpreter for Gadget {}
/// export_interpreters!(Widget, Gadget);
/// # fn main() { assert_eq!(module().targets.len(), 2); }
/// ```
///
/// It defines `pub fn module() -> popcell_sdk::ModuleDef` for tests and, in WebAssembly, the exports of the component.
#[macro_export]
macro_rules! export_interpreters {
    ($($kind:ty),+ $(,)?) => {
        /// The module as data, for tests.
        pub fn module() -> $crate::ModuleDef {
            const TARGETS: &[$crate::module::TargetDef] = &[$(<$kind as $crate::module::Kind>::TARGET),+];
            $crate::ModuleDef { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION"), targets: TARGETS }
        }
        $crate::export_component!(module);
    };
}

/// Exports the module that the function returns; nothing outside WebAssembly.
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_component {
    ($module:path) => {};
}

/// One kind of a module.
#[derive(Debug, Clone, Copy)]
pub struct TargetDef {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version inside the group.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The operations that are written.
    pub operations: &'static [Implemented],
    /// The functions behind them.
    pub functions: Functions,
}

/// What `#[interpreter]` knows of an implementation of [`Interpreter`].
pub trait Kind: Interpreter {
    /// The kind, its operations and its functions.
    const TARGET: TargetDef;
}

/// The functions of one kind. Those that are not written answer [`Error::Unsupported`].
#[derive(Debug, Clone, Copy)]
#[expect(
    missing_docs,
    reason = "each field is documented as the function of the trait with the same name"
)]
pub struct Functions {
    pub replicas: fn(&Object) -> Result<Replicas>,
    pub components: fn(&Object) -> Result<Vec<Component>>,
    pub revise: fn(&mut Object, i32) -> Result<()>,
    pub retain: fn(&mut Object, &Object) -> Result<()>,
    pub aggregate: fn(&mut Object, &[StatusItem]) -> Result<()>,
    pub status: fn(&Object) -> Result<Json>,
    pub health: fn(&Object) -> Result<bool>,
    pub dependencies: fn(&Object) -> Result<Vec<Dependency>>,
}

impl Functions {
    /// The functions of `T`.
    pub const fn of<T: Interpreter>() -> Self {
        Self {
            replicas: T::replicas,
            components: T::components,
            revise: T::revise,
            retain: T::retain,
            aggregate: T::aggregate,
            status: T::status,
            health: T::health,
            dependencies: T::dependencies,
        }
    }

    /// The patch that ReviseReplica makes of `object`.
    pub fn revised(&self, object: &Object, replicas: i32) -> Result<Change> {
        change(object, |object| (self.revise)(object, replicas))
    }

    /// The patch that Retain makes of `desired`.
    pub fn retained(&self, desired: &Object, observed: &Object) -> Result<Change> {
        change(desired, |desired| (self.retain)(desired, observed))
    }

    /// The patch that AggregateStatus makes of `object`, and what it says to have left out.
    pub fn aggregated(&self, object: &Object, items: &[StatusItem]) -> Result<Aggregation> {
        let mut left_out = 0;
        let change = change(object, |object| {
            (self.aggregate)(object, items)?;
            left_out = object.left_out();
            Ok(())
        })?;
        Ok(Aggregation { change, left_out })
    }
}

/// One question to a module.
#[derive(Debug, Clone)]
pub struct Input {
    /// The kind of the object.
    pub kind: Gvk,
    /// The object; for Retain the desired one.
    pub object: Object,
    /// The member's object; only for Retain.
    pub observed: Option<Object>,
    /// Only for ReviseReplica.
    pub replicas: i32,
    /// Only for AggregateStatus.
    pub items: Vec<StatusItem>,
}

/// A module that can be asked: the native one here, the WebAssembly one in the command line.
pub trait Run {
    /// Who the module is.
    fn describe(&self) -> Description;

    /// Asks one question.
    fn run(&self, operation: Operation, input: &Input) -> Result<Output>;
}

impl ModuleDef {
    /// The kind's entry, if the module has it.
    pub fn target(&self, group: &str, version: &str, kind: &str) -> Option<&'static TargetDef> {
        self.targets
            .iter()
            .find(|target| target.kind == kind && target.group == group && target.version == version)
    }
}

impl Run for ModuleDef {
    fn describe(&self) -> Description {
        Description {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            targets: self
                .targets
                .iter()
                .map(|target| Target {
                    kind: Gvk::new(target.group, target.version, target.kind),
                    operations: target.operations.to_vec(),
                })
                .collect(),
        }
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output> {
        let Input {
            kind,
            object,
            observed,
            replicas,
            items,
        } = input;
        let target = self
            .target(&kind.group, &kind.version, &kind.kind)
            .ok_or(Error::Unsupported)?;
        let functions = &target.functions;
        match operation {
            Operation::InterpretReplica => (functions.replicas)(object).map(Output::Replicas),
            Operation::InterpretComponent => (functions.components)(object).map(Output::Components),
            Operation::ReviseReplica => functions.revised(object, *replicas).map(Output::Change),
            Operation::Retain => {
                let observed = observed
                    .as_ref()
                    .ok_or_else(|| Error::failed("Retain needs the observed object beside the desired one"))?;
                let observed = rebased(observed, OBSERVED_BASE)?.try_into()?;
                functions.retained(object, &observed).map(Output::Change)
            }
            Operation::AggregateStatus => {
                let items: Vec<_> = items.iter().enumerate().map(rebased_item).collect::<Result<_>>()?;
                functions.aggregated(object, &items).map(Output::Aggregation)
            }
            Operation::InterpretStatus => (functions.status)(object).map(Output::Status),
            Operation::InterpretHealth => (functions.health)(object).map(Output::Health),
            Operation::InterpretDependency => (functions.dependencies)(object).map(Output::Dependencies),
        }
    }
}

fn change(before: &Object, edit: impl FnOnce(&mut Object) -> Result<()>) -> Result<Change> {
    let mut after = before.clone();
    edit(&mut after)?;
    let patch = diff(before, &after);
    Ok(if patch.is_empty() {
        Change::Unchanged
    } else {
        Change::Patch(patch)
    })
}

/// The value as the guest reads it: errors name the same paths natively and in WebAssembly.
fn rebased(value: &Json, base: &str) -> Result<Json> {
    Json::parse_at(value.to_text().into_bytes(), base)
}

fn rebased_item((position, item): (usize, &StatusItem)) -> Result<StatusItem> {
    let status = item
        .status
        .as_ref()
        .map(|status| rebased(status, &status_base(position)));
    Ok(StatusItem {
        status: status.transpose()?,
        ..item.clone()
    })
}

#[cfg(test)]
mod tests;
