//! From events to keys.
//!
//! Invariant: while this process does not lead, events are taken in and enqueue nothing: no worker would run the keys.
//! What it needs to know when it begins to lead is in the stores.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use popcell_api::kind::Kind;
use popcell_core::plan::Plane;

use crate::context::Context;
use crate::planes::{Change, Listener};
use crate::queue::{WorkQueue, Workers};
use crate::reconcile::Reconciler;

/// A reconciler and its queue.
#[derive(Clone)]
pub struct QueuedReconciler {
    /// The reconciler.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its queue.
    pub queue: WorkQueue,
}

impl QueuedReconciler {
    /// At the pace of the reconciler.
    pub fn new(reconciler: Arc<dyn Reconciler>, workers: Workers) -> Self {
        Self {
            queue: WorkQueue::rate_limited(workers, reconciler.rate_limit()),
            reconciler,
        }
    }
}

/// Routes events to every reconciler. The context is set once it exists: it holds the planes, which hold this.
pub struct EventRouter {
    queued_reconcilers: Vec<QueuedReconciler>,
    context: OnceLock<Weak<Context>>,
    leads: AtomicBool,
}

impl EventRouter {
    /// Tells these.
    pub fn new(queued_reconcilers: Vec<QueuedReconciler>) -> Self {
        Self {
            queued_reconcilers,
            context: OnceLock::new(),
            leads: AtomicBool::new(false),
        }
    }

    /// From now on events are heard. Call it before the first plane is engaged.
    pub fn listen(&self, context: &Arc<Context>) {
        // A second state is not listened to.
        let _ = self.context.set(Arc::downgrade(context));
        let queues = self
            .queued_reconcilers
            .iter()
            .map(|queued| (queued.reconciler.name(), queued.queue.clone()));
        context.wait_list.listen(queues.collect());
    }

    /// From now on events enqueue reconcilers; and everything there is gets a reconcile. What is not listed yet is
    /// enqueued by its list.
    pub fn lead(&self) {
        // Events first: one that comes before this has changed the stores before the keys are read from them.
        self.leads.store(true, Ordering::SeqCst);
        let Some(context) = self.context() else { return };
        for QueuedReconciler { reconciler, queue } in &self.queued_reconcilers {
            for key in reconciler.initial_keys(&context) {
                queue.add(key);
            }
        }
    }

    fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }

    /// All reconcilers and their queues.
    pub fn queued_reconcilers(&self) -> &[QueuedReconciler] {
        &self.queued_reconcilers
    }

    fn context(&self) -> Option<Arc<Context>> {
        self.context.get().and_then(Weak::upgrade)
    }
}

impl Listener for EventRouter {
    fn changed(&self, plane: &Plane, kind: Kind, change: &Change) {
        let Some(context) = self.context() else { return };
        context.note(plane, kind, change);
        for queued in &self.queued_reconcilers {
            queued.reconciler.observe_event(plane, kind, change);
        }
        if !self.leads() {
            return;
        }
        for QueuedReconciler { reconciler, queue } in &self.queued_reconcilers {
            // Each once: a worker may take one between two, and would reconcile it twice.
            let keys = BTreeSet::from_iter(reconciler.keys_for_event(&context, plane, kind, change));
            for key in keys {
                if let Some(memory) = context.memory(&key.plane) {
                    memory.enqueue(reconciler.name(), &key);
                }
                let urgency = reconciler.urgency(&context, plane, kind, change, &key);
                queue.add_with(key, urgency);
            }
        }
    }

    fn went_back(&self, plane: &Plane) {
        if let Some(context) = self.context() {
            context.applier.rewound(plane);
        }
    }

    fn disengaged(&self, plane: &Plane) {
        let Some(context) = self.context() else { return };
        context.forget(plane);
        for QueuedReconciler { reconciler, queue } in &self.queued_reconcilers {
            queue.retire(plane);
            let enqueued = reconciler.keys_on_disengage(&context, plane).into_iter();
            enqueued.filter(|_| self.leads()).for_each(|key| queue.add(key));
        }
    }

    fn forgotten(&self, plane: &Plane) {
        if let Some(context) = self.context() {
            context.applier.deletion_guards().forget(plane);
        }
    }
}

#[cfg(test)]
mod tests;
