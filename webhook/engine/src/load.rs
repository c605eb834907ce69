//! From a file to a [`Module`]: look into it, compile, describe, check what it says of itself, self-test; and a directory of
//! modules, such as a mounted ConfigMap or image volume.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, thread};

use popcell_contract::Target;
use popcell_protocol::{Gvk, Operation};
use sha2::{Digest as _, Sha256};

use crate::compiled_module::{CompiledModule, wit};
use crate::module::{Stop, run};
use crate::verify::names;
use crate::{Call, CallError, Cause, Description, Engine, Implemented, Module, Modules, inspect};

/// The largest file that is read, in bytes. A Rust module has some 100 KB.
const MAX_FILE: usize = 32 << 20;

impl Engine {
    /// Loads every `*.wasm` in a directory, in the order of their names. Hidden entries are passed over and links
    /// followed: in a ConfigMap volume every file is a link into `..data`. The error names every file that is refused and
    /// every two modules that conflict.
    pub fn load_dir(self: &Arc<Self>, directory: &Path) -> Result<Modules, LoadError> {
        let files = module_files(directory)?;
        let (mut modules, mut errors) = (Vec::new(), Vec::new());
        for loaded in side_by_side(&files, |file| self.load_file(file)) {
            match loaded {
                Ok(module) => modules.push(module),
                Err(error) => errors.push(error),
            }
        }
        let (modules, conflicts) = Modules::of(modules);
        errors.extend(conflicts);
        LoadError::all(errors).map_or(Ok(modules), Err)
    }

    /// Loads one file.
    pub fn load_file(self: &Arc<Self>, path: &Path) -> Result<Module, LoadError> {
        let wasm = fs::read(path).map_err(|source| LoadError::File {
            path: path.to_owned(),
            source,
        })?;
        self.load(&path.display().to_string(), &wasm)
    }

    /// Loads one module: it returns only one that was described and passed its self-test. `origin` names the file in
    /// messages.
    pub fn load(self: &Arc<Self>, origin: &str, wasm: &[u8]) -> Result<Module, LoadError> {
        self.admit(origin, wasm).map_err(|fault| LoadError::Module {
            origin: origin.to_owned(),
            fault,
        })
    }

    fn admit(self: &Arc<Self>, origin: &str, wasm: &[u8]) -> Result<Module, Fault> {
        if wasm.len() > MAX_FILE {
            return Err(Fault::Unfit(format!("it has more than {} MiB", MAX_FILE >> 20)));
        }
        let inspection = inspect(wasm).map_err(Fault::Unfit)?;
        if let Some(objection) = inspection.objection(self.settings().max_memory) {
            return Err(Fault::Unfit(objection.to_string()));
        }
        let compiled =
            CompiledModule::compile(&self.wasmtime, wasm).map_err(|error| Fault::Unfit(format!("{error:#}")))?;
        let description = self.describe(&compiled)?;
        let module = Module {
            engine: Arc::clone(self),
            compiled,
            label: description.label(),
            description,
            origin: origin.to_owned(),
            digest: format!("{:x}", Sha256::digest(wasm)),
            size: wasm.len(),
        };
        self_test(&module)?;
        Ok(module)
    }

    fn describe(&self, compiled: &CompiledModule) -> Result<Description, Fault> {
        let stop = Stop::after(self.settings().call_timeout);
        // An instance of its own, so that a module which does not even start is not blamed for its answer.
        run(self, &stop, |store| compiled.start(store))
            .0
            .map_err(Fault::Start)?;
        let described = run(self, &stop, |store| compiled.describe(store))
            .0
            .map_err(Fault::Describe)?;
        let description = Description::from(described);
        check_description(&description).map_err(Fault::Description)?;
        match description.targets.iter().find(|target| is_core(&target.kind)) {
            Some(target) if !self.settings().allow_core_kinds => Err(Fault::CoreKind(target.kind.clone())),
            _ => Ok(description),
        }
    }
}

