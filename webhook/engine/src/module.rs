//! A loaded module, a call to it, and the modules of one process.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use popcell_protocol::{Answer, Gvk, Operation};
use wasmtime::{Store, Trap, UpdateDeadline, WasmBacktrace};

use crate::compiled_module::CompiledModule;
use crate::limits::Limits;
use crate::verify::{self, Bounds, Violation};
use crate::{Call, CallError, Cause, Conflict, Description, Engine, Implemented, LoadError, Target, ticker};

/// A module that was compiled, described and self-tested. Calls may run side by side.
pub struct Module {
    pub(crate) engine: Arc<Engine>,
    pub(crate) compiled: CompiledModule,
    pub(crate) description: Description,
    pub(crate) label: String,
    pub(crate) origin: String,
    pub(crate) digest: String,
    pub(crate) size: usize,
}

impl Module {
    /// Who it is and what it can do.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// `name@version`.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Where it was read from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// SHA-256 of the file, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Size of the file, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether the module implements the operation for the kind.
    pub fn implements(&self, kind: &Gvk, operation: Operation) -> bool {
        self.description.implements(kind, operation)
    }

    /// Asks in a fresh instance, on this thread, and checks the answer. `budget` is cut to the engine's call timeout
    /// and counts from here; it is exact to about ten milliseconds. Waits while too many calls run.
    pub fn call(&self, call: &Call<'_>, budget: Duration) -> Result<Answer, CallError> {
        self.measure(call, budget).0
    }

    /// As [`Module::call`], and says beside it how much linear memory the call had at most, in bytes.
    pub fn measure(&self, call: &Call<'_>, budget: Duration) -> (Result<Answer, CallError>, usize) {
        let stop = Stop::after(budget.min(self.engine.settings().call_timeout));
        self.call_until(call, &stop)
    }

    /// As [`Module::measure`], until `stop`.
    pub(crate) fn call_until(&self, call: &Call<'_>, stop: &Stop) -> (Result<Answer, CallError>, usize) {
        let bounds = Bounds::starting_now(self.engine.settings().max_answer, stop.after);
        let (answer, memory) = if self.implements(call.kind, call.operation) {
            run(&self.engine, stop, |store| self.compiled.ask(store, call))
        } else {
            (Err(Cause::Unsupported), 0)
        };
        let answer = answer
            .and_then(|answer| verify::answer(answer, call, &bounds))
            .map_err(|cause| CallError::new(Some(&self.label), call, cause));
        (answer, memory)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("label", &self.label)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// When a guest is interrupted.
#[derive(Debug)]
pub(crate) struct Stop {
    /// When it has run so long.
    after: Duration,
    /// Or when no caller waits for it any more.
    abandoned: Option<Arc<AtomicBool>>,
}

impl Stop {
    pub(crate) fn after(time: Duration) -> Self {
        Self {
            after: time,
            abandoned: None,
        }
    }

    /// Also once the flag says that no caller waits.
    pub(crate) fn or_when(self, abandoned: Arc<AtomicBool>) -> Self {
        Self {
            abandoned: Some(abandoned),
            ..self
        }
    }

    fn arm(&self, store: &mut Store<Limits>) {
        let ticks = ticker::ticks(self.after);
        let Some(abandoned) = self.abandoned.clone() else {
            return store.set_epoch_deadline(ticks);
        };
        // Each tick looks whether somebody still waits.
        let mut left = ticks.saturating_sub(1);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if left == 0 || abandoned.load(Ordering::Relaxed) {
                return Err(Trap::Interrupt.into());
            }
            left -= 1;
            Ok(UpdateDeadline::Continue(1))
        });
    }
}

/// Asks `question`, which makes the instance, under all limits; with the peak of linear memory.
pub(crate) fn run<T>(
    engine: &Engine,
    stop: &Stop,
    question: impl FnOnce(&mut Store<Limits>) -> wasmtime::Result<T>,
) -> (Result<T, Cause>, usize) {
    let settings = engine.settings();
    // Before the store, so that its memory is back in the pool when the room is given back.
    let _room = engine.enter();
    let mut store = Store::new(&engine.wasmtime, Limits::new(settings.max_memory));
    store.limiter(|limits| limits);
    // The cap on what the answer makes the host allocate. A record takes more room here than in the guest.
    store.set_hostcall_fuel(settings.max_answer.saturating_mul(4));
    stop.arm(&mut store);
    let started = Instant::now();
    let answer = question(&mut store).map_err(|error| {
        let deadline = Cause::Deadline {
            limit: stop.after,
            ran: started.elapsed(),
        };
        cause_of(&error, store.data(), settings.max_memory, deadline)
    });
    (answer, store.data().peak_memory())
}

