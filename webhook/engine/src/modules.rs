//! The modules of one process.

use std::collections::HashMap;
use std::sync::Arc;

use popcell_protocol::{Gvk, Operation};

use crate::{Conflict, LoadError, Module};

/// All modules of a process: for each kind and operation at most one.
#[derive(Debug, Default)]
pub struct Modules {
    all: Vec<Arc<Module>>,
    by_kind: HashMap<Gvk, HashMap<Operation, usize>>,
}

impl Modules {
    /// Refuses two modules that implement one operation for one kind.
    pub fn new(modules: impl IntoIterator<Item = Module>) -> Result<Self, LoadError> {
        let mut found = Self::default();
        for module in modules {
            found.add(module)?;
        }
        Ok(found)
    }

    fn add(&mut self, module: Module) -> Result<(), LoadError> {
        let index = self.all.len();
        for (kind, operations) in &module.kinds {
            let taken = self.by_kind.entry(kind.clone()).or_default();
            for operation in operations {
                if let Some(other) = taken.insert(*operation, index).and_then(|other| self.all.get(other)) {
                    let named = |module: &Module| (module.label.clone(), module.origin.clone());
                    return Err(LoadError::Conflict(Box::new(Conflict {
                        first: named(other),
                        second: named(&module),
                        kind: kind.clone(),
                        operation: *operation,
                    })));
                }
            }
        }
        self.all.push(Arc::new(module));
        Ok(())
    }

    /// The module that answers the operation for the kind.
    pub fn find(&self, kind: &Gvk, operation: Operation) -> Option<&Arc<Module>> {
        self.index(kind, operation).and_then(|index| self.all.get(index))
    }

    pub(crate) fn index(&self, kind: &Gvk, operation: Operation) -> Option<usize> {
        self.by_kind.get(kind)?.get(&operation).copied()
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
