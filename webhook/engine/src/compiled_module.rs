//! A compiled module, and the questions that an instance of it answers.

use popcell_protocol::Operation;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, ComponentNamedList, Lift, Linker, Lower};

use crate::Call;
use crate::inspect::{INTERFACE, INTERFACE_VERSION};
use crate::limits::Limits;

use bindings::InterpreterPre;
pub(crate) use bindings::exports::popcell::interpreter::operations as wit;

/// Types and calls generated from `wit/`.
#[allow(missing_docs, unreachable_pub, reason = "generated from documented text")]
#[allow(clippy::pedantic, reason = "generated")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "interpreter",
        // Objects are handed to the guest from the request's buffer, without a copy in between.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

/// A compiled module.
///
/// The generated bindings look up and check every function for each instance. [`CompiledModule::describe`] goes that way
/// once, so that a function of another type refuses the module; a call looks up the one that it needs.
pub(crate) struct CompiledModule {
    all: InterpreterPre<Limits>,
    functions: Vec<(Operation, ComponentExportIndex)>,
}

/// A module's answer as it came, per operation.
pub(crate) enum Raw {
    Replicas(wit::Replicas),
    Components(Vec<wit::Component>),
    Change(wit::Change),
    Aggregation(wit::Aggregation),
    Status(Vec<u8>),
    Health(bool),
    Dependencies(Vec<wit::Dependency>),
}

/// What a function of the interface returns.
type Returned<T> = Result<T, wit::Error>;

impl CompiledModule {
    pub(crate) fn compile(engine: &wasmtime::Engine, wasm: &[u8]) -> wasmtime::Result<Self> {
        let component = Component::from_binary(engine, wasm)?;
        // Otherwise the first call pays for it.
        component.initialize_copy_on_write_image()?;
        let all = InterpreterPre::new(Linker::new(engine).instantiate_pre(&component)?)?;
        let interface = component.get_export_index(None, format!("{INTERFACE}@{INTERFACE_VERSION}"));
        let function = |operation: Operation| {
            let index = component.get_export_index(interface.as_ref(), name(operation));
            Ok((operation, index.ok_or_else(|| missing(operation))?))
        };
        let functions = Operation::ALL.into_iter().map(function);
        Ok(Self {
            functions: functions.collect::<wasmtime::Result<_>>()?,
            all,
        })
    }

    /// Makes an instance, which runs the start function of the module.
    pub(crate) fn start(&self, store: &mut Store<Limits>) -> wasmtime::Result<()> {
        self.all.instance_pre().instantiate(store).map(drop)
    }

    /// What the module says of itself, after a check of the types of all its functions.
    pub(crate) fn describe(&self, store: &mut Store<Limits>) -> wasmtime::Result<wit::Description> {
        let instance = self.all.instantiate(&mut *store)?;
        instance.popcell_interpreter_operations().call_describe(store)
    }

    /// The module's answer to a call.
    pub(crate) fn ask(&self, store: &mut Store<Limits>, call: &Call<'_>) -> wasmtime::Result<Returned<Raw>> {
        let kind = wit::GvkParam {
            group: &call.kind.group,
            version: &call.kind.version,
            kind: &call.kind.kind,
        };
        let mut asked = Asked {
            compiled: self,
            store,
            operation: call.operation,
        };
        let object = call.object;
        Ok(match call.operation {
            Operation::InterpretReplica => asked.returned((kind, object))?.map(Raw::Replicas),
            Operation::InterpretComponent => asked.returned((kind, object))?.map(Raw::Components),
            Operation::ReviseReplica => asked.returned((kind, object, call.replicas))?.map(Raw::Change),
            Operation::Retain => {
                let observed = call.observed.unwrap_or(b"null");
                asked.returned((kind, object, observed))?.map(Raw::Change)
            }
            Operation::AggregateStatus => {
                let items: Vec<_> = call.items.iter().map(item).collect();
                asked.returned((kind, object, items.as_slice()))?.map(Raw::Aggregation)
            }
            Operation::InterpretStatus => asked.returned((kind, object))?.map(Raw::Status),
            Operation::InterpretHealth => asked.returned((kind, object))?.map(Raw::Health),
            Operation::InterpretDependency => asked.returned((kind, object))?.map(Raw::Dependencies),
        })
    }
}

struct Asked<'a> {
    compiled: &'a CompiledModule,
    store: &'a mut Store<Limits>,
    operation: Operation,
}

impl Asked<'_> {
    fn returned<P, T>(&mut self, parameters: P) -> wasmtime::Result<Returned<T>>
    where
        P: ComponentNamedList + Lower,
        T: Lift + Send + Sync + 'static,
    {
        let index = self.compiled.functions.iter().find(|(of, _)| *of == self.operation);
        let (_, index) = index.ok_or_else(|| missing(self.operation))?;
        let instance = self.compiled.all.instance_pre().instantiate(&mut *self.store)?;
        let function = instance.get_typed_func::<P, (Returned<T>,)>(&mut *self.store, index)?;
        let (returned,) = function.call(&mut *self.store, parameters)?;
        Ok(returned)
    }
}

fn missing(operation: Operation) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it does not export the function {}", name(operation)))
}

/// The name of an operation's function in the interface.
const fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::InterpretReplica => "interpret-replica",
        Operation::InterpretComponent => "interpret-component",
        Operation::ReviseReplica => "revise-replica",
        Operation::Retain => "retain",
        Operation::AggregateStatus => "aggregate-status",
        Operation::InterpretStatus => "interpret-status",
        Operation::InterpretHealth => "interpret-health",
        Operation::InterpretDependency => "interpret-dependency",
    }
}

fn item<'a>(item: &'a popcell_protocol::StatusItem<'a>) -> wit::StatusItem<'a> {
    use popcell_protocol::Health;
    wit::StatusItem {
        cluster_name: &item.cluster_name,
        status: item.status.map(|status| status.get().as_bytes()),
        applied: item.applied,
        applied_message: &item.applied_message,
        health: item.health.map(|health| match health {
            Health::Healthy => wit::Health::Healthy,
            Health::Unhealthy => wit::Health::Unhealthy,
            Health::Unknown => wit::Health::Unknown,
        }),
    }
}
