//! How much is measured.

use serde::Serialize;

/// Sizes of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    /// Ordered instances of one WorkloadDeployment.
    pub(crate) slots: i32,
    /// Grants, one after the other.
    pub(crate) grants: usize,
    /// WorkloadDeployments of one instance at which memory is looked at; the first is none.
    pub(crate) deployments: [usize; 4],
    /// Instances whose status changes, with the most WorkloadDeployments.
    pub(crate) changes: usize,
    /// How long nothing happens.
    pub(crate) idle_seconds: u64,
    /// How long memory may come to rest.
    pub(crate) settle_seconds: u64,
}

impl Plan {
    pub(crate) fn full() -> Self {
        Self {
            slots: 100,
            grants: 200,
            deployments: [0, 500, 1000, 2000],
            changes: 100,
            idle_seconds: 60,
            settle_seconds: 20,
        }
    }

    pub(crate) fn short() -> Self {
        Self {
            slots: 3,
            grants: 3,
            deployments: [0, 5, 10, 20],
            changes: 5,
            idle_seconds: 5,
            settle_seconds: 2,
        }
    }

    /// The most WorkloadDeployments at once.
    pub(crate) fn most(&self) -> usize {
        self.deployments.into_iter().max().unwrap_or_default()
    }
}
