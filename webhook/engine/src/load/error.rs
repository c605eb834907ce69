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
    /// The file is no module of this host: damaged, not a component, with imports, of another interface version, or too
    /// large.
    #[error("failed to load {origin}: {message}")]
    Unfit {
        /// Where it was read from.
        origin: String,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// The module's description breaks a rule.
    #[error("failed to load {origin}: its description is wrong: {message}")]
    Description {
        /// Where it was read from.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// The module claims a kind that needs the operator's consent.
    #[error(
        "failed to load {origin}: it serves {kind}, a kind that control planes depend on: allow it with --allow-core-kinds"
    )]
    CoreKind {
        /// Where it was read from.
        origin: String,
        /// The kind.
        kind: Gvk,
    },
    /// The module crashed or met a limit while it was instantiated, before any function of the interface was called.
    #[error("failed to load {origin}: its start function, which runs when it is instantiated: {cause}")]
    Start {
        /// Where it was read from.
        origin: String,
        /// What happened.
        cause: Cause,
    },
    /// The module crashed or met a limit while it was asked who it is.
    #[error("failed to load {origin}: describe: {cause}")]
    Describe {
        /// Where it was read from.
        origin: String,
        /// What happened.
        cause: Cause,
    },
    /// The module crashed or met a limit on a minimal object.
    #[error("failed to load {origin}: its self-test with a minimal object failed: {error}")]
    SelfTest {
        /// Where it was read from.
        origin: String,
        /// What was asked, and what happened.
        error: CallError,
    },
    /// Two modules implement one operation for one kind.
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// More than one thing is wrong. Never fewer than two, and none of them is this variant.
    #[error("{}", listed(.0))]
    Several(Vec<LoadError>),
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
