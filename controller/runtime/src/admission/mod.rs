//! The admission webhooks for Workloads and WorkloadDeployments.
//!
//! Invariants
//! - What cannot be looked at is never allowed: an outage of a project's server is a refusal that says so.
//! - A review that has nothing to look at (a spec that did not change, an object that is being deleted, a delete) asks no
//!   server for anything.
//! - Every request that can be read has an answer with its uid before its client gives up.
//! - What is decoded of an object, many times its text, is bounded by the limit of objects, and gone while a server is asked.
//! - A WorkloadDeployment says itself that it is made from a Workload: the project's server is asked for that Workload.
//! - It needs no Lease and no engaged project: clients are made on demand, on every replica.
//!
//! The rules themselves are popcell-core's.

mod ask;
mod review;
mod routes;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use popcell_https::Limits;

pub use routes::{Endpoint, ServeError, router};

use crate::planes::{InstanceTypes, Transport};
use ask::Clients;

/// The longest time of a review: API servers wait 10 s unless they are told otherwise.
const LONGEST: Duration = Duration::from_secs(9);
/// At a stop, what the longest review gets beyond its own time, for its answer to leave.
const MARGIN: Duration = Duration::from_secs(3);

/// Where the project of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// There is one project, on the server that the process runs on.
    Single,
    /// The request names its project in `userInfo.extra`, and is denied when it does not.
    Milo,
}

/// Told the outcome of each review ([`popcell_core::metrics::ADMISSION`]) and how long it took.
pub type Record = Arc<dyn Fn(&'static str, Duration) + Send + Sync>;

/// Reviews Workloads and WorkloadDeployments.
pub struct Admission {
    mode: Mode,
    clients: Clients,
    record: Record,
    limits: Limits,
    /// The most bytes of an object: what has more is not carried either.
    object_bytes: usize,
    types: InstanceTypes,
}

impl Admission {
    /// Makes its own clients with `transport`; no request is sent before the first review. `object_bytes` is the most that an
    /// object may have of JSON without `managedFields` ([`popcell_core::limits::Limits`]).
    pub fn new(mode: Mode, transport: Arc<dyn Transport>, record: Record, object_bytes: usize) -> Self {
        Self {
            mode,
            clients: Clients::new(transport),
            record,
            limits: limits(),
            object_bytes,
            types: InstanceTypes::default(),
        }
    }

    /// With this catalogue in place of the built-in type. A review waits until it was read.
    #[must_use]
    pub fn with_types(mut self, types: InstanceTypes) -> Self {
        self.types = types;
        self
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Limits of the port. A review carries two objects of at most 3 MiB each, which is what an API server takes. Its clients are
/// API servers, so few places do, and leave the memory to what is watched.
fn limits() -> Limits {
    Limits {
        connections: 256,
        connections_per_peer: 128,
        drain: LONGEST + MARGIN,
        ..Limits::default()
    }
}

/// How a review ended, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All rules are kept.
    Allowed,
    /// There was nothing to look at.
    Unread,
    /// A rule is broken, or the user may not.
    Denied,
    /// Refused because it could not be read, or had no answer.
    Error,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Unread => "unread",
            Self::Denied => "denied",
            Self::Error => "error",
        }
    }
}
