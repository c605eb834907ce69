//! Servers that go away.

use anyhow::{Context, Result, ensure};
use popcell_api::kind;
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use popcell_suites::environment::SOON;
use popcell_test_support::{always, eventually};

use crate::environment::{Environment, PROJECTS, id};
use crate::watched::Watched;

/// While the servers are unreachable everything is Unknown and no project is disengaged; what happened meanwhile is told
/// after they are back.
pub(crate) async fn unknown(environment: &Environment, _: &str) -> Result<()> {
    let watched = Watched::start(environment, PROJECTS).await?;
    let project = id(11);
    let engaged = watched
        .planes
        .get(&Plane::Project(project.clone()))
        .context("not engaged")?;
    let store = engaged.store(kind::WORKLOAD).context("no store")?;
    ensure!(store.get(&project, "web") == Observed::Known(None));

    environment.gateway.close();
    eventually("nothing is known", SOON, async || {
        let stats = watched.planes.stats();
        ensure!(stats.unknown == 5 * PROJECTS, "{stats:?}");
        Ok(())
    })
    .await?;
    ensure!(store.get(&project, "web") == Observed::Unknown);
    ensure!(
        store.trouble().is_some_and(|trouble| trouble.contains("Workload")),
        "{:?}",
        store.trouble()
    );
    ensure!(watched.heard.count(&format!("{project} Workload lost")) == 1);
    environment.create(&project, "web").await?;
    let engaged_still = async || {
        let stats = watched.planes.stats();
        ensure!(stats.engaged == PROJECTS, "{stats:?}");
        Ok(())
    };
    always(
        "all projects are engaged",
        std::time::Duration::from_secs(2),
        engaged_still,
    )
    .await?;

    watched.heard.clear();
    environment.gateway.reopen();
    watched.hears(&format!("{project} Workload web")).await?;
    watched.known(PROJECTS).await?;
    ensure!(matches!(store.get(&project, "web"), Observed::Known(Some(_))));
    ensure!(watched.heard.count(&format!("{project} disengaged")) == 0);
    environment.delete(&project, "web").await?;
    watched.end().await;
    Ok(())
}
