//! Everything that was measured.

use popcell_benches::{Effort, Times};
use serde::Serialize;

use crate::plan::Plan;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) ordered: Vec<Ordered>,
    pub(crate) grants: Times,
    pub(crate) memory: Vec<Memory>,
    pub(crate) started: Started,
    pub(crate) changed: Changed,
    pub(crate) idle: Idle,
}

/// Who keeps objects in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Who {
    /// No controller: this process sends the requests that cannot be skipped, each request after the answer to the one before.
    BareRequests,
    /// The StatefulSet controller of Kubernetes, with pods.
    StatefulSet,
    /// popcell-controller, with Instances.
    Popcell,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BareRequests => "bare requests",
            Self::StatefulSet => "StatefulSet controller",
            Self::Popcell => "popcell",
        }
    }
}

/// Instances that start one after the other, and are replaced one after the other.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ordered {
    pub(crate) who: Who,
    /// From the creation of their owner until all are ready.
    pub(crate) start_seconds: f64,
    /// From the change of the template until all are others and ready.
    pub(crate) roll_seconds: f64,
    /// From one that is ready to the next, at the start.
    pub(crate) steps: Times,
}

/// A fresh process that has listed what others had made, at rest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) who: Who,
    pub(crate) deployments: usize,
    pub(crate) resident_kib: f64,
    /// The most that it ever had.
    pub(crate) peak_kib: f64,
}

/// Many WorkloadDeployments of one instance each that were made at once.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Started {
    pub(crate) deployments: usize,
    /// From the first until all were ready and told on the hub.
    pub(crate) seconds: f64,
    pub(crate) effort: Effort,
}

/// A provider's word on one of many instances.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Changed {
    /// Until the WorkloadDeployment in the cell counts it.
    pub(crate) to_deployment: Times,
    /// Until the copy on the hub says it.
    pub(crate) to_hub: Times,
    pub(crate) effort: Effort,
}

/// Nothing happens to many WorkloadDeployments.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) seconds: u64,
    /// What the process has more at the end, in KiB of resident memory.
    pub(crate) grown_kib: f64,
    /// Pages that it was given meanwhile.
    pub(crate) page_faults: f64,
    /// Everything that was asked and done, not for each object.
    pub(crate) effort: Effort,
}
