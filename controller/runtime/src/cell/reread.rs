//! Claims that are read again while Instances wait for them: a watch can lose an event, and one whose server hangs tells
//! nothing (domain.md 3.8.2, B6b, F4).
//!
//! Invariants: while a watch brings anything, and for a tier after that, nothing is read; a project is read as a whole, at
//! most once a tier of whoever waits there, however many do.

use std::time::Duration;

use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::labels;
use popcell_core::plan::Plane;
use tokio::time::{Instant, sleep};
use tracing::{debug, info};

use super::{Cell, lock};
use crate::world::World;

/// A project whose watch is never quiet is read this often all the same.
const MOST: Duration = Duration::from_mins(5);
/// What a list has and the watch does not bring within this time is lost.
const LATE: Duration = Duration::from_secs(1);

impl Cell {
    /// Compares the claims of a project with what its watch has brought, where an Instance there has waited for a tier. A
    /// watch that has lost something begins anew, and whoever waits is woken by its list.
    pub async fn reread(&self, world: &World, project: &str, tier: Duration) {
        let plane = Plane::Project(project.to_owned());
        let Some(engaged) = world.planes.get(&plane) else {
            return;
        };
        let Some(claims) = engaged.store(RESOURCE_CLAIM) else {
            return;
        };
        let Some(quiet) = claims.quiet_for() else { return };
        if !self.is_due(project, quiet, tier) {
            return;
        }
        let selector = format!("{}={}", labels::SOURCE_CLUSTER, self.cluster);
        let listed = world.applier.list_at(&plane, RESOURCE_CLAIM, None, &selector).await;
        let (listed, version) = match listed {
            Ok(listed) => listed,
            Err(error) => return debug!(%error, "claims that are waited for cannot be read again"),
        };
        if !claims.differs(&listed, &version) {
            return;
        }
        sleep(LATE).await;
        if claims.differs(&listed, &version) {
            info!(%plane, "the watch on claims has lost something: it begins anew");
            claims.distrust();
        }
    }

    fn is_due(&self, project: &str, quiet: Duration, tier: Duration) -> bool {
        let mut read = lock(&self.read);
        let last = read.entry(project.to_owned()).or_insert_with(Instant::now);
        let passed = last.elapsed();
        let is_due = passed >= tier && quiet >= tier || passed >= MOST;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }

    /// A project that is left is not read any more.
    pub(super) fn forget_read(&self, project: &str) {
        lock(&self.read).remove(project);
    }
}
