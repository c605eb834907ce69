//! The whole program over many projects.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_api::kind::{self, Kind};
use popcell_core::plan::NAMESPACE;
use popcell_suites::environment::SOON;
use popcell_test_support::{Controller, Plane, eventually, objects};

use crate::environment::{Environment, PROJECTS, each, id};

const FLOOD: usize = 200;
const HUB_KINDS: [Kind; 6] = [
    NAMESPACE,
    kind::WORKLOAD_DEPLOYMENT,
    kind::PROPAGATION_POLICY,
    kind::RESOURCE_BINDING,
    kind::CLUSTER,
    kind::INSTANCE,
];

/// One process serves all projects over one watch of each kind in the hub, and a Workload of a quiet project reaches the
/// hub long before those of one that floods.
pub(crate) async fn served(environment: &Environment, _: &str) -> Result<()> {
    let (loud, quiet) = (id(30), id(31));
    environment.server.apply(&objects::location_binding("DFW")).await?;
    for project in [&loud, &quiet] {
        environment.server.apply(&objects::network(project, "default")).await?;
    }
    let files = tempfile::tempdir()?;
    let milo = environment.gateway.kubeconfig(files.path(), None)?;
    let spec = environment.spec(&milo, environment.lab.kubeconfig("hub")?);
    let mut controller = Controller::start(spec).await?;
    known(&controller).await?;

    // While it sleeps nothing is taken: at its waking the flood is there as a whole.
    controller.signal("STOP")?;
    each(0..FLOOD, async |number| {
        environment.create(&loud, &format!("web-{number}")).await
    })
    .await?;
    environment.create(&quiet, "web").await?;
    controller.signal("CONT")?;
    let hub = environment.lab.hub().await?;
    arrived(environment, &hub, &quiet, 1).await?;
    let others = carried(environment, &hub, &loud).await?;
    ensure!(others < FLOOD / 2, "{others} of the flood were carried first");
    arrived(environment, &hub, &loud, FLOOD).await?;

    for kind in HUB_KINDS {
        let labels = ["plane_kind=\"hub\"".to_owned(), format!("kind=\"{}\"", kind.kind)];
        let labels = labels.each_ref().map(String::as_str);
        let streams = controller.metric("popcell_watch_streams", &labels).await?;
        ensure!(
            (streams - 1.0).abs() < f64::EPSILON,
            "{streams} watches of {}",
            kind.kind
        );
    }
    environment.delete(&quiet, "web").await?;
    each(0..FLOOD, async |number| {
        environment.delete(&loud, &format!("web-{number}")).await
    })
    .await?;
    for project in [&loud, &quiet] {
        arrived(environment, &hub, project, 0).await?;
        eventually("all Workloads are gone", SOON, async || {
            let left = environment.server.list(kind::WORKLOAD, Some(project), "").await?.len();
            ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await?;
    }
    controller.end()
}

/// Waits until every project is engaged and listed.
pub(crate) async fn known(controller: &Controller) -> Result<()> {
    eventually("every project is known", SOON, async || {
        let engaged = controller.metric("popcell_projects_engaged", &[]).await?;
        let unknown = controller
            .metric("popcell_planes_not_synced", &["plane_kind=\"project\""])
            .await?;
        ensure!(
            engaged.to_string() == PROJECTS.to_string() && unknown.abs() < f64::EPSILON,
            "{engaged} engaged, {unknown} unknown"
        );
        Ok(())
    })
    .await
}

/// WorkloadDeployments of a project in the hub.
async fn carried(environment: &Environment, hub: &Plane, project: &str) -> Result<usize> {
    let namespace = environment.server.expect(NAMESPACE, None, project).await?;
    let uid = namespace.metadata.uid.context("a Namespace without uid")?;
    let behind = objects::hub_namespace_name(&uid);
    Ok(hub.list(kind::WORKLOAD_DEPLOYMENT, Some(&behind), "").await?.len())
}

/// Hundreds of them take a while on a machine whose cores are taken.
const ARRIVED: Duration = Duration::from_mins(6);

pub(crate) async fn arrived(environment: &Environment, hub: &Plane, project: &str, number: usize) -> Result<()> {
    eventually(&format!("{number} of {project} are in the hub"), ARRIVED, async || {
        let found = carried(environment, hub, project).await?;
        ensure!(found == number, "{found} are");
        Ok(())
    })
    .await
}
