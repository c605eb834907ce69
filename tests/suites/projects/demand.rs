//! Streams that an idle project does not cost.

use anyhow::{Context, Result, ensure};
use popcell_api::kind;
use popcell_core::plan;
use popcell_suites::environment::SOON;
use popcell_test_support::{eventually, objects, workspace};
use serde_json::{Value, json};

use crate::environment::{Environment, PROJECTS, id, of_projects, watches};
use crate::watched::Watched;

/// Networks and LocationBindings are watched while there is a Workload, Instances while there is a WorkloadDeployment.
pub(crate) async fn on_demand(environment: &Environment, _: &str) -> Result<()> {
    let watched = Watched::start(environment, PROJECTS).await?;
    let project = id(7);
    environment.create(&project, "web").await?;
    watched.hears(&format!("{project} Workload web")).await?;
    watched.hears(&format!("{project} Network listed")).await?;
    watched.hears(&format!("{project} LocationBinding listed")).await?;
    demanded(environment, [1, 0]).await?;

    let deployment = objects::workload_deployment(&project, "web-us-dfw", "DFW", 1);
    environment.server.create(&deployment, false).await?;
    watched.hears(&format!("{project} Instance listed")).await?;
    demanded(environment, [1, 1]).await?;
    environment.server.create(&instance(&project)?, false).await?;
    watched.hears(&format!("{project} Instance web-us-dfw-0")).await?;
    let plane = plan::Plane::Project(project.clone());
    let engaged = watched.planes.get(&plane).context("not engaged")?;
    let store = engaged.store(kind::INSTANCE).context("no store")?;
    let seen = store
        .get(&project, "web-us-dfw-0")
        .known()
        .flatten()
        .context("unknown")?;
    ensure!(seen.data.get("spec").is_none(), "more than metadata: {:?}", seen.data);

    for (kind, name) in [
        (kind::INSTANCE, "web-us-dfw-0"),
        (kind::WORKLOAD_DEPLOYMENT, "web-us-dfw"),
        (kind::WORKLOAD, "web"),
    ] {
        environment.server.delete(kind, Some(&project), name).await?;
    }
    demanded(environment, [0, 0]).await?;
    ensure!(!store.is_known(), "nobody watches");
    watched.end().await;
    Ok(())
}

async fn demanded(environment: &Environment, expected: [usize; 2]) -> Result<()> {
    eventually(
        &format!("{expected:?} watches of Networks and Instances"),
        SOON,
        async || {
            let found = watches(&environment.server).await?;
            let count = ["networks", "instances"].map(|each| of_projects(&found, each));
            ensure!(count == expected, "{count:?}");
            Ok(())
        },
    )
    .await
}

fn instance(namespace: &str) -> Result<Value> {
    let mut instance = workspace::whole_object("instance")?;
    instance["metadata"] = json!({ "namespace": namespace, "name": "web-us-dfw-0" });
    Ok(instance)
}
