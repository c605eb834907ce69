//! Why a module is not loaded.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use popcell_protocol::{Gvk, Operation};

use crate::{CallError, Cause};

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
