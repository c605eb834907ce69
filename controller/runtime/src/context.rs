//! What all reconcilers share: planes, what is written to them, and what spans several of them. What is remembered of one plane
//! is its own ([`crate::memory`]).

mod hub_index;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod view;
mod wait_list;

use std::sync::Arc;
use std::time::Duration;

use popcell_api::kind::{self, Kind};
use popcell_api::names::SINGLE;
use popcell_core::identity::SYSTEM_NAMESPACE;
use popcell_core::metrics::outcome;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Note, Plane, Target};
use popcell_core::rejection::Rejection;

pub use hub_index::HubIndex;
pub use view::{LiveReads, Snapshot, refs};
pub use wait_list::WaitList;

use crate::apply::{Applier, ApplyError, Difference};
use crate::memory::{GaugeCounts, Memory};
use crate::planes::{Change, Guard, InstanceTypes, Planes, ProjectRemovals, Store};
use crate::queue::Key;

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
    /// Whether ConfigMaps and Secrets that templates name are carried.
    pub carries_data: bool,
    /// The largest of them that is carried, in bytes.
    pub object_bytes: usize,
    /// The most of them that is carried of one project, in bytes.
    pub data_bytes: usize,
}

/// Shared by all reconcilers of a process.
pub struct Context {
    /// All planes.
    pub planes: Planes,
    /// Carries out plans.
    pub applier: Applier,
    /// Keys whose writes wait for those of another.
    pub wait_list: WaitList,
    /// Who counts reconciles.
    pub reporter: Arc<dyn Reporter>,
    /// Settings.
    pub rules: Rules,
    /// The instance types.
    pub types: InstanceTypes,
    /// Projects as discovery knows them; `None` in mode `single`.
    pub projects: Option<Arc<Store>>,
    /// How projects ended.
    pub project_removals: Arc<ProjectRemovals>,
    /// Hub Namespaces by project and namespace.
    pub hub_index: HubIndex,
}

impl Context {
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
            wait_list: WaitList::default(),
            reporter,
            rules,
            types: InstanceTypes::default(),
            projects,
            project_removals: Arc::default(),
            hub_index: HubIndex::default(),
        }
    }

    /// With this catalogue in place of the built-in type.
    #[must_use]
    pub fn with_types(mut self, types: InstanceTypes) -> Self {
        self.types = types;
        self
    }

    /// What is remembered of a plane; `None` where it is not engaged.
    pub fn memory(&self, plane: &Plane) -> Option<Arc<Memory>> {
        self.planes.memory(plane)
    }

    /// What was rejected of the last reconcile of a key.
    pub fn rejections_of(&self, reconciler: &'static str, key: &Key) -> Vec<Rejection> {
        let memory = self.memory(&key.plane);
        memory
            .map(|memory| memory.rejections.of(reconciler, key))
            .unwrap_or_default()
    }

    /// The first that was rejected of keys of some reconcilers in a namespace, on this plane or on any, whose names begin so
    /// and are meant.
    pub fn first_rejection(
        &self,
        reconcilers: &[&'static str],
        plane: Option<&Plane>,
        namespace: &str,
        prefix: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Option<Rejection> {
        let planes = plane.map_or_else(
            || self.planes.engaged(),
            |plane| self.planes.get(plane).into_iter().collect(),
        );
        let of_planes = planes.iter().flat_map(|plane| {
            let rejections = &plane.memory().rejections;
            let firsts = reconcilers
                .iter()
                .map(|of| rejections.first_of(of, namespace, prefix, &is_meant));
            firsts.flatten()
        });
        let first = of_planes.min_by(|(one, _), (other, _)| one.cmp(other));
        first.map(|(_, rejection)| rejection)
    }

    /// What the last reconciles of all keys noted.
    pub fn gauge_counts(&self) -> GaugeCounts {
        let mut gauge_counts = GaugeCounts::default();
        for plane in self.planes.engaged() {
            gauge_counts.add(&plane.memory().note_gauges);
        }
        gauge_counts
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

    /// Reads which server a project is, in mode `single`, unless an earlier reconcile has.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn read_server(&self, live: &mut LiveReads, plane: &Plane) -> Result<(), ApplyError> {
        if self.is_single(plane) {
            self.read_namespace(live, plane, SYSTEM_NAMESPACE).await?;
        }
        Ok(())
    }

    /// A Namespace of a project, as an earlier reconcile read it.
    pub fn namespace(&self, plane: &Plane, name: &str) -> Observed<Option<Arc<Object>>> {
        let memory = self.memory(plane);
        memory.map_or(Observed::Unknown, |memory| memory.namespaces.get(name))
    }

    /// Reads a Namespace of a project, unless an earlier reconcile has. It is decided on as it is now, whatever an event of
    /// another object says meanwhile: that one enqueues other keys, and this one would meet Unknown and wait for nothing.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn read_namespace(&self, live: &mut LiveReads, plane: &Plane, name: &str) -> Result<(), ApplyError> {
        match self.namespace(plane, name) {
            Observed::Known(found) => {
                live.insert(&Target::cluster(plane, NAMESPACE, name), found);
                Ok(())
            }
            Observed::Unknown => self.reread_namespace(live, plane, name).await,
        }
    }

    /// Reads a Namespace of a project as it is now. A Namespace is not watched, so it has no events: where it has changed,
    /// the keys that depend on it are enqueued.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn reread_namespace(&self, live: &mut LiveReads, plane: &Plane, name: &str) -> Result<(), ApplyError> {
        let Some(memory) = self.memory(plane) else {
            return Err(ApplyError::Disengaged(plane.clone()));
        };
        let asked = memory.namespaces.ask(name);
        let target = Target::cluster(plane, NAMESPACE, name);
        let mut found = self.applier.read(&target).await?;
        // It is remembered, and its keys are a tenant's.
        found.iter_mut().for_each(Object::keep_read_only);
        let found = found.map(Arc::new);
        live.insert(&target, found.clone());
        let is_engaged = self.memory(plane).is_some_and(|now| Arc::ptr_eq(&now, &memory));
        if let Some(before) = memory.namespaces.put(name, asked, &found).filter(|_| is_engaged) {
            let change = match found {
                Some(now) => Change::Applied { before, now },
                None => Change::Gone {
                    namespace: String::new(),
                    name: name.to_owned(),
                    last: before,
                },
            };
            self.planes.notify(plane, NAMESPACE, &change);
        }
        Ok(())
    }

    /// Takes in an event, before it enqueues any key.
    pub fn note(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let Change::Listed = change {
            self.applier.deletion_guards().relisted(plane, kind);
        }
        if let Some(memory) = self.memory(plane) {
            remember(&memory, plane, kind, change);
        }
        if *plane == Plane::Hub && kind == NAMESPACE {
            self.hub_index.note(change);
        }
    }

    /// How many events of a plane there were: an equal number means that nothing of it has changed since.
    pub fn changes(&self, plane: &Plane) -> u64 {
        self.memory(plane).map_or(0, |memory| memory.changes())
    }

    /// A plane has left, and its memory with it: forgets what others remember because of it.
    pub fn forget(&self, plane: &Plane) {
        self.applier.deletion_guards().left(plane);
        self.wait_list.retire(plane);
        if let (Plane::Project(id), Some(hub)) = (plane, self.memory(&Plane::Hub)) {
            hub.note_gauges.clear_namespaces(&self.hub_index.of_project(id));
        }
    }
}

