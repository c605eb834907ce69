//! The Lease: all replicas watch, its holder writes (docs/decisions/17-lease-and-admission.md).
//!
//! Invariants
//! - Permission to write ends [`TERM`] after the *sending* of the last renewal that succeeded, by a clock that neither jumps
//!   nor stands while the machine sleeps ([`clock`]). A process that slept longer finds its permission gone when it wakes,
//!   whatever the server would say.
//! - Another replica takes the Lease when it was released, or when the record has not changed for [`DURATION`] of the
//!   replica's own clock. A Lease that is absent counts as such a record: it may have been deleted while somebody held it.
//!   Times in the record are for people: no two clocks are ever compared.
//! - Every write of the Lease names the resourceVersion it was decided on, so of two takers one wins.
//! - `TERM` and the longest write of ours (4 s) are together shorter than `DURATION`, so the last write of a holder has
//!   ended before anybody else's first.

mod clock;
mod error;
mod machine;
mod permit;
mod shell;

use std::time::Duration;

pub use clock::{Clock, Time};
pub use error::{LeaseError, Loss};
pub use permit::{Permit, Releases};
pub use shell::{Keeper, identity};

/// A record that has not changed for so long is nobody's any more.
pub const DURATION: Duration = Duration::from_secs(15);
/// How often the holder renews.
pub const RENEW: Duration = Duration::from_secs(2);
/// How long a renewal permits to write, from its sending.
pub const TERM: Duration = Duration::from_secs(10);
/// How often the others look. A released Lease is taken within this time.
pub const POLL: Duration = Duration::from_secs(1);
/// The longest time of one request for the Lease: three fit into [`TERM`].
pub const REQUEST: Duration = Duration::from_secs(3);
