//! What a module says about itself.

use popcell_protocol::{Gvk, Operation};

/// Who a module is and what it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name; valid as a label value.
    pub name: String,
    /// Its version; valid as a label value.
    pub version: String,
    /// Its kinds, in the module's order; at most 64.
    pub targets: Vec<Target>,
}

/// One kind and what the module can do for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Gvk,
    /// In the module's order, each operation once.
    pub operations: Vec<Implemented>,
}

/// An operation that a module implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implemented {
    /// The operation.
    pub operation: Operation,
    /// Whether it belongs into the webhook's rules unless the operator says otherwise.
    pub register: bool,
}

impl Description {
    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Whether the module implements the operation for the kind.
    pub fn implements(&self, kind: &Gvk, operation: Operation) -> bool {
        self.targets.iter().filter(|target| target.kind == *kind).any(|target| {
            target
                .operations
                .iter()
                .any(|implemented| implemented.operation == operation)
        })
    }
}
