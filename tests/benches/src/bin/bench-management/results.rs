//! Everything that was measured.

use std::collections::BTreeMap;

use popcell_benches::{Effort, Times};
use serde::Serialize;

use crate::plan::Plan;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) memory: Vec<Memory>,
    /// One project without and with large WorkloadDeployments.
    pub(crate) large: [Memory; 2],
    pub(crate) latencies: Vec<Latency>,
    /// Workload to hub beside objects of another project that fail; the first is without these.
    pub(crate) noisy: Vec<Latency>,
    pub(crate) requests: Vec<Requests>,
}

/// How the controller reaches projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Way {
    /// Over TLS, with an authority in the kubeconfig.
    Tls,
    /// Over plain HTTP, with an authority in the kubeconfig that is not used.
    Plain,
    /// Over plain HTTP and without an authority: each client loads those of the system.
    PlainSystemRoots,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Tls, Self::Plain, Self::PlainSystemRoots];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Plain => "plain HTTP",
            Self::PlainSystemRoots => "plain HTTP, system's roots",
        }
    }
}

/// A fresh process after all its idle projects were engaged.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) projects: usize,
    /// How projects were reached.
    pub(crate) way: Way,
    pub(crate) resident_kib: f64,
    /// The most that it ever had.
    pub(crate) peak_kib: f64,
    pub(crate) threads: f64,
    pub(crate) open_files: usize,
    /// From the start of the process until every project was watched.
    pub(crate) engaged_after_seconds: f64,
}

/// Times from one event to another.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) what: &'static str,
    pub(crate) engaged: usize,
    #[serde(flatten)]
    pub(crate) times: Times,
}

impl Latency {
    pub(crate) fn of(what: &'static str, engaged: usize, samples: Vec<f64>) -> Self {
        Self {
            what,
            engaged,
            times: Times::of(samples),
        }
    }
}

/// What one change of many equal ones asked of the servers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Requests {
    pub(crate) what: &'static str,
    pub(crate) objects: usize,
    #[serde(flatten)]
    pub(crate) effort: Effort,
    /// What else the projects' server counts for each object, whoever asked: reads of single objects, and events.
    pub(crate) seen: BTreeMap<String, f64>,
}
