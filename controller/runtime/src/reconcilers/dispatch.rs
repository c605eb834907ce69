//! From events to keys.
//!
//! Invariant: while this process does not lead, events are taken in and wake nobody: nobody would work on the keys. What it
//! needs to know when it begins to lead is in the stores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use popcell_api::kind::Kind;
use popcell_core::plan::Plane;

use crate::pass::Reconciler;
use crate::planes::{Change, Listener};
use crate::queue::{WorkQueue, Workers};
use crate::world::World;

/// A reconciler and its queue.
#[derive(Clone)]
pub struct Lane {
    /// The reconciler.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its queue.
    pub queue: WorkQueue,
}

impl Lane {
    /// At the pace of the reconciler.
    pub fn new(reconciler: Arc<dyn Reconciler>, workers: Workers) -> Self {
        Self {
            queue: WorkQueue::paced(workers, reconciler.pace()),
            reconciler,
        }
    }
}

/// Wakes every reconciler. The world is given once it is made: it holds the planes, which hold this.
pub struct Dispatch {
    lanes: Vec<Lane>,
    world: OnceLock<Weak<World>>,
    leads: AtomicBool,
}

impl Dispatch {
    /// Tells these.
    pub fn new(lanes: Vec<Lane>) -> Self {
        Self {
            lanes,
            world: OnceLock::new(),
            leads: AtomicBool::new(false),
        }
    }

    /// From now on events are heard. Call it before the first plane is engaged.
    pub fn listen(&self, world: &Arc<World>) {
        // A second world is not listened to.
        let _ = self.world.set(Arc::downgrade(world));
        let queues = self
            .lanes
            .iter()
            .map(|lane| (lane.reconciler.name(), lane.queue.clone()));
        world.waiting.listen(queues.collect());
    }

    /// From now on events wake reconcilers; and everything there is gets a pass. What is not listed yet is woken by its
    /// list.
    pub fn lead(&self) {
        // Events first: one that comes before this has changed the stores before the keys are read from them.
        self.leads.store(true, Ordering::SeqCst);
        let Some(world) = self.world() else { return };
        for Lane { reconciler, queue } in &self.lanes {
            for key in reconciler.all(&world) {
                queue.add(key);
            }
        }
    }

    fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }

    /// All reconcilers and their queues.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn world(&self) -> Option<Arc<World>> {
        self.world.get().and_then(Weak::upgrade)
    }
}

impl Listener for Dispatch {
    fn changed(&self, plane: &Plane, kind: Kind, change: &Change) {
        let Some(world) = self.world() else { return };
        world.note(plane, kind, change);
        for lane in &self.lanes {
            lane.reconciler.note(plane, kind, change);
        }
        if !self.leads() {
            return;
        }
        for Lane { reconciler, queue } in &self.lanes {
            for key in reconciler.wake(&world, plane, kind, change) {
                if let Some(memory) = world.memory(&key.plane) {
                    memory.wake(reconciler.name(), &key);
                }
                queue.add_after(key.clone(), reconciler.debounce(&world, plane, kind, change, &key));
            }
        }
    }

    fn went_back(&self, plane: &Plane) {
        if let Some(world) = self.world() {
            world.applier.rewound(plane);
        }
    }

    fn disengaged(&self, plane: &Plane) {
        let Some(world) = self.world() else { return };
        world.forget(plane);
        for Lane { reconciler, queue } in &self.lanes {
            queue.retire(plane);
            let woken = reconciler.left(&world, plane).into_iter();
            woken.filter(|_| self.leads()).for_each(|key| queue.add(key));
        }
    }

    fn forgotten(&self, plane: &Plane) {
        if let Some(world) = self.world() {
            world.applier.brakes().forget(plane);
        }
    }
}

#[cfg(test)]
mod tests;
