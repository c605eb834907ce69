//! The controller where its controllers are switched off.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_suites::environment::{Environment, ORD};
use popcell_test_support::kind::{NETWORK, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Controller, ControllerSpec, always, objects};

const WATCHED: Duration = Duration::from_secs(4);

/// A server that does not know Networks is good enough; Workloads there are not changed.
pub(crate) async fn nothing_is_done(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = environment.lab.plane(ORD).await?;
    ensure!(plane.list(NETWORK, None, "").await.is_err(), "the server has Networks");
    plane.apply(&objects::namespace(namespace)).await?;
    plane
        .create(&objects::workload(namespace, "web", &[("us", &["DFW"], 1)]), false)
        .await?;
    let spec = ControllerSpec::management(plane.kubeconfig(), environment.lab.kubeconfig("hub")?);
    let mut controller = Controller::start(spec.flag("--enable-management-controllers=false")).await?;
    always("the Workload is left alone", WATCHED, async || {
        let workload = plane.expect(WORKLOAD, Some(namespace), "web").await?;
        ensure!(workload.metadata.finalizers.is_none() && workload.data["status"]["conditions"].is_null());
        let made = plane.list(WORKLOAD_DEPLOYMENT, Some(namespace), "").await?.len();
        ensure!(made == 0, "{made} WorkloadDeployments");
        let streams = controller.metric("popcell_watch_streams", &[]).await?;
        ensure!(streams < 0.5, "{streams} streams");
        Ok(())
    })
    .await?;
    controller.end()
}
