//! Projects that go and come, and their streams as the server counts them.

use anyhow::{Context, Result, ensure};
use popcell_api::kind;
use popcell_core::plan::Plane;
use popcell_suites::definitions::{ready_project, set_ready};
use popcell_suites::environment::SOON;
use popcell_test_support::{eventually, process};

use crate::environment::{Environment, PROJECTS, each, id, of_projects, watches};
use crate::watched::Watched;

const LEAVING: usize = 50;
/// Memory of an idle project: about ten times what `cargo xtask bench` measures of an optimised build.
const MOST_KIB: f64 = 1024.0;

/// 300 idle projects cost 600 streams and little memory, 50 that leave free theirs, and the end frees all.
pub(crate) async fn counted(environment: &Environment, _: &str) -> Result<()> {
    streams(environment, 0).await?;
    let before = process::resident_kib(std::process::id())?;
    let watched = Watched::start(environment, PROJECTS).await?;
    streams(environment, PROJECTS).await?;
    let grown = (process::resident_kib(std::process::id())? - before) / f64::from(u32::try_from(PROJECTS)?);
    ensure!(grown < MOST_KIB, "an idle project takes {grown:.0} KiB");
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

/// A Project that is deleted and made again under its name is another one: its stores start from nothing.
pub(crate) async fn another_uid(environment: &Environment, _: &str) -> Result<()> {
    let watched = Watched::start(environment, PROJECTS).await?;
    let (project, plane) = (id(9), Plane::Project(id(9)));
    let uid = || -> Result<String> {
        let engaged = watched.planes.get(&plane).context("not engaged")?;
        Ok(engaged.uid().context("no uid")?.to_owned())
    };
    let first = uid()?;
    let api =
        kube::Api::<kube::api::DynamicObject>::all_with(environment.server.client().clone(), &kind::PROJECT.resource());
    api.delete(&project, &kube::api::DeleteParams::default()).await?;
    ready_project(&environment.server, &project).await?;
    eventually("the new Project is engaged", SOON, async || {
        ensure!(uid()? != first, "it is the old one");
        Ok(())
    })
    .await?;
    ensure!(watched.heard.count(&format!("{project} disengaged")) == 1);
    watched.known(PROJECTS).await?;
    ensure!(watched.heard.count(&format!("{project} WorkloadDeployment listed")) == 2);
    watched.end().await;
    Ok(())
}
