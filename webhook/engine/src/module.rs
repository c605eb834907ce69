//! A loaded module, and a call to it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use popcell_protocol::{Answer, Gvk, Operation};
use wasmtime::{Store, Trap, UpdateDeadline, WasmBacktrace};

use crate::code::Code;
use crate::limits::Limits;
use crate::verify::{self, Bounds, Violation};
use crate::{Call, CallError, Cause, Description, Engine, ticker};

/// A module that was compiled, described and self-tested. Calls may run side by side.
pub struct Module {
    pub(crate) engine: Arc<Engine>,
    pub(crate) code: Code,
    pub(crate) description: Description,
    pub(crate) label: String,
    pub(crate) kinds: HashMap<Gvk, Vec<Operation>>,
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
        self.kinds
            .get(kind)
            .is_some_and(|operations| operations.contains(&operation))
    }

    /// Asks in a fresh instance, on this thread, and checks the answer. `budget` is cut to the engine's call timeout
    /// and counts from here; it is exact to about ten milliseconds. Waits while too many calls run.
    pub fn call(&self, call: &Call<'_>, budget: Duration) -> Result<Answer, CallError> {
        let budget = budget.min(self.engine.settings().call_timeout);
        self.call_until(call, budget, &Stop::After(budget))
    }

    /// As [`Module::call`], and says beside it how much linear memory the call had at most, in bytes.
    pub fn measure(&self, call: &Call<'_>, budget: Duration) -> (Result<Answer, CallError>, usize) {
        let budget = budget.min(self.engine.settings().call_timeout);
        self.call_measured(call, budget, &Stop::After(budget))
    }

    pub(crate) fn call_until(&self, call: &Call<'_>, budget: Duration, stop: &Stop) -> Result<Answer, CallError> {
        self.call_measured(call, budget, stop).0
    }

    fn call_measured(&self, call: &Call<'_>, budget: Duration, stop: &Stop) -> (Result<Answer, CallError>, usize) {
        let bounds = Bounds::starting_now(self.engine.settings().max_answer, budget);
        let (answer, memory) = if self.implements(call.kind, call.operation) {
            run_measured(&self.engine, &self.code, stop, budget, |code, store| {
                code.ask(store, call)
            })
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
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// When it has run so long.
    After(Duration),
    /// When it has run so long, or when nobody waits for it any more.
    AfterOr(Duration, Arc<AtomicBool>),
}

/// How often a guest on a slot looks whether somebody still waits for it, in ticks.
const LOOK: u64 = 1;

fn arm(store: &mut Store<Limits>, stop: &Stop) {
    match stop {
        Stop::After(time) => store.set_epoch_deadline(ticker::ticks(*time)),
        Stop::AfterOr(time, abandoned) => {
            let mut left = ticker::ticks(*time);
            let abandoned = Arc::clone(abandoned);
            let first = left.min(LOOK);
            left -= first;
            store.set_epoch_deadline(first);
            store.epoch_deadline_callback(move |_| {
                if left == 0 || abandoned.load(Ordering::Relaxed) {
                    return Err(Trap::Interrupt.into());
                }
                let next = left.min(LOOK);
                left -= next;
                Ok(UpdateDeadline::Continue(next))
            });
        }
    }
}

/// Asks `question`, which makes the instance, under all limits.
pub(crate) fn run<T>(
    engine: &Engine,
    code: &Code,
    stop: &Stop,
    budget: Duration,
    question: impl FnOnce(&Code, &mut Store<Limits>) -> wasmtime::Result<T>,
) -> Result<T, Cause> {
    run_measured(engine, code, stop, budget, question).0
}

/// As [`run`], with the peak of linear memory.
fn run_measured<T>(
    engine: &Engine,
    code: &Code,
    stop: &Stop,
    budget: Duration,
    question: impl FnOnce(&Code, &mut Store<Limits>) -> wasmtime::Result<T>,
) -> (Result<T, Cause>, usize) {
    let settings = engine.settings();
    // Before the store, so that its memory is back in the pool when the room is given back.
    let _room = engine.enter();
    let mut store = Store::new(&engine.wasmtime, Limits::new(settings.max_memory));
    store.limiter(|limits| limits);
    // The cap on what the answer makes the host allocate. A record takes more room here than in the guest.
    store.set_hostcall_fuel(settings.max_answer.saturating_mul(4));
    arm(&mut store, stop);
    let started = Instant::now();
    let answer = question(code, &mut store);
    let answer = answer.map_err(|error| {
        let deadline = Cause::Deadline {
            limit: budget,
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
