//! Namespaces of a project that go and come.

use anyhow::{Result, ensure};
use popcell_suites::steps::gone;
use popcell_test_support::kind::{INSTANCE, NAMESPACE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

const COPY: &str = "web-us-dfw-0";

/// The cell has not taken its copy away yet when the new namespace has the same Workload.
pub(crate) async fn again(environment: &Environment, namespace: &str) -> Result<()> {
    let old = Tenant::new(&environment.lab, P1, namespace).await?;
    old.workload("web", &[("us", &["DFW"], 1)]).await?;
    old.in_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw", |_| Ok(())).await?;
    let copy = objects::instance_copy(&old.below, "web-us-dfw", 0, "dfw");
    old.hub.create(&copy, false).await?;
    old.in_project(INSTANCE, COPY, |_| Ok(())).await?;

    old.project.delete(NAMESPACE, None, namespace).await?;
    gone(&old.project, NAMESPACE, "", namespace).await?;
    old.gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw").await?;

    let new = Tenant::new(&environment.lab, P1, namespace).await?;
    ensure!(new.below != old.below);
    new.workload("web", &[("us", &["DFW"], 1)]).await?;
    new.in_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw", |_| Ok(())).await?;
    always("nothing of the old one is shown", WATCHED, async || {
        let shown = new.names_in_project(INSTANCE).await?;
        ensure!(shown.is_empty(), "{shown:?}");
        Ok(())
    })
    .await?;
    let copies = old.names_in_hub(INSTANCE).await?;
    ensure!(copies == [COPY], "without proof nothing is deleted: {copies:?}");

    old.hub.delete(INSTANCE, Some(&old.below), COPY).await?;
    gone(&old.hub, NAMESPACE, "", &old.below).await?;
    new.hub_namespace_object().await.map(|_| ())
}