/// What an event changes of what is remembered of its plane.
fn remember(memory: &Memory, plane: &Plane, kind: Kind, change: &Change) {
    memory.change();
    match change {
        Change::Gone { namespace, name, .. } => memory.forget(&Target {
            plane: plane.clone(),
            kind,
            namespace: Some(namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: name.clone(),
        }),
        Change::Cleared => memory.forget_kind(kind),
        Change::Listed => memory.relisted(),
        _ => {}
    }
    if kind == kind::WORKLOAD_DEPLOYMENT && matches!(plane, Plane::Project(_)) {
        match change {
            Change::Applied { before: None, now } => memory.namespaces.expire(now.namespace()),
            Change::Gone { namespace, .. } => memory.namespaces.expire(namespace),
            // It may be another server that answers now.
            Change::Listed => memory.namespaces.expire(SYSTEM_NAMESPACE),
            _ => {}
        }
    }
}

/// Projects that leave the list are guarded beside all other deletes, and released with them.
impl Guard for Context {
    fn holds(&self, difference: Difference) -> bool {
        self.applier.judge(&Plane::Discovery, kind::PROJECT, difference)
    }

    fn went_back(&self) {
        self.applier.rewound(&Plane::Discovery);
    }

    fn is_rewound(&self) -> bool {
        self.applier.deletion_guards().has_gone_back(&Plane::Discovery)
    }
}

/// How a reconcile ended, as in the label `outcome` (core's metrics table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be done.
    Unchanged,
    /// Something was written.
    Written,
    /// What was decided on kept changing.
    Conflict,
    /// Nothing can be done until the object changes.
    Terminal,
    /// A server refused or did not answer.
    Error,
    /// A delete was skipped.
    Withheld,
    /// There was nothing to decide about.
    Abandoned,
    /// The object is paused.
    Paused,
    /// Something was to be done, but for the dry run.
    DryRun,
}

impl Outcome {
    pub(crate) fn of(error: &ApplyError) -> Self {
        match error {
            ApplyError::Failed(_) if error.stale().is_some() => Self::Conflict,
            ApplyError::Unproven(_) => Self::Withheld,
            ApplyError::Unreachable(..)
            | ApplyError::CircuitOpen(..)
            | ApplyError::Disengaged(_)
            | ApplyError::NotAllowed => Self::Abandoned,
            ApplyError::Failed(_) => Self::Error,
        }
    }

    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => outcome::UNCHANGED,
            Self::Written => outcome::WRITTEN,
            Self::Conflict => outcome::CONFLICT,
            Self::Terminal => outcome::TERMINAL,
            Self::Error => outcome::ERROR,
            Self::Withheld => outcome::WITHHELD,
            Self::Abandoned => outcome::ABANDONED,
            Self::Paused => outcome::PAUSED,
            Self::DryRun => outcome::DRY_RUN,
        }
    }
}

/// Who counts reconciles.
pub trait Reporter: Send + Sync {
    /// A reconcile ended.
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration);
    /// A plan that says this was carried out.
    fn noted(&self, _note: &Note) {}
    /// What an event asked for is written, so long after it.
    fn answered(&self, reconciler: &'static str, after: Duration);
}
