//! Everything that was measured.

use std::collections::BTreeMap;

use popcell_benches::{Machine, percentile};
use serde::Serialize;

use crate::plan::Plan;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) load_before: String,
    pub(crate) load_after: String,
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
    /// Nobody: this process sends what cannot be left out, each request after the answer to the one before.
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

/// Times of one thing that happened several times, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Times {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// In the order in which they were taken.
    pub(crate) samples: Vec<f64>,
}

impl Times {
    pub(crate) fn of(samples: Vec<f64>) -> Self {
        Self {
            p50: percentile(&samples, 50),
            p99: percentile(&samples, 99),
            samples,
        }
    }
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

/// What was asked of each server for one object, and what the program did for it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Effort {
    /// Requests of our users that a server dispatched, by plane.
    pub(crate) requests: BTreeMap<String, f64>,
    /// Writes by plane, verb, kind and code, as our program counts them.
    pub(crate) writes: BTreeMap<String, f64>,
    /// Passes by reconciler.
    pub(crate) passes: BTreeMap<String, f64>,
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
