//! The modules of one process.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use popcell_protocol::{Gvk, Operation};

use crate::{Conflict, Implemented, LoadError, Module, Target};

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
