//! Karmada's test-file format for interpreters (pkg/resourceinterpreter/default/thirdparty/thirdparty_test.go): many
//! YAML documents in one file, each one a question and the answer that it should get.
//!
//! ```yaml
//! name: ready
//! operation: InterpretHealth          # in any letter case
//! observedObj: {...}                  # or desiredObj; Retain takes both
//! statusItems: [...]                  # AggregateStatus
//! inputReplicas: 3                    # ReviseReplica
//! output: {healthy: true}
//! ```
//!
//! Keys of `output`: `replica` and `requires`, `components`, `revised`, `retained`, `aggregatedStatus`, `status`,
//! `healthy`, `dependencies`. Every key that is written has to be produced; what is not written is not compared.
//! Quantities compare by amount, dependencies and components in any order, `"{{EXCLUDE}}"` leaves a field out, and all
//! else compares as JSON with its keys sorted.
//!
//! Keys that Karmada does not have, also in `output`:
//! - `error: true`, or a part of the message: the operation fails (an object that it cannot understand);
//! - `undecided: true`, or a part of the reason: there is no answer now;
//! - `unchanged: true`: ReviseReplica, Retain or AggregateStatus leaves the object as it is (`false`: it does not);
//! - `leftOut: 2`: AggregateStatus says that so many parts of the statuses were skipped. Not compared where a webhook
//!   answers: Karmada's protocol does not carry it.

mod answer;
mod check;
mod read;

use std::fmt;
use std::path::PathBuf;

use super::yaml::{Field, Node, Position};
use crate::Operation;
use crate::module::Input;

pub use answer::{Answer, answer};
pub(super) use check::guarded;
pub use check::{Failure, check, place_of};
pub(super) use read::input_of;
pub use read::{CaseFile, FolderError, read, read_folder};

/// One document of a test file.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file, as it should be shown.
    pub file: PathBuf,
    /// Which document of the file that has content this is, from 1.
    pub document: usize,
    /// Where the document begins.
    pub at: Position,
    /// `name`.
    pub name: String,
    /// `description`.
    pub description: String,
    /// `operation`.
    pub operation: Operation,
    /// What to ask.
    pub input: Input,
    /// What should come back.
    pub expected: Expected,
    /// The document itself, for the places of its parts.
    pub source: Node,
}

/// What a case wants to see.
#[derive(Debug, Clone)]
pub enum Expected {
    /// An answer with these parts.
    Answer {
        /// The keys of `output` that name a part of the answer.
        parts: Vec<Field>,
        /// Whether the object is left as it is, when the case says.
        unchanged: Option<bool>,
        /// How many parts of the reported statuses were skipped, when the case says.
        left_out: Option<u32>,
    },
    /// An error that contains this text.
    Error(String),
    /// No answer now, for a reason that contains this text.
    Undecided(String),
}

/// Why a document is not a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseError {
    /// The file, as it should be shown.
    pub file: PathBuf,
    /// Where.
    pub at: Position,
    /// `name` of the document, when it has one.
    pub name: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl std::error::Error for CaseError {}

impl fmt::Display for CaseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: ", self.file.display(), self.at.line)?;
        if let Some(name) = &self.name {
            write!(formatter, "{name}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

/// The keys that an operation's answer is known by in `output`.
pub(super) const fn keys(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::InterpretReplica => &["replica", "requires"],
        Operation::InterpretComponent => &["components"],
        Operation::ReviseReplica => &["revised"],
        Operation::Retain => &["retained"],
        Operation::AggregateStatus => &["aggregatedStatus"],
        Operation::InterpretStatus => &["status"],
        Operation::InterpretHealth => &["healthy"],
        Operation::InterpretDependency => &["dependencies"],
    }
}

#[cfg(test)]
mod tests;
