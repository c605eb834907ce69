//! Reconcilers: what each observes, which pure decision it asks, and which events wake it (design.md 7.5).
//!
//! Nothing here decides and nothing here writes: decisions are popcell-core's, writing is [`crate::apply`]'s.

mod dispatch;
mod events;
mod federation;
mod orphans;
mod policy;
mod projection;
mod sources;
#[cfg(test)]
mod tests;
mod workload;

pub use dispatch::{Dispatch, Lane};
pub use federation::Federation;
pub use orphans::Orphans;
pub use policy::Policy;
pub use projection::Projection;
pub use sources::Sources;
pub use workload::Workload;

use std::sync::Arc;

use crate::pass::Reconciler;

/// Reconcilers of the management plane. Without a hub there is nothing but Workloads to reconcile.
pub fn management(hub: bool) -> Vec<Arc<dyn Reconciler>> {
    let mut all: Vec<Arc<dyn Reconciler>> = vec![Arc::new(Workload)];
    if hub {
        all.push(Arc::new(Federation));
        all.push(Arc::new(Policy));
        all.push(Arc::new(Projection::default()));
        all.push(Arc::new(Orphans::default()));
        all.push(Arc::new(Sources::default()));
    }
    all
}
