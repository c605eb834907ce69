//! Application failover moves what another cell could help, and nothing else.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_api::conditions::{self, reasons};
use popcell_suites::environment::{DFW, Environment};
use popcell_suites::read;
use popcell_test_support::kind::{PROPAGATION_POLICY, RESOURCE_BINDING, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, objects};
use serde_json::json;

use crate::planes::{BINDING, NAME, awaited, deployed};

/// How long an object may be unhealthy before Karmada moves it, in seconds.
const TOLERATED: u64 = 3;
/// Longer than that, after the control has been evicted.
const WATCHED: Duration = Duration::from_secs(2 * TOLERATED);

/// An object that is not available, for `reason`, and whose health Karmada has taken note of.
async fn unavailable(environment: &Environment, namespace: &str, reason: &str, health: &str) -> Result<(Plane, Plane)> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    let generation = object.metadata.generation.context("no generation")?;
    let mut status = objects::cell_status(generation, 1, 0);
    let condition = objects::condition(conditions::AVAILABLE, "False", reason, reason, generation);
    status["conditions"] = json!([condition]);
    cell.set_status(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &status)
        .await?;
    awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
        let found = read::health_on(binding, DFW)?;
        ensure!(found == health, "{reason} is {found}, not {health}");
        Ok(())
    })
    .await?;
    Ok((hub, cell))
}

/// Switched on only now: an object without status is unhealthy, and would be moved before it could say why.
async fn switch_on(hub: &Plane, namespace: &str) -> Result<()> {
    let failover = json!({ "spec": {
        "propagateDeps": true,
        "failover": { "application": {
            "decisionConditions": { "tolerationSeconds": TOLERATED },
            "purgeMode": "Directly",
        } },
    } });
    hub.merge(
        PROPAGATION_POLICY,
        Some(namespace),
        &objects::city_policy_name("DFW"),
        &failover,
    )
    .await?;
    awaited(hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
        let found = read::at(binding, "/spec/failover/application/decisionConditions");
        ensure!(found["tolerationSeconds"] == TOLERATED, "failover is {found}");
        Ok(())
    })
    .await
    .map(|_| ())
}

/// The control, which the network keeps from running, proves that failover works in this environment.
pub(crate) async fn only_where_moving_helps(environment: &Environment, namespace: &str) -> Result<()> {
    let control = format!("{namespace}-control");
    let (hub, dfw) = unavailable(environment, namespace, reasons::IMAGE_UNAVAILABLE, "Unknown").await?;
    unavailable(environment, &control, reasons::NETWORK_FAILED_TO_CREATE, "Unhealthy").await?;
    let before = read::uid(&dfw.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?);
    switch_on(&hub, namespace).await?;
    switch_on(&hub, &control).await?;

    let evicted = awaited(&hub, RESOURCE_BINDING, &control, BINDING, |binding| {
        let tasks = read::at(binding, "/spec/gracefulEvictionTasks");
        ensure!(
            tasks[0]["fromCluster"] == DFW && tasks[0]["reason"] == "ApplicationFailure",
            "eviction tasks are {tasks}"
        );
        Ok(())
    })
    .await;
    let kept = always("the object with a bad image stays", WATCHED, async || {
        let binding = hub.expect(RESOURCE_BINDING, Some(namespace), BINDING).await?;
        let tasks = read::at(&binding, "/spec/gracefulEvictionTasks");
        ensure!(
            tasks.is_null() && read::placed_on(&binding) == [DFW],
            "eviction tasks are {tasks}"
        );
        Ok(())
    })
    .await;
    hub.delete(WORKLOAD_DEPLOYMENT, Some(&control), NAME).await?;
    evicted?;
    kept?;
    let after = read::uid(&dfw.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?);
    ensure!(before == after, "the object in {DFW} was recreated");
    Ok(())
}
