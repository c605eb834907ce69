//! Projections as they were last written: their stores have metadata only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use popcell_api::kind::{INSTANCE, Kind};
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Plane, Target};

type Address = (Plane, String, String);

/// Answers of servers to writes of projections, by plane, namespace and name.
#[derive(Debug, Default)]
pub(super) struct Projections {
    /// As text: what a pass decodes is its own.
    known: Mutex<BTreeMap<Address, Object>>,
}

impl Projections {
    /// The whole object, where this resourceVersion of it is known.
    pub(super) fn get(&self, target: &Target, version: &str) -> Option<Arc<Object>> {
        let known = self.known();
        let found = known.get(&address(target)?)?;
        (found.resource_version() == version).then(|| Arc::new(found.clone()))
    }

    /// Takes in what a server answered to a write.
    pub(super) fn put(&self, target: &Target, answer: &Object) {
        let is_one = target.kind == INSTANCE && matches!(target.plane, Plane::Project(_));
        if let (true, Some(address)) = (is_one, address(target)) {
            self.known().insert(address, answer.as_text());
        }
    }

    pub(super) fn forget(&self, target: &Target) {
        if let Some(address) = address(target) {
            self.known().remove(&address);
        }
    }

    pub(super) fn forget_kind(&self, plane: &Plane, kind: Kind) {
        if kind == INSTANCE {
            self.retire(plane);
        }
    }

    pub(super) fn retire(&self, plane: &Plane) {
        self.known().retain(|(one, ..), _| one != plane);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Address, Object>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(target: &Target) -> Option<Address> {
    Some((target.plane.clone(), target.namespace.clone()?, target.name.clone()))
}
