//! Reconcilers: what each observes, which pure decision it asks, and which events enqueue it.
//!
//! Nothing here decides and nothing here writes: decisions are popcell-core's, writing is [`crate::apply`]'s.

mod deployment;
mod event_router;
mod events;
mod federation;
mod gone_sources;
mod hub_namespaces;
mod hub_quota;
mod instance;
mod orphans;
mod owner;
mod policy;
mod project_claims;
mod projection;
mod projection_sweep;
mod remote;
mod removed_cells;
mod removed_cells_record;
#[cfg(test)]
mod tests;
mod workload;

pub use deployment::Deployment;
pub use event_router::{EventRouter, QueuedReconciler};
pub use federation::Federation;
pub use hub_quota::HubQuota;
pub use instance::{INSTANCE_RECONCILER, Instance};
pub use orphans::Orphans;
pub use policy::Policy;
pub use project_claims::ProjectClaims;
pub use projection::Projection;
pub use projection_sweep::ProjectionSweep;
pub use remote::Remote;
pub use removed_cells::RemovedCells;
pub use removed_cells_record::RemovedCellsRecord;
pub use workload::Workload;

use std::sync::Arc;

use gone_sources::GoneSources;
use projection::RemovedProjections;

use crate::cell::Cell;
use crate::queue::Workers;
use crate::reconcile::Reconciler;

/// Reconcilers of the management plane. Without a hub there is nothing but Workloads to reconcile.
pub fn management(hub: bool) -> Vec<Arc<dyn Reconciler>> {
    let mut all: Vec<Arc<dyn Reconciler>> = vec![Arc::new(Workload)];
    if hub {
        all.push(Arc::new(Federation));
        all.push(Arc::new(Policy));
        all.push(Arc::new(HubQuota));
        let removed = Arc::<RemovedProjections>::default();
        all.push(Arc::new(Projection {
            removed: Arc::clone(&removed),
        }));
        all.push(Arc::new(ProjectionSweep { removed }));
        all.push(Arc::new(Orphans::default()));
        let sources = Arc::<GoneSources>::default();
        all.push(Arc::new(RemovedCells {
            sources: Arc::clone(&sources),
        }));
        all.push(Arc::new(RemovedCellsRecord {
            sources: Arc::clone(&sources),
        }));
        all.push(Arc::new(ProjectClaims::new(sources)));
    }
    all
}

/// Reconcilers of a cell. Without hub and quota it writes to no other plane.
pub fn cell(cell: &Arc<Cell>) -> Vec<Arc<dyn Reconciler>> {
    let (networking, single) = (cell.networking, cell.is_project);
    let mut all: Vec<Arc<dyn Reconciler>> = vec![
        Arc::new(Deployment::new(networking, single)),
        Arc::new(Instance { cell: Arc::clone(cell) }),
    ];
    if cell.is_remote() {
        all.push(Arc::new(Remote { cell: Arc::clone(cell) }));
    }
    all
}

/// The queued reconcilers of a cell's reconcilers. The cell enqueues its Instances by theirs.
pub fn queued_cell_reconcilers(of: &Arc<Cell>, workers: Workers) -> Vec<QueuedReconciler> {
    let queued_reconcilers: Vec<QueuedReconciler> = cell(of)
        .into_iter()
        .map(|reconciler| QueuedReconciler::new(reconciler, workers))
        .collect();
    if let Some(queued) = queued_reconcilers
        .iter()
        .find(|queued| queued.reconciler.name() == INSTANCE_RECONCILER)
    {
        of.listen(&queued.queue);
    }
    queued_reconcilers
}
