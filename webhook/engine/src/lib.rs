//! Runs interpreter modules: a component in, typed calls out. The only crate that names wasmtime.
//!
//! Invariants:
//! - A module can compute and nothing else: it imports nothing.
//! - Every call runs in a fresh instance with a deadline, a memory cap and a stack cap, and the instance is thrown away.
//! - No answer of a module leaves this crate before [`verify`] has accepted it.
//! - Objects stay text: the host walks only the paths that a patch touches.
#![deny(unsafe_code)]

mod call;
mod compiled_module;
mod dispatch;
mod engine;
mod inspect;
mod limits;
#[cfg(test)]
mod linear_tests;
mod load;
mod module;
mod swap;
mod ticker;
mod verify;

pub use call::{Call, CallError, Cause, Subject};
pub use dispatch::{CallResult, Dispatcher, Outcome, Path};
pub use engine::{Allocator, Engine, EngineError, Settings};
pub use inspect::{INTERFACE_VERSION, Inspection, inspect};
pub use load::{Conflict, Fault, LoadError, module_files};
pub use module::{Module, Modules};
pub use popcell_contract::{Description, Implemented, Target};
pub use verify::check_patch;
