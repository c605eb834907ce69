//! What the program asks of servers and does itself. Servers count requests by flow, and our users are the only ones of
//! their flow; the program counts its writes and passes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_benches::counted::{grown, passes, writes};
use popcell_test_support::{Controller, eventually, users};

use crate::figures::Effort;
use crate::world::{FLOW, PATIENCE, World};

/// Nothing was requested for so long: all that follows from a change is done.
const QUIET: Duration = Duration::from_secs(3);

/// Counts of a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counters {
    requests: BTreeMap<String, f64>,
    writes: BTreeMap<String, f64>,
    passes: BTreeMap<String, f64>,
}

impl Counters {
    pub(crate) async fn read(world: &World, controller: &Controller) -> Result<Self> {
        let mut requests = BTreeMap::new();
        for (name, plane) in world.planes() {
            requests.insert(name.to_owned(), users::requests(plane, FLOW).await?);
        }
        let page = controller.metrics().await?;
        Ok(Self {
            requests,
            writes: writes(&page),
            passes: passes(&page),
        })
    }

    /// Reads them once nothing more is asked for.
    pub(crate) async fn at_rest(world: &World, controller: &Controller) -> Result<Self> {
        let mut before = Self::read(world, controller).await?;
        eventually("nothing is requested any more", PATIENCE, async || {
            tokio::time::sleep(QUIET).await;
            let now = Self::read(world, controller).await?;
            let rests = now == before;
            before = now.clone();
            ensure!(rests, "{now:?}");
            Ok(now)
        })
        .await
    }

    /// What was done from then to now, for each of so many objects.
    pub(crate) fn since(&self, before: &Self, objects: usize) -> Effort {
        Effort {
            requests: grown(&self.requests, &before.requests, objects),
            writes: grown(&self.writes, &before.writes, objects),
            passes: grown(&self.passes, &before.passes, objects),
        }
    }
}
