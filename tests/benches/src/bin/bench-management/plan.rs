//! How much is measured.

use serde::Serialize;

/// A WorkloadDeployment that a tenant makes as large as servers allow.
pub(crate) const LARGE_BYTES: u32 = 1_100_000;

/// Sizes of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    /// Engaged idle projects at which memory is looked at; the first is none.
    pub(crate) projects: [usize; 4],
    /// Engaged projects at which times are taken.
    pub(crate) engaged: [usize; 2],
    /// Times taken of each kind.
    pub(crate) samples: usize,
    /// Objects over which requests are counted.
    pub(crate) objects: usize,
    /// Objects of one project that no server accepts.
    pub(crate) failing: usize,
    /// WorkloadDeployments of [`LARGE_BYTES`] in one project.
    pub(crate) large: usize,
    /// How long memory may come to rest.
    pub(crate) settle_seconds: u64,
}

impl Plan {
    pub(crate) fn full() -> Self {
        Self {
            projects: [0, 100, 300, 1000],
            engaged: [1, 300],
            samples: 200,
            objects: 50,
            failing: 50,
            large: 6,
            settle_seconds: 45,
        }
    }

    pub(crate) fn short() -> Self {
        Self {
            projects: [0, 5, 10, 20],
            engaged: [1, 10],
            samples: 5,
            objects: 5,
            failing: 3,
            large: 2,
            settle_seconds: 2,
        }
    }
}
