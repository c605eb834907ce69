//! Streams, as the server counts them.

use anyhow::{Result, ensure};
use popcell_suites::definitions::set_ready;
use popcell_suites::environment::SOON;
use popcell_test_support::eventually;

use crate::environment::{Environment, PROJECTS, each, id, of_projects, watches};
use crate::watched::Watched;

const LEAVING: usize = 50;

/// 300 idle projects cost 600 streams, 50 that leave free theirs, and the end frees all.
pub(crate) async fn counted(environment: &Environment, _: &str) -> Result<()> {
    streams(environment, 0).await?;
    let watched = Watched::start(environment, PROJECTS).await?;
    streams(environment, PROJECTS).await?;
    let stats = watched.planes.stats();
    ensure!(
        stats.engaged == PROJECTS && stats.streams == 2 * PROJECTS && stats.unreadable == 0,
        "{stats:?}"
    );
    set_all(environment, "False").await?;
    watched.known(PROJECTS - LEAVING).await?;
    streams(environment, PROJECTS - LEAVING).await?;
    ensure!(watched.heard.count(&format!("{} disengaged", id(0))) == 1);
    set_all(environment, "True").await?;
    watched.known(PROJECTS).await?;
    streams(environment, PROJECTS).await?;
    watched.end().await;
    streams(environment, 0).await
}

async fn set_all(environment: &Environment, status: &str) -> Result<()> {
    each(0..LEAVING, async |number| {
        set_ready(&environment.server, &id(number), status).await
    })
    .await
}

/// Waits until the server has one watch of each kind of an idle project for each of so many, and no other of ours.
async fn streams(environment: &Environment, projects: usize) -> Result<()> {
    eventually(&format!("streams of {projects} projects"), SOON, async || {
        let found = watches(&environment.server).await?;
        let count = ["workloads", "workloaddeployments", "networks", "instances"].map(|each| of_projects(&found, each));
        ensure!(count == [projects, projects, 0, 0], "{count:?}");
        Ok(())
    })
    .await
}
