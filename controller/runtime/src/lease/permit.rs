//! What the rest of the process knows of the Lease.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::clock::{Clock, Time};
use crate::sync::lock;

/// Permission to write. Clones share it; to ask is cheap, so ask before every write.
#[derive(Clone, Debug)]
pub struct Permit {
    /// `None`: this process is the only one.
    until: Option<watch::Receiver<Option<Time>>>,
    clock: Clock,
}

impl Permit {
    /// Of a process that is told to be the only one, or that writes nothing.
    pub fn sole() -> Self {
        Self {
            until: None,
            clock: Clock::Boot,
        }
    }

    pub(super) fn of(until: watch::Receiver<Option<Time>>, clock: Clock) -> Self {
        let until = Some(until);
        Self { until, clock }
    }

    /// Whether a write may be sent now.
    pub fn holds(&self) -> bool {
        let Some(until) = &self.until else { return true };
        let until = *until.borrow();
        until.is_some_and(|until| self.clock.now() < until)
    }

    /// Waits until writes may be sent: true. False: `stop` came first, or the Lease is no longer renewed.
    pub async fn wait(&self, stop: &CancellationToken) -> bool {
        let Some(mut until) = self.until.clone() else {
            return true;
        };
        loop {
            // Seen before the look, so that no change between the two is lost.
            until.mark_unchanged();
            if self.holds() {
                return true;
            }
            tokio::select! {
                changed = until.changed() => if changed.is_err() { return false },
                () = stop.cancelled() => return false,
            }
        }
    }
}

/// Passes on each value that was put on the Lease as `compute.datumapis.com/mass-delete`, which releases the deletion guard
/// once. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Releases(Arc<Released>);

#[derive(Debug, Default)]
struct Released {
    /// Values that were not taken yet.
    values: Mutex<BTreeSet<String>>,
    news: Notify,
}

impl Releases {
    /// Waits for the next one, and gives its value. Each is reported once, to one who waits, also when it came before the
    /// call; several of one value before one call are one.
    pub async fn next(&self) -> String {
        loop {
            if let Some(value) = lock(&self.0.values).pop_first() {
                return value;
            }
            self.0.news.notified().await;
        }
    }

    pub(super) fn notify(&self, value: String) {
        lock(&self.0.values).insert(value);
        self.0.news.notify_one();
    }
}
