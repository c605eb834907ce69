//! Projects that come and go many times.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use popcell_api::kind::{self, Kind};
use popcell_controller_runtime::planes::{Change, Listener};
use popcell_controller_runtime::queue::{Key, WorkQueue, Workers};
use popcell_core::plan::Plane;
use popcell_suites::environment::SOON;
use popcell_test_support::eventually;

use crate::environment::{Environment, id, of_projects, watches};
use crate::watched;

const CYCLES: usize = 500;
/// Cycles after which everything is as large as it gets.
const WARM: usize = 20;
/// Keys that wait when a project goes.
const KEYS: usize = 50;
/// First uses at once.
const USERS: usize = 20;
/// Connections that a pool may hold on to, whatever the number of cycles.
const FILES: usize = 16;

struct Retire(WorkQueue);

impl Listener for Retire {
    fn changed(&self, _: &Plane, _: Kind, _: &Change) {}

    fn disengaged(&self, plane: &Plane) {
        self.0.retire(plane);
    }
}

/// What this process holds: tasks of its runtime, and open files.
#[derive(Clone, Copy, Debug)]
struct ResourceUsage {
    tasks: usize,
    files: usize,
}

impl ResourceUsage {
    fn now() -> Result<Self> {
        Ok(Self {
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            files: std::fs::read_dir("/proc/self/fd")
                .context("failed to count open files")?
                .count(),
        })
    }
}

/// Neither streams nor tasks, files or keys are left of a project that went, however often it came.
pub(crate) async fn nothing_is_left(environment: &Environment, _: &str) -> Result<()> {
    let queue = WorkQueue::new(Workers { total: 1, share: 1 });
    let planes = watched::planes(environment, Arc::new(Retire(queue.clone())))?;
    let plane = Plane::Project(id(40));
    // Discovery engages none: this test does, one by one.
    let mut warm = None;
    for cycle in 0..CYCLES {
        join_all((0..USERS).map(async |_| planes.engage(&plane, Some("uid")).await))
            .await
            .into_iter()
            .collect::<Result<Vec<()>, _>>()?;
        let engaged = planes.get(&plane).context("not engaged")?;
        if cycle % 50 == 0 {
            eventually("it is listed", SOON, async || {
                let store = engaged.store(kind::WORKLOAD).context("no store")?;
                ensure!(store.is_known());
                Ok(())
            })
            .await?;
            let streams = planes.stats().streams;
            ensure!(streams <= 2, "{streams} streams after one engagement by {USERS}");
        }
        for number in 0..KEYS {
            queue.add(Key::new(&plane, "ns", &format!("web-{number}")));
        }
        planes.disengage(&plane).await;
        let stats = queue.stats();
        ensure!(stats.depth == 0 && stats.running == 0, "{stats:?}");
        if cycle == WARM {
            warm = Some(settled(environment).await?);
        }
    }
    let (warm, after) = (warm.context("too few cycles")?, settled(environment).await?);
    ensure!(
        after.tasks <= warm.tasks && after.files <= warm.files + FILES,
        "after {WARM} cycles {warm:?}, after {CYCLES} {after:?}"
    );
    ensure!(
        planes.planes().is_empty() && planes.stats().streams == 0,
        "{:?}",
        planes.stats()
    );
    Ok(())
}

/// Waits until the server has no stream of the project any more.
async fn settled(environment: &Environment) -> Result<ResourceUsage> {
    eventually("no stream is left", SOON, async || {
        let found = watches(&environment.server).await?;
        let left: usize = ["workloads", "workloaddeployments"]
            .map(|each| of_projects(&found, each))
            .iter()
            .sum();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await?;
    let mut least = ResourceUsage::now()?;
    // Connections that are closed take a moment to end their tasks.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let now = ResourceUsage::now()?;
        least = ResourceUsage {
            tasks: least.tasks.min(now.tasks),
            files: least.files.min(now.files),
        };
    }
    Ok(least)
}
