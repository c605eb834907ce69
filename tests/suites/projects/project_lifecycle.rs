//! Projects that go and come.

use anyhow::{Context, Result, ensure};
use popcell_api::kind;
use popcell_core::plan::Plane;
use popcell_suites::definitions::ready_project;
use popcell_suites::environment::SOON;
use popcell_test_support::eventually;

use crate::environment::{Environment, PROJECTS, id};
use crate::watched::Watched;

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
