//! Namespaces of projects: read live when a WorkloadDeployment comes or goes, and not watched (design.md 7.1).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};

use crate::apply::{Applier, ApplyError};
use crate::pass::Live;
use crate::planes::Change;

/// By plane and name; `None` = NotFound.
type Read = BTreeMap<(Plane, String), Option<Arc<Object>>>;

/// What was read; an entry falls when a WorkloadDeployment of the namespace comes or goes.
#[derive(Debug, Default)]
pub struct Namespaces {
    read: Mutex<Read>,
}

impl Namespaces {
    /// What an earlier pass read.
    pub fn get(&self, plane: &Plane, name: &str) -> Observed<Option<Arc<Object>>> {
        let found = self.lock().get(&(plane.clone(), name.to_owned())).cloned();
        found.map_or(Observed::Unknown, Observed::Known)
    }

    /// Takes in an event of WorkloadDeployments.
    pub fn note(&self, plane: &Plane, change: &Change) {
        let namespace = match change {
            Change::Applied { before: None, now } => now.namespace(),
            Change::Gone { namespace, .. } => namespace,
            _ => return,
        };
        self.lock().remove(&(plane.clone(), namespace.to_owned()));
    }

    /// Reads a Namespace, unless an earlier pass has.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read(&self, applier: &Applier, plane: &Plane, name: &str) -> Result<(), ApplyError> {
        if self.get(plane, name).known().is_some() {
            return Ok(());
        }
        let found = applier.read(&Target::cluster(plane, NAMESPACE, name)).await?;
        self.lock()
            .insert((plane.clone(), name.to_owned()), found.map(Arc::new));
        Ok(())
    }

    /// Reads a Namespace as it is now.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read_anew(
        &self,
        applier: &Applier,
        live: &mut Live,
        plane: &Plane,
        name: &str,
    ) -> Result<(), ApplyError> {
        let target = Target::cluster(plane, NAMESPACE, name);
        let found = applier.read(&target).await?.map(Arc::new);
        self.lock().insert((plane.clone(), name.to_owned()), found.clone());
        live.insert(&target, found);
        Ok(())
    }

    pub(super) fn retire(&self, plane: &Plane) {
        self.lock().retain(|(one, _), _| one != plane);
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
