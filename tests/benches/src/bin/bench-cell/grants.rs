//! From the grant in the project to the gate that goes in the cell. This process is the quota system.

use std::time::Instant;

use anyhow::Result;
use kube::api::DynamicObject;
use popcell_api::gates;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_benches::{MillisSince, StatusWatch, Times, is};
use popcell_suites::read::at;
use popcell_test_support::kind::INSTANCE;
use serde_json::{Value, json};

use crate::environment::{ABOVE, BELOW, Environment, REFUSALS, StandIns};
use crate::floor::granted;
use crate::plan::Plan;

/// Each in a WorkloadDeployment of its own, whose network is there before the grant comes.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Times> {
    let mut stand_ins = StandIns::start(environment);
    drop(stand_ins.quota.take());
    let mut controller = environment.controller().await?;
    let mut claims = StatusWatch::of(&environment.project, RESOURCE_CLAIM).await?;
    let mut instances = StatusWatch::of(&environment.cell, INSTANCE).await?;
    let mut samples = Vec::new();
    for number in 0..plan.grants {
        let name = format!("g{number:04}-0");
        let claim = format!("instance-{name}");
        environment.deployment(&format!("g{number:04}"), 1).await?;
        claims.of_one(|one| is(one, ABOVE, &claim)).await?;
        instances
            .of_one(|one| is(one, BELOW, &name) && *gates_of(one) == json!([{ "name": gates::QUOTA }]))
            .await?;
        let status = json!({ "conditions": [granted()] });
        let sent = Instant::now();
        environment
            .project
            .set_status(RESOURCE_CLAIM, Some(ABOVE), &claim, &status)
            .await?;
        let open = instances
            .of_one(|one| is(one, BELOW, &name) && *gates_of(one) == json!([]))
            .await?;
        samples.push(open.millis_since(sent));
    }
    environment.clean().await?;
    controller.expect_log_without(&REFUSALS)?;
    controller.end()?;
    Ok(Times::of(samples))
}

fn gates_of(instance: &DynamicObject) -> &Value {
    at(instance, "/spec/controller/schedulingGates")
}
