//! Streams, as the server counts them.

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use popcell_suites::definitions::set_ready;
use popcell_suites::world::SOON;
use popcell_test_support::eventually;

use crate::watched::Watched;
use crate::world::{PROJECTS, World, id, of_projects, watches};

const LEAVING: usize = 50;

/// 300 idle projects cost 600 streams, 50 that leave free theirs, and the end frees all.
pub(crate) async fn counted(world: &World, _: &str) -> Result<()> {
    streams(world, 0).await?;
    let watched = Watched::start(world, PROJECTS).await?;
    streams(world, PROJECTS).await?;
    let stats = watched.planes.stats();
    ensure!(
        stats.engaged == PROJECTS && stats.streams == 2 * PROJECTS && stats.unreadable == 0,
        "{stats:?}"
    );
    set_all(world, "False").await?;
    watched.known(PROJECTS - LEAVING).await?;
    streams(world, PROJECTS - LEAVING).await?;
    ensure!(watched.heard.count(&format!("{} disengaged", id(0))) == 1);
    set_all(world, "True").await?;
    watched.known(PROJECTS).await?;
    streams(world, PROJECTS).await?;
    watched.end().await;
    streams(world, 0).await
}

async fn set_all(world: &World, status: &str) -> Result<()> {
    stream::iter(0..LEAVING)
        .map(async |number| set_ready(&world.server, &id(number), status).await)
        .buffer_unordered(8)
        .try_collect()
        .await
}

/// Waits until the server has one watch of each kind of an idle project for each of so many, and no other of ours.
async fn streams(world: &World, projects: usize) -> Result<()> {
    eventually(&format!("streams of {projects} projects"), SOON, async || {
        let found = watches(&world.server).await?;
        let count = ["workloads", "workloaddeployments", "networks", "instances"].map(|each| of_projects(&found, each));
        ensure!(count == [projects, projects, 0, 0], "{count:?}");
        Ok(())
    })
    .await
}
