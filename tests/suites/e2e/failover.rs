//! Application failover moves what another cell could help, and nothing else.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::conditions::reasons;
use popcell_suites::environment::{DFW, Environment};
use popcell_suites::read;
use popcell_test_support::kind::PROPAGATION_POLICY;
use popcell_test_support::{always, objects};
use serde_json::json;

use crate::planes::Deployed;

/// How long an object may be unhealthy before Karmada moves it, in seconds.
const TOLERATED: u64 = 3;
/// Longer than that, after the control has been evicted.
const WATCHED: Duration = Duration::from_secs(2 * TOLERATED);

/// An object that is not available, for `reason`, and whose health Karmada has taken note of.
async fn unavailable(environment: &Environment, namespace: &str, reason: &str, health: &str) -> Result<Deployed> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    deployed.report_available(1, "False", reason).await?;
    deployed.is(health).await?;
    Ok(deployed)
}

/// Switched on only now: an object without status is unhealthy, and would be moved before it could say why.
async fn switch_on(deployed: &Deployed) -> Result<()> {
    let failover = json!({ "spec": {
        "propagateDeps": true,
        "failover": { "application": {
            "decisionConditions": { "tolerationSeconds": TOLERATED },
            "purgeMode": "Directly",
        } },
    } });
    let (here, policy) = (Some(deployed.namespace.as_str()), objects::city_policy_name("DFW"));
    deployed.hub.merge(PROPAGATION_POLICY, here, &policy, &failover).await?;
    deployed
        .awaited_binding(|binding| {
            let found = read::at(binding, "/spec/failover/application/decisionConditions");
            ensure!(found["tolerationSeconds"] == TOLERATED, "failover is {found}");
            Ok(())
        })
        .await
        .map(|_| ())
}

/// The control, which the network keeps from running, proves that failover works in this environment.
pub(crate) async fn only_where_moving_helps(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = unavailable(environment, namespace, reasons::IMAGE_UNAVAILABLE, "Unknown").await?;
    let network = reasons::NETWORK_FAILED_TO_CREATE;
    let control = unavailable(environment, &format!("{namespace}-control"), network, "Unhealthy").await?;
    let before = read::uid(&deployed.in_cell().await?);
    switch_on(&deployed).await?;
    switch_on(&control).await?;

    let evicted = control.awaited_binding(|binding| {
        let tasks = read::at(binding, "/spec/gracefulEvictionTasks");
        ensure!(
            tasks[0]["fromCluster"] == DFW && tasks[0]["reason"] == "ApplicationFailure",
            "eviction tasks are {tasks}"
        );
        Ok(())
    });
    let evicted = evicted.await;
    let kept = always("the object with a bad image stays", WATCHED, async || {
        let binding = deployed.binding().await?;
        let tasks = read::at(&binding, "/spec/gracefulEvictionTasks");
        ensure!(
            tasks.is_null() && read::placed_on(&binding) == [DFW],
            "eviction tasks are {tasks}"
        );
        Ok(())
    })
    .await;
    control.delete().await?;
    evicted?;
    kept?;
    deployed.is_kept(&before).await
}