fn cause_of(error: &wasmtime::Error, limits: &Limits, max_memory: usize, deadline: Cause) -> Cause {
    if let Some(asked) = limits.refused_memory() {
        return Cause::Memory {
            limit: max_memory,
            asked,
        };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => deadline,
        Some(Trap::StackOverflow) => Cause::Stack,
        Some(trap) => {
            let frames = frames(error);
            // A Rust guest keeps large locals on a stack of its own, whose end is the start of its memory.
            if *trap == Trap::MemoryOutOfBounds && is_recursion(&frames) {
                return Cause::Stack;
            }
            Cause::Trapped {
                reason: trap.to_string(),
                function: author_function(&frames),
                frames,
            }
        }
        // The guest returned, and what it returned cannot be read: wild pointers, broken text, too much of it.
        None => Cause::Refused {
            path: String::new(),
            message: format!("too large or unreadable: {}", error.root_cause()),
        },
    }
}

/// The guest's call stack, innermost first, in names that people read.
fn frames(error: &wasmtime::Error) -> Vec<String> {
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        // The short form leaves the hash away.
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    };
    error
        .downcast_ref::<WasmBacktrace>()
        .map_or_else(Vec::new, |trace| trace.frames().iter().map(name).collect())
}

/// The innermost function that is not part of Rust's own machinery for panics and memory.
fn author_function(frames: &[String]) -> Option<String> {
    const RUNTIME: [&str; 6] = ["core::", "std::", "alloc::", "__rust", "rust_", "dlmalloc"];
    let is_runtime = |name: &String| {
        RUNTIME
            .iter()
            .any(|prefix| name.trim_start_matches('<').starts_with(prefix))
    };
    frames.iter().find(|name| !is_runtime(name)).or(frames.first()).cloned()
}

fn is_recursion(frames: &[String]) -> bool {
    const SEEN: usize = 9;
    frames
        .iter()
        .any(|name| frames.iter().filter(|other| *other == name).count() >= SEEN)
}

impl From<Violation> for Cause {
    fn from(violation: Violation) -> Self {
        Self::Refused {
            path: violation.path,
            message: violation.message,
        }
    }
}

/// All modules of a process: for each kind and operation at most one.
#[derive(Debug, Default)]
pub struct Modules {
    all: Vec<Arc<Module>>,
    by_kind: HashMap<Gvk, Vec<(Operation, usize)>>,
}

impl Modules {
    /// Refuses two modules that implement one operation for one kind; names every two of them.
    pub fn new(modules: impl IntoIterator<Item = Module>) -> Result<Self, LoadError> {
        let (found, conflicts) = Self::of(modules);
        LoadError::all(conflicts).map_or(Ok(found), Err)
    }

    /// Those modules that do not conflict with one before them, and the conflicts of the others.
    pub(crate) fn of(modules: impl IntoIterator<Item = Module>) -> (Self, Vec<LoadError>) {
        let mut found = Self::default();
        let mut conflicts = Vec::new();
        for module in modules {
            let all = found.conflicts(&module);
            if all.is_empty() {
                found.add(module);
            }
            conflicts.extend(all.into_iter().map(|conflict| LoadError::Conflict(Box::new(conflict))));
        }
        (found, conflicts)
    }

    /// Of each module that is there and conflicts, the first operation that both implement.
    fn conflicts(&self, module: &Module) -> Vec<Conflict> {
        let named = |module: &Module| (module.label.clone(), module.origin.clone());
        let mut targets: Vec<_> = module.description.targets.iter().collect();
        targets.sort_by_key(|target| target.kind.to_string());
        let mut seen = BTreeSet::new();
        let mut conflicts = Vec::new();
        for Target { kind, operations } in targets {
            for Implemented { operation, .. } in operations {
                let taken = self.index(kind, *operation).filter(|index| seen.insert(*index));
                let Some(other) = taken.and_then(|index| self.all.get(index)) else {
                    continue;
                };
                conflicts.push(Conflict {
                    first: named(other),
                    second: named(module),
                    kind: kind.clone(),
                    operation: *operation,
                });
            }
        }
        conflicts
    }

    fn add(&mut self, module: Module) {
        let index = self.all.len();
        for Target { kind, operations } in &module.description.targets {
            let taken = self.by_kind.entry(kind.clone()).or_default();
            taken.extend(operations.iter().map(|implemented| (implemented.operation, index)));
        }
        self.all.push(Arc::new(module));
    }

    /// The module that answers the operation for the kind.
    pub fn find(&self, kind: &Gvk, operation: Operation) -> Option<&Arc<Module>> {
        self.index(kind, operation).and_then(|index| self.all.get(index))
    }

    pub(crate) fn index(&self, kind: &Gvk, operation: Operation) -> Option<usize> {
        let taken = self.by_kind.get(kind)?.iter();
        taken
            .copied()
            .find_map(|(of, index)| (of == operation).then_some(index))
    }

    /// Whether some module serves the kind at all.
    pub fn serves(&self, kind: &Gvk) -> bool {
        self.by_kind.contains_key(kind)
    }

    /// In the order of their file names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Module>> {
        self.all.iter()
    }
}
