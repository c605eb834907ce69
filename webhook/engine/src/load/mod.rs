//! From a file to a [`Module`]: look into it, compile, describe, check, self-test.

mod directory;
mod error;
mod target;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use popcell_protocol::{Gvk, Operation};
use sha2::{Digest as _, Sha256};

use crate::bindings::wit;
use crate::code::Code;
use crate::module::{Stop, run};
use crate::{Call, Cause, Description, Engine, Implemented, Module, Target, inspect};

pub use directory::module_files;
pub use error::{Conflict, LoadError};

/// The largest file that is read, in bytes. A Rust module has some 100 KB.
const MAX_FILE: usize = 32 << 20;

impl Engine {
    /// Loads one module: it returns only one that was described and passed its self-test. `origin` names the file in
    /// messages.
    pub fn load(self: &Arc<Self>, origin: &str, wasm: &[u8]) -> Result<Module, LoadError> {
        let unfit = |message: String| LoadError::Unfit {
            origin: origin.to_owned(),
            message,
        };
        if wasm.len() > MAX_FILE {
            return Err(unfit(format!("it has more than {} MiB", MAX_FILE >> 20)));
        }
        let inspection = inspect(wasm).map_err(unfit)?;
        if let Some(objection) = inspection.objection(self.settings().max_memory) {
            return Err(unfit(objection.to_string()));
        }
        let code = Code::compile(&self.wasmtime, wasm).map_err(|error| unfit(format!("{error:#}")))?;
        let description = self.describe(origin, &code)?;
        let module = Module {
            engine: Arc::clone(self),
            code,
            label: description.label(),
            kinds: operations_by_kind(&description),
            description,
            origin: origin.to_owned(),
            digest: hex(&Sha256::digest(wasm)),
            size: wasm.len(),
        };
        self_test(&module)?;
        Ok(module)
    }

    fn describe(&self, origin: &str, code: &Code) -> Result<Description, LoadError> {
        let budget = self.settings().call_timeout;
        let stop = Stop::After(budget);
        let origin_of = || origin.to_owned();
        // An instance of its own, so that a module which does not even start is not blamed for its answer.
        run(self, code, &stop, budget, Code::start).map_err(|cause| LoadError::Start {
            origin: origin_of(),
            cause,
        })?;
        let described = run(self, code, &stop, budget, Code::describe).map_err(|cause| LoadError::Describe {
            origin: origin_of(),
            cause,
        })?;
        let description = Description::from(described);
        target::check(&description).map_err(|message| LoadError::Description {
            origin: origin.to_owned(),
            message,
        })?;
        match description.targets.iter().find(|target| target::is_core(&target.kind)) {
            Some(target) if !self.settings().allow_core_kinds => Err(LoadError::CoreKind {
                origin: origin.to_owned(),
                kind: target.kind.clone(),
            }),
            _ => Ok(description),
        }
    }
}

/// For look-ups on every call.
fn operations_by_kind(description: &Description) -> HashMap<Gvk, Vec<Operation>> {
    let operations = |target: &Target| target.operations.iter().map(|known| known.operation).collect();
    let targets = description.targets.iter();
    targets
        .map(|target| (target.kind.clone(), operations(target)))
        .collect()
}

/// Asks everything once about an object that has nothing but its kind and a name. Whatever the module returns is fine; a
/// crash or a limit is not.
fn self_test(module: &Module) -> Result<(), LoadError> {
    for target in &module.description.targets {
        let object = minimal(&target.kind);
        for Implemented { operation, .. } in &target.operations {
            let call = Call {
                name: "self-test",
                observed: Some(&object),
                replicas: 1,
                ..Call::new(*operation, &target.kind, &object)
            };
            let answer = module.call(&call, module.engine.settings().call_timeout);
            let Err(error) = answer else { continue };
            if error.cause.is_module_fault() && !matches!(error.cause, Cause::Refused { .. }) {
                return Err(LoadError::SelfTest {
                    origin: module.origin.clone(),
                    error,
                });
            }
        }
    }
    Ok(())
}

fn minimal(kind: &Gvk) -> Vec<u8> {
    let object = serde_json::json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": "self-test", "namespace": "self-test"},
    });
    object.to_string().into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing into a String does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

impl From<wit::Description> for Description {
    fn from(description: wit::Description) -> Self {
        let target = |target: wit::Target| Target {
            kind: Gvk::new(target.kind.group, target.kind.version, target.kind.kind),
            operations: target.operations.into_iter().map(implemented).collect(),
        };
        Self {
            name: description.name,
            version: description.version,
            targets: description.targets.into_iter().map(target).collect(),
        }
    }
}

fn implemented(implemented: wit::Implemented) -> Implemented {
    let operation = match implemented.operation {
        wit::Operation::InterpretReplica => Operation::InterpretReplica,
        wit::Operation::InterpretComponent => Operation::InterpretComponent,
        wit::Operation::ReviseReplica => Operation::ReviseReplica,
        wit::Operation::Retain => Operation::Retain,
        wit::Operation::AggregateStatus => Operation::AggregateStatus,
        wit::Operation::InterpretStatus => Operation::InterpretStatus,
        wit::Operation::InterpretHealth => Operation::InterpretHealth,
        wit::Operation::InterpretDependency => Operation::InterpretDependency,
    };
    Implemented {
        operation,
        register: implemented.register,
    }
}
