//! Reconcilers: what each observes, which pure decision it asks, and which events enqueue it.
//!
//! Nothing here decides and nothing here writes: decisions are popcell-core's, writing is [`crate::apply`]'s.

mod claim_projects;
mod data_copy;
mod deployment;
mod event_router;
mod events;
mod federation;
mod gone_sources;
mod hub_namespaces;
mod hub_quota;
mod instance;
mod instance_claim;
mod instance_copy;
mod orphans;
mod policy;
mod project_claims;
mod projection;
mod projection_sweep;
mod reference_copy;
mod removed_cells;
mod removed_cells_record;
#[cfg(test)]
mod tests;
mod workload;

pub use claim_projects::ClaimProjects;
pub use data_copy::DataCopy;
pub use deployment::Deployment;
pub use event_router::{EventRouter, QueuedReconciler};
pub use federation::Federation;
pub use hub_quota::HubQuota;
pub use instance::Instance;
pub use instance_claim::InstanceClaim;
pub use instance_copy::InstanceCopy;
pub use orphans::Orphans;
pub use policy::Policy;
pub use project_claims::ProjectClaims;
pub use projection::Projection;
pub use projection_sweep::ProjectionSweep;
pub use reference_copy::ReferenceCopy;
pub use removed_cells::RemovedCells;
pub use removed_cells_record::RemovedCellsRecord;
pub use workload::Workload;

use std::sync::Arc;

use gone_sources::GoneSources;
use projection::RemovedProjections;

use crate::cell::Cell;
use crate::reconcile::Reconciler;

/// Reconcilers of the management plane. Without a hub there is nothing but Workloads to reconcile.
pub fn management(hub: bool) -> Vec<Arc<dyn Reconciler>> {
    let mut all: Vec<Arc<dyn Reconciler>> = vec![Arc::new(Workload)];
    if hub {
        all.push(Arc::new(Federation));
        all.push(Arc::new(Policy));
        all.push(Arc::new(HubQuota));
        all.push(Arc::new(ReferenceCopy));
        all.push(Arc::new(DataCopy::default()));
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
    if cell.hub {
        all.push(Arc::new(InstanceCopy { cell: Arc::clone(cell) }));
    }
    if cell.quota {
        all.push(Arc::new(InstanceClaim { cell: Arc::clone(cell) }));
        all.push(Arc::new(ClaimProjects::new(Arc::clone(cell))));
    }
    all
}
