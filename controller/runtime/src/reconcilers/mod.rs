//! Reconcilers: what each observes, which pure decision it asks, and which events wake it.
//!
//! Nothing here decides and nothing here writes: decisions are popcell-core's, writing is [`crate::apply`]'s.

mod deployment;
mod dispatch;
mod events;
mod federation;
mod hub_quota;
mod instance;
mod orphans;
mod owner;
mod policy;
mod projection;
mod remote;
mod sources;
#[cfg(test)]
mod tests;
mod workload;

pub use deployment::Deployment;
pub use dispatch::{Dispatch, Lane};
pub use federation::Federation;
pub use hub_quota::HubQuota;
pub use instance::{INSTANCE_RECONCILER, Instance};
pub use orphans::Orphans;
pub use policy::Policy;
pub use projection::Projection;
pub use remote::Remote;
pub use sources::Sources;
pub use workload::Workload;

use std::sync::Arc;

use crate::cell::Cell;
use crate::pass::Reconciler;
use crate::queue::Workers;

/// Reconcilers of the management plane. Without a hub there is nothing but Workloads to reconcile.
pub fn management(hub: bool) -> Vec<Arc<dyn Reconciler>> {
    let mut all: Vec<Arc<dyn Reconciler>> = vec![Arc::new(Workload)];
    if hub {
        all.push(Arc::new(Federation));
        all.push(Arc::new(Policy));
        all.push(Arc::new(HubQuota));
        all.push(Arc::new(Projection::default()));
        all.push(Arc::new(Orphans::default()));
        all.push(Arc::new(Sources::default()));
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

/// The lanes of a cell's reconcilers. The cell wakes its Instances by theirs.
pub fn cell_lanes(of: &Arc<Cell>, workers: Workers) -> Vec<Lane> {
    let lanes: Vec<Lane> = cell(of)
        .into_iter()
        .map(|reconciler| Lane::new(reconciler, workers))
        .collect();
    if let Some(lane) = lanes.iter().find(|lane| lane.reconciler.name() == INSTANCE_RECONCILER) {
        of.listen(&lane.queue);
    }
    lanes
}