/// Asks everything once about an object that has nothing but its kind and a name. Whatever the module returns is fine; a
/// crash or a limit is not.
fn self_test(module: &Module) -> Result<(), Fault> {
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
                return Err(Fault::SelfTest(error));
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

/// The files that [`Engine::load_dir`] loads; none is an error.
pub fn module_files(directory: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let files = files(directory).map_err(|source| LoadError::Directory {
        path: directory.to_owned(),
        source,
    })?;
    if files.is_empty() {
        return Err(LoadError::Empty {
            path: directory.to_owned(),
        });
    }
    Ok(files)
}

fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Applies `work` to every item on as many threads as there are cores; results in the order of the items.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let (index, Some(item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            (index, items.get(index))
        } {
            done.push((index, work(item)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Why a module, or a directory of them, is not loaded. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The directory cannot be read.
    #[error("failed to read the modules in {path}: {source}", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to serve.
    #[error("failed to load modules: {path} has no *.wasm file", path = path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("failed to load {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file was read and is refused.
    #[error("failed to load {origin}: {fault}")]
    Module {
        /// Where it was read from.
        origin: String,
        /// What is wrong.
        fault: Fault,
    },
    /// Two modules implement one operation for one kind.
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// More than one thing is wrong. Never fewer than two, and none of them is this variant.
    #[error("{}", listed(.0))]
    Several(Vec<LoadError>),
}

/// Why one file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is no module of this host: damaged, not a component, with imports, of another interface version, or too large.
    /// The text says what is wrong, and the fix.
    #[error("{0}")]
    Unfit(String),
    /// Its description breaks this rule.
    #[error("its description is wrong: {0}")]
    Description(String),
    /// It claims a kind that needs the operator's consent.
    #[error("it serves {0}, a kind that control planes depend on: allow it with --allow-core-kinds")]
    CoreKind(Gvk),
    /// It crashed or met a limit while it was instantiated, before any function of the interface was called.
    #[error("its start function, which runs when it is instantiated: {0}")]
    Start(Cause),
    /// It crashed or met a limit while it was asked who it is.
    #[error("describe: {0}")]
    Describe(Cause),
    /// It crashed or met a limit on a minimal object.
    #[error("its self-test with a minimal object failed: {0}")]
    SelfTest(CallError),
}

impl LoadError {
    /// Whether a module was looked at and refused. Otherwise there was none to look at: a directory or file that cannot be
    /// read, or a directory without modules, as when a volume is not mounted. Programs end with different codes.
    pub fn refuses_module(&self) -> bool {
        match self {
            Self::Directory { .. } | Self::Empty { .. } | Self::File { .. } => false,
            Self::Several(all) => all.iter().any(Self::refuses_module),
            _ => true,
        }
    }

    /// One error for all of them; `None` where there is none.
    pub(crate) fn all(mut errors: Vec<Self>) -> Option<Self> {
        if errors.len() > 1 {
            return Some(Self::Several(errors));
        }
        errors.pop()
    }
}

/// On one line: it goes into a log.
fn listed(errors: &[LoadError]) -> String {
    let mut text = format!("{} errors", errors.len());
    for (index, error) in errors.iter().enumerate() {
        // Writing into a String does not fail.
        let _ = write!(text, "{} {error}", if index == 0 { ":" } else { ";" });
    }
    text
}

/// Two modules that implement one operation for one kind.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to load {}: both {} ({}) and {} ({}) implement {operation} for {kind}: keep one of them",
    second.1, first.0, first.1, second.0, second.1
)]
pub struct Conflict {
    /// `name@version` and origin of the first.
    pub first: (String, String),
    /// `name@version` and origin of the second.
    pub second: (String, String),
    /// The kind.
    pub kind: Gvk,
    /// The operation.
    pub operation: Operation,
}

/// Kinds that one module may serve.
const MAX_TARGETS: usize = 64;

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

/// The first rule that a description breaks.
fn check_description(description: &Description) -> Result<(), String> {
    for (what, value) in [("name", &description.name), ("version", &description.version)] {
        if value.is_empty() || !names::is_label_value(value) {
            return Err(format!(
                "{what} {} must be a label value: 1 to 63 letters, digits, '-', '_', '.'",
                quoted(value)
            ));
        }
    }
    if description.targets.is_empty() {
        return Err("it serves no kind".to_owned());
    }
    if description.targets.len() > MAX_TARGETS {
        return Err(format!(
            "it serves {} kinds, more than {MAX_TARGETS}",
            description.targets.len()
        ));
    }
    let mut kinds = HashSet::new();
    for target in &description.targets {
        check_kind(&target.kind)?;
        if !kinds.insert(&target.kind) {
            return Err(format!("it names {} twice", target.kind));
        }
        if target.operations.is_empty() {
            return Err(format!("it implements no operation for {}", target.kind));
        }
        let mut operations = HashSet::new();
        if let Some(twice) = target
            .operations
            .iter()
            .find(|implemented| !operations.insert(implemented.operation))
        {
            return Err(format!("it names {} twice for {}", twice.operation, target.kind));
        }
    }
    Ok(())
}

fn check_kind(kind: &Gvk) -> Result<(), String> {
    if !kind.group.is_empty() && !names::is_dns_subdomain(&kind.group) {
        return Err(format!("group {} is no DNS subdomain", quoted(&kind.group)));
    }
    if !names::is_dns_label(&kind.version) {
        return Err(format!("version {} of a kind is no DNS label", quoted(&kind.version)));
    }
    if !names::is_dns_label(&kind.kind.to_ascii_lowercase()) {
        return Err(format!("kind {} is no DNS label", quoted(&kind.kind)));
    }
    Ok(())
}

/// Kinds that a control plane needs to work: a hook for them could stop the hook's own deployment, or Karmada.
fn is_core(kind: &Gvk) -> bool {
    matches!(kind.group.as_str(), "" | "apps" | "admissionregistration.k8s.io") || names::is_karmadas(&kind.group)
}

fn quoted(value: &str) -> String {
    format!("{:?}", value.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(change: impl FnOnce(&mut Description)) -> Result<(), String> {
        let operations = vec![Implemented {
            operation: Operation::Retain,
            register: true,
        }];
        let target = Target {
            kind: Gvk::new("example.io", "v1", "Widget"),
            operations,
        };
        let mut description = Description {
            name: "widget".into(),
            version: "0.1.0".into(),
            targets: vec![target],
        };
        change(&mut description);
        check_description(&description)
    }

    #[test]
    fn each_rule_is_named() {
        type Change = fn(&mut Description);
        assert_eq!(described(|_| ()), Ok(()));
        let cases: [(&str, Change); 10] = [
            ("name \"\"", |d| d.name.clear()),
            ("version \"a b\"", |d| d.version = "a b".into()),
            ("label value", |d| d.name = "n".repeat(64)),
            ("no kind", |d| d.targets.clear()),
            ("65 kinds", |d| d.targets = vec![d.targets[0].clone(); 65]),
            ("Widget twice", |d| d.targets.push(d.targets[0].clone())),
            ("Retain twice", |d| {
                d.targets[0].operations = vec![d.targets[0].operations[0]; 2];
            }),
            ("no operation", |d| d.targets[0].operations.clear()),
            ("group \"Bad_\"", |d| d.targets[0].kind.group = "Bad_".into()),
            ("kind \"\"", |d| d.targets[0].kind.kind.clear()),
        ];
        for (expected, change) in cases {
            let message = described(change).unwrap_err();
            assert!(message.contains(expected), "{message} does not name {expected}");
        }
    }

    #[test]
    fn core_kinds() {
        for group in [
            "",
            "apps",
            "admissionregistration.k8s.io",
            "karmada.io",
            "work.karmada.io",
        ] {
            assert!(is_core(&Gvk::new(group, "v1", "X")), "{group}");
        }
        for group in ["batch", "compute.datumapis.com", "notkarmada.io"] {
            assert!(!is_core(&Gvk::new(group, "v1", "X")), "{group}");
        }
    }
}
