//! popcell: one WorkloadDeployment of many instances starts, and rolls.

use std::time::Instant;

use anyhow::Result;
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_benches::{MillisSince, Sight, Times, is};
use popcell_suites::read::{at, says};
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use serde_json::{Value, json};

use crate::environment::{BELOW, Environment, REFUSALS, StandIns};
use crate::figures::{Ordered, Who};
use crate::plan::Plan;

const NAME: &str = "ordered";

/// With stand-ins that take no time of their own.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Ordered> {
    let _stand_ins = StandIns::start(environment);
    let mut controller = environment.controller().await?;
    // What a namespace costs once is not what is measured.
    let mut deployments = Sight::of(&environment.cell, WORKLOAD_DEPLOYMENT).await?;
    environment.deployment("warm", 1).await?;
    deployments.of_one(|one| is_done(one, "warm", 1)).await?;

    let mut instances = Sight::of(&environment.cell, INSTANCE).await?;
    let sent = environment.deployment(NAME, plan.slots).await?;
    let done = deployments.of_one(|one| is_done(one, NAME, plan.slots)).await?;
    let start_seconds = done.millis_since(sent) / 1e3;
    let mut ready = Vec::new();
    for ordinal in 0..plan.slots {
        let name = format!("{NAME}-{ordinal}");
        let is_ready = |one: &DynamicObject| is(one, BELOW, &name) && says(one, "Ready", "True", "Available").is_ok();
        ready.push(instances.of_one(is_ready).await?);
    }
    let steps = ready.iter().zip(ready.iter().skip(1));
    let steps = steps.map(|(one, next)| next.millis_since(*one)).collect();

    let restarted = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": restarted } } } });
    let sent = Instant::now();
    let patched = environment
        .cell
        .merge(WORKLOAD_DEPLOYMENT, Some(BELOW), NAME, &patch)
        .await?;
    let generation = patched.metadata.generation.unwrap_or_default();
    let rolled = |one: &DynamicObject| one.metadata.generation == Some(generation) && is_done(one, NAME, plan.slots);
    let done = deployments.of_one(rolled).await?;
    let roll_seconds = done.millis_since(sent) / 1e3;
    environment.clean().await?;
    controller.expect_log_without(&REFUSALS)?;
    controller.end()?;
    Ok(Ordered {
        who: Who::Popcell,
        start_seconds,
        roll_seconds,
        steps: Times::of(steps),
    })
}

/// Whether all instances are ready and of the template that it has now.
pub(crate) fn is_done(deployment: &DynamicObject, name: &str, replicas: i32) -> bool {
    let status = |field: &str| at(deployment, &format!("/status/{field}"));
    let all = Value::from(replicas);
    is(deployment, BELOW, name)
        && *status("readyReplicas") == all
        && *status("updatedReplicas") == all
        && *status("replicas") == all
        && status("observedGeneration").as_i64() == deployment.metadata.generation
}
