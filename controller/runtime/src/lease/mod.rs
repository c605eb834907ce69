//! The Lease: all replicas watch, its holder writes (docs/decisions/17-lease-and-admission.md).
//!
//! Invariants
//! - Permission to write ends [`TERM`] after the *sending* of the last renewal that succeeded, by a clock that neither jumps
//!   nor stands while the machine sleeps ([`clock`]). A process that slept longer finds its permission gone when it resumes,
//!   whatever the server would say.
//! - Another replica takes the Lease when it was released, or when the record has not changed for [`DURATION`] of the
//!   replica's own clock. A Lease that is absent counts as such a record: it may have been deleted while a replica held it.
//!   Times in the record are for people: no two clocks are ever compared.
//! - Every write of the Lease names the resourceVersion it was decided on, so of two takers one wins.
//! - `TERM` and the longest write of ours (4 s) are together shorter than `DURATION`, so the last write of a holder has
//!   ended before another owner's first.
//!
//! Why no library: those that there are have the protocol of client-go, which elects a leader and fences nothing. kubert 0.25
//! needs kube-client 1.1, takes the Lease by server-side apply, and compares `renewTime` with the clock of its own machine, so
//! that a clock that is fast takes a Lease that is held. kube-coordinate 2.0.0-rc.0 needs kube 2. Neither says until when a
//! write may be sent, nor by a clock that goes on while the machine sleeps. popcell uses kube 5.

mod clock;
mod elector;
mod permit;
mod state_machine;

use std::fmt;
use std::time::Duration;

use thiserror::Error;

pub use clock::{Clock, Time};
pub use elector::{LeaderElector, identity};
pub use permit::{Permit, Releases};

/// A record that has not changed for so long has no holder any more.
pub const DURATION: Duration = Duration::from_secs(15);
/// How often the holder renews.
pub const RENEW: Duration = Duration::from_secs(2);
/// How long a renewal permits to write, from its sending.
pub const TERM: Duration = Duration::from_secs(10);
/// How often the others look. A released Lease is taken within this time.
pub const POLL: Duration = Duration::from_secs(1);
/// The longest time of one request for the Lease: three fit into [`TERM`].
pub const REQUEST: Duration = Duration::from_secs(3);

/// Since when the record of a Lease is as it is, given what was seen of it before. That alone tells whether its holder lives:
/// the times in it are of other clocks.
pub(crate) fn unchanged_since<R: PartialEq, T>(before: Option<(&R, T)>, record: &R, now: T) -> T {
    match before {
        Some((seen, since)) if seen == record => since,
        _ => now,
    }
}

/// The Lease was lost. The process has to exit: others write now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to keep the Lease {lease}: {loss}")]
pub struct LeaseError {
    /// Namespace and name.
    pub lease: String,
    /// How.
    pub loss: Loss,
}

/// How a Lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No renewal succeeded in time: the server was unreachable, or the process slept.
    Expired,
    /// Another replica holds it.
    Taken(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => write!(
                f,
                "it was not renewed for {} s: its server was unreachable, or this process was held up",
                TERM.as_secs()
            ),
            Self::Taken(holder) => write!(f, "{holder} has taken it"),
        }
    }
}
