//! What all reconcilers share: planes, the applier, and the little that is remembered between passes.

mod hub_index;
mod namespaces;
mod rejections;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use popcell_api::kind::{self, Kind};
use popcell_core::identity::SYSTEM_NAMESPACE;
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};

pub use hub_index::HubIndex;
pub use namespaces::Namespaces;
pub use rejections::Rejections;

use crate::apply::{Applier, ApplyError, Difference};
use crate::pass::{Live, Reporter, Tally, Waiting, Woken};
use crate::planes::{Change, Ends, Guard, Planes, SINGLE, Store};

/// Settings of management reconcilers.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long nothing is cleaned after a project was found to be gone.
    pub project_grace: Duration,
    /// How long nothing of a cell is released after its Cluster was found to be absent.
    pub cell_grace: Duration,
    /// Whether orphans are deleted.
    pub reclaim_orphans: bool,
    /// How many Instances a hub namespace may have; 0 = any number.
    pub hub_instances: u32,
}

/// Shared by all reconcilers of a process.
pub struct World {
    /// All planes.
    pub planes: Planes,
    /// Carries out plans.
    pub applier: Applier,
    /// Notes of the last passes.
    pub tally: Tally,
    /// When keys were woken.
    pub woken: Woken,
    /// What servers rejected of the last passes.
    pub rejections: Rejections,
    /// Keys whose writes wait for those of another.
    pub waiting: Waiting,
    /// Who counts passes.
    pub reporter: Arc<dyn Reporter>,
    /// Settings.
    pub rules: Rules,
    /// Projects as discovery knows them; `None` in mode `single`.
    pub projects: Option<Arc<Store>>,
    /// How projects ended.
    pub ends: Arc<Ends>,
    /// Hub Namespaces by project and namespace.
    pub hub_index: HubIndex,
    /// Namespaces of projects, read live when WorkloadDeployments come or go.
    pub namespaces: Namespaces,
    changes: Mutex<BTreeMap<Plane, u64>>,
}

impl World {
    /// Nothing is remembered yet.
    pub fn new(
        planes: Planes,
        applier: Applier,
        reporter: Arc<dyn Reporter>,
        rules: Rules,
        projects: Option<Arc<Store>>,
    ) -> Self {
        Self {
            planes,
            applier,
            tally: Tally::default(),
            woken: Woken::default(),
            rejections: Rejections::default(),
            waiting: Waiting::default(),
            reporter,
            rules,
            projects,
            ends: Arc::default(),
            hub_index: HubIndex::default(),
            namespaces: Namespaces::default(),
            changes: Mutex::default(),
        }
    }

    /// What is known of a kind on a plane; `None` where it is not watched there.
    pub fn store(&self, plane: &Plane, kind: Kind) -> Option<Arc<Store>> {
        self.planes.get(plane)?.store(kind).cloned()
    }

    /// Whether a project is of this installation: another one may share the hub. While projects are not listed, every one
    /// may be.
    pub fn has_project(&self, id: &str) -> bool {
        match &self.projects {
            None => id == SINGLE,
            Some(projects) => !matches!(projects.get("", id), Observed::Known(None)),
        }
    }

    /// Whether a plane is the one project of mode `single`.
    pub fn is_single(&self, plane: &Plane) -> bool {
        self.projects.is_none() && matches!(plane, Plane::Project(id) if id == SINGLE)
    }

    /// Reads which server a project is, in mode `single`, unless an earlier pass has.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read_server(&self, live: &mut Live, plane: &Plane) -> Result<(), ApplyError> {
        if self.is_single(plane) {
            self.read_namespace(live, plane, SYSTEM_NAMESPACE).await?;
        }
        Ok(())
    }

    /// Reads a Namespace of a project, unless an earlier pass has.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read_namespace(&self, live: &mut Live, plane: &Plane, name: &str) -> Result<(), ApplyError> {
        match self.namespaces.get(plane, name) {
            Observed::Known(_) => Ok(()),
            Observed::Unknown => self.read_namespace_anew(live, plane, name).await,
        }
    }

    /// Reads a Namespace of a project as it is now. Who is not watched has no events: everybody whom it concerns is woken
    /// where it is another than it was.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read_namespace_anew(&self, live: &mut Live, plane: &Plane, name: &str) -> Result<(), ApplyError> {
        if let Some(change) = self.namespaces.read(&self.applier, live, plane, name).await? {
            self.planes.tell(plane, NAMESPACE, &change);
        }
        Ok(())
    }

    /// Takes in an event, before anybody is woken by it.
    pub fn note(&self, plane: &Plane, kind: Kind, change: &Change) {
        *self.counts().entry(plane.clone()).or_default() += 1;
        if let Change::Listed = change {
            self.applier.relisted(plane, kind);
        }
        match change {
            Change::Gone { namespace, name, .. } => {
                let target = Target {
                    plane: plane.clone(),
                    kind,
                    namespace: Some(namespace.clone()).filter(|namespace| !namespace.is_empty()),
                    name: name.clone(),
                };
                self.applier.forget(&target);
            }
            Change::Cleared => self.applier.forget_kind(plane, kind),
            _ => {}
        }
        if *plane == Plane::Hub && kind == NAMESPACE {
            self.hub_index.note(change);
        }
        if kind == kind::WORKLOAD_DEPLOYMENT && matches!(plane, Plane::Project(_)) {
            self.namespaces.note(plane, change);
        }
    }

    /// How many events of a plane there were: an equal number means that nothing of it has changed since.
    pub fn changes(&self, plane: &Plane) -> u64 {
        self.counts().get(plane).copied().unwrap_or_default()
    }

    // Each hold is one step of a map: there is no half-done state that a panic could leave.
    fn counts(&self) -> MutexGuard<'_, BTreeMap<Plane, u64>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a plane.
    pub fn retire(&self, plane: &Plane) {
        self.applier.retire(plane);
        let hub_namespaces = match plane {
            Plane::Project(id) => self.hub_index.of_project(id),
            Plane::Hub | Plane::Cell | Plane::Discovery => Vec::new(),
        };
        self.tally.retire(plane, &hub_namespaces);
        self.woken.retire(plane);
        self.rejections.retire(plane);
        self.waiting.retire(plane);
        self.namespaces.retire(plane);
        self.counts().remove(plane);
    }
}

/// Projects that leave the list are guarded beside all other deletes, and released with them.
impl Guard for World {
    fn holds(&self, difference: Difference) -> bool {
        self.applier.judge(&Plane::Discovery, kind::PROJECT, difference)
    }

    fn went_back(&self) {
        self.applier.rewound(&Plane::Discovery);
    }

    fn is_rewound(&self) -> bool {
        self.applier.brakes().has_gone_back(&Plane::Discovery)
    }
}
