//! Planes: API servers that are engaged, and what is known of each
//! (docs/decisions/19-planes-and-stores.md).
//!
//! Invariants: a plane is engaged once; after [`Planes::disengage`] has returned, its watches are closed and nothing more
//! is reported about it; one plane that is unreachable costs the others nothing.

mod budget;
mod change;
mod discovery;
mod engaged;
mod instance_types;
mod items;
mod kind_watch;
mod list_watch;
mod overlay;
mod project_removals;
mod stats;
mod store;
mod watch_spec;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock};

use popcell_api::kind::Kind;
use popcell_client::ConnectError;
use popcell_core::limits::Limits;
use popcell_core::plan::{Plane, Target};
use popcell_core::spec_echoes::ExplainSpec;
use serde_json::Value;
use tokio::sync::Mutex;

pub use change::Change;
pub use discovery::{Discovery, Guard, Progress, refusal};
pub use engaged::Engaged;
pub use instance_types::{InstanceTypeWatch, InstanceTypes};
pub use list_watch::Broken;
pub use popcell_api::names::SINGLE;
pub use popcell_client::{Addressing, Connection, Direct, Projects, Tokens, Transport, client, project_url, tuned};
pub use project_removals::ProjectRemovals;
pub use stats::Stats;
pub use store::Store;
pub use watch_spec::{
    CELL, CELL_NETWORKS, HUB, PROJECT, View, WatchCondition, WatchSpec, WatchSpecs, management, of_source,
};

#[cfg(test)]
pub(crate) use instance_types::Current;
pub(crate) use items::uids;

use crate::critical_tasks::CriticalTasks;
use crate::memory::Memory;
use crate::sync::{lock, read, write};
use engaged::Shared;
use kind_watch::{Reached, Streams};

/// Who is told what happens on planes. Called from the watches' own tasks: it must not wait.
pub trait Listener: Send + Sync {
    /// A store changed.
    fn changed(&self, plane: &Plane, kind: Kind, change: &Change);
    /// The resourceVersions of a plane went back: it was restored from a backup, or is another server. Told before what that
    /// changes.
    fn went_back(&self, _plane: &Plane) {}
    /// A plane was disengaged; nothing more is reported about it until it is engaged again.
    fn disengaged(&self, plane: &Plane);
    /// What versions a plane has reached does not matter any more: a user deleted its Project, or it is of another one.
    fn forgotten(&self, _plane: &Plane) {}
}

/// All engaged planes. Clones share them.
#[derive(Clone)]
pub struct Planes {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Box<dyn Transport>,
    watch_specs: WatchSpecs,
    limits: Limits,
    listener: Arc<dyn Listener>,
    streams: Streams,
    required: CriticalTasks,
    engaged: RwLock<BTreeMap<Plane, Arc<Engaged>>>,
    /// What planes have reached, with the uid of the Project: also those that are not engaged, which may be set back meanwhile.
    reached: std::sync::Mutex<BTreeMap<Plane, (Option<String>, Reached)>>,
    /// One transition at a time: otherwise a plane that comes back while it goes would be watched twice.
    transitions: Mutex<()>,
}

