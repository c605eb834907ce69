//! The work queue of a reconciler, shared by all planes (docs/decisions/20-queue.md).
//!
//! Invariants: a key is held once, whatever asks for it and how often; two reconciles of one key never run at once; a key
//! that was asked for during its reconcile gets another one; no more reconciles run at once than there are workers, nor
//! more for one tenant than its share. Between tenants with ready keys the turn goes round, but each [`AGEING`]th reconcile
//! goes to the key that has waited longest, so that with many tenants a long line still moves. Where a queue
//! has a pace, no key comes oftener.
//!
//! Why no library: kube-runtime 5.0 has a scheduler, which holds a message once and delays it, and a runner, which has one run of
//! a message at a time and a bound on all. They know no tenants: ready messages come in the order of their times, so one project
//! that floods holds up all others and may take every worker, and there are no backoff for each message and no values.

mod backoff;
mod fair_order;
mod rate_limit;
mod state;
mod work_queue;

use std::fmt;

use popcell_api::names::SINGLE;
use popcell_core::plan::Plane;

pub use backoff::Backoff;
pub(crate) use backoff::jitter;
pub use fair_order::AGEING;
pub use rate_limit::RateLimit;
pub use state::{Queue, Requeue, Stats, Urgency, Workers};
pub use work_queue::WorkQueue;

/// The object of a reconcile by address. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The server.
    pub plane: Plane,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// An object by address.
    pub fn new(plane: &Plane, namespace: &str, name: &str) -> Self {
        Self {
            plane: plane.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The tenant that the key is worked on for.
    pub fn tenant(&self) -> Tenant {
        match &self.plane {
            Plane::Project(id) if id == SINGLE => Tenant::Namespace(self.namespace.clone()),
            Plane::Project(id) => Tenant::Project(id.clone()),
            Plane::Hub | Plane::Cell | Plane::Discovery => Tenant::Namespace(self.namespace.clone()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{} in {}", self.name, self.plane)
    }
}

/// Tenants, between which the queue is fair: projects; on planes that projects share, the namespaces that stand for
/// theirs; and where there is one project only, its namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tenant {
    /// A project's own plane.
    Project(String),
    /// A namespace of the hub, of the cell or of the only project.
    Namespace(String),
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
