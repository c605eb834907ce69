//! What a controller asks of servers and does itself. Servers count requests by flow, and its users are the only ones of
//! their flow; the controller counts its writes and reconciles.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_test_support::{Controller, Plane, eventually, users};
use serde::Serialize;

use crate::counted::{grown, reconciles, writes};

/// The flow of the users of a controller, on every server.
pub const FLOW: &str = "popcell";
/// Nothing was requested for so long: all that follows from a change is done.
const QUIET: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_mins(15);

/// Counts of a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters {
    requests: BTreeMap<String, f64>,
    writes: BTreeMap<String, f64>,
    reconciles: BTreeMap<String, f64>,
}

/// What was asked of each server for one object, and what the program did for it.
#[derive(Clone, Debug, Serialize)]
pub struct Effort {
    /// Requests of our users that a server dispatched, by plane.
    pub requests: BTreeMap<String, f64>,
    /// Writes by plane, verb, kind and code, as our program counts them.
    pub writes: BTreeMap<String, f64>,
    /// Reconciles by reconciler.
    pub reconciles: BTreeMap<String, f64>,
}

impl Counters {
    /// As they are now. Planes have the names that they have in results.
    pub async fn read(planes: &[(&str, &Plane)], controller: &Controller) -> Result<Self> {
        let mut requests = BTreeMap::new();
        for (name, plane) in planes {
            requests.insert((*name).to_owned(), users::requests(plane, FLOW).await?);
        }
        let page = controller.metrics().await?;
        Ok(Self {
            requests,
            writes: writes(&page),
            reconciles: reconciles(&page),
        })
    }

    /// Reads them once nothing more is asked for.
    pub async fn at_rest(planes: &[(&str, &Plane)], controller: &Controller) -> Result<Self> {
        let mut before = Self::read(planes, controller).await?;
        eventually("nothing is requested any more", PATIENCE, async || {
            tokio::time::sleep(QUIET).await;
            let now = Self::read(planes, controller).await?;
            let rests = now == before;
            before = now.clone();
            ensure!(rests, "{now:?}");
            Ok(now)
        })
        .await
    }

    /// What was done from then to now, for each of so many objects.
    #[must_use]
    pub fn since(&self, before: &Self, objects: usize) -> Effort {
        Effort {
            requests: grown(&self.requests, &before.requests, objects),
            writes: grown(&self.writes, &before.writes, objects),
            reconciles: grown(&self.reconciles, &before.reconciles, objects),
        }
    }
}

impl Effort {
    /// Requests to a plane.
    #[must_use]
    pub fn requests_to(&self, plane: &str) -> f64 {
        self.requests.get(plane).copied().unwrap_or_default()
    }

    /// Writes to planes of one kind.
    #[must_use]
    pub fn writes_to(&self, plane_kind: &str) -> f64 {
        let of_plane = self.writes.iter().filter(|(what, _)| what.starts_with(plane_kind));
        // The sum of nothing is a negative zero, which would be printed as such.
        of_plane.map(|(_, count)| count).sum::<f64>() + 0.0
    }
}