impl Planes {
    /// No plane yet. `watch_specs` says what is watched on a plane, `limits` how much of it is kept.
    pub fn new(
        transport: Box<dyn Transport>,
        watch_specs: WatchSpecs,
        limits: Limits,
        listener: Arc<dyn Listener>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                transport,
                watch_specs,
                limits,
                listener,
                streams: Streams::default(),
                required: CriticalTasks::default(),
                engaged: RwLock::default(),
                reached: std::sync::Mutex::default(),
                transitions: Mutex::default(),
            }),
        }
    }

    /// Begins to watch a plane. Nothing happens where it is engaged already; one of another uid is disengaged first.
    ///
    /// # Errors
    /// The plane has no address, or no client can be made; a server that is unreachable is no error.
    pub async fn engage(&self, plane: &Plane, uid: Option<&str>) -> Result<(), ConnectError> {
        let _turn = self.inner.transitions.lock().await;
        match self.get(plane) {
            Some(engaged) if engaged.uid() == uid => return Ok(()),
            Some(_) => self.end(plane).await,
            None => {}
        }
        let engaged = Engaged::start(
            plane.clone(),
            uid.map(str::to_owned),
            self.inner.transport.connect(plane)?,
            (self.inner.watch_specs)(plane),
            self.inner.limits,
            &Shared {
                streams: &self.inner.streams,
                listener: &self.inner.listener,
                required: &self.inner.required,
                reached: self.reached(plane, uid),
            },
        );
        write(&self.inner.engaged).insert(plane.clone(), Arc::new(engaged));
        Ok(())
    }

    /// Frees all watches of a plane and forgets it.
    pub async fn disengage(&self, plane: &Plane) {
        let _turn = self.inner.transitions.lock().await;
        self.end(plane).await;
    }

    /// Frees all watches of all planes.
    pub async fn disengage_all(&self) {
        for plane in self.planes() {
            self.disengage(&plane).await;
        }
    }

    /// A user deleted its Project: one that is made under its name is another.
    pub fn forget(&self, plane: &Plane) {
        if lock(&self.inner.reached).remove(plane).is_some() {
            self.inner.listener.forgotten(plane);
        }
    }

    fn reached(&self, plane: &Plane, uid: Option<&str>) -> Reached {
        let mut all = lock(&self.inner.reached);
        let known = all.get(plane);
        if let Some((_, reached)) = known.filter(|(known, _)| known.as_deref() == uid) {
            return reached.clone();
        }
        let is_another = known.is_some();
        let reached = Reached::default();
        all.insert(plane.clone(), (uid.map(str::to_owned), reached.clone()));
        drop(all);
        if is_another {
            self.inner.listener.forgotten(plane);
        }
        reached
    }

    async fn end(&self, plane: &Plane) {
        let gone = write(&self.inner.engaged).remove(plane);
        if let Some(engaged) = gone {
            engaged.end().await;
            self.inner.listener.disengaged(plane);
            if engaged.uid().is_none() {
                // It may be another one when it is back.
                self.forget(plane);
            }
        }
    }

    /// A plane, while it is engaged.
    pub fn get(&self, plane: &Plane) -> Option<Arc<Engaged>> {
        read(&self.inner.engaged).get(plane).cloned()
    }

    /// What is remembered of a plane, while it is engaged.
    pub fn memory(&self, plane: &Plane) -> Option<Arc<Memory>> {
        read(&self.inner.engaged)
            .get(plane)
            .map(|engaged| Arc::clone(engaged.memory()))
    }

    /// Addresses of all planes that are engaged.
    pub fn planes(&self) -> Vec<Plane> {
        read(&self.inner.engaged).keys().cloned().collect()
    }

    /// All planes that are engaged.
    pub fn engaged(&self) -> Vec<Arc<Engaged>> {
        read(&self.inner.engaged).values().cloned().collect()
    }

    /// Tells of an object that no watch brings.
    pub fn notify(&self, plane: &Plane, kind: Kind, change: &Change) {
        self.inner.listener.changed(plane, kind, change);
    }

    /// Who is told of watches that end.
    pub(crate) fn required(&self) -> &CriticalTasks {
        &self.inner.required
    }

    /// Values for metrics.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.engaged(), self.inner.streams.counts())
    }
}

impl ExplainSpec for Planes {
    fn explains(&self, target: &Target, desired: &Value, stored: Option<&Value>) -> bool {
        let memory = self.memory(&target.plane);
        memory.is_some_and(|memory| memory.spec_echoes.explains(target, desired, stored))
    }
}

impl fmt::Debug for Planes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(read(&self.inner.engaged).keys()).finish()
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
