//! Many WorkloadDeployments of one instance each: what they take, how they start, and what a change and rest ask for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_benches::{Counters, MillisSince, StatusWatch, Times, for_each, is};
use popcell_suites::read::{at, is_ready, says};
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::process;
use popcell_test_support::{Controller, eventually, objects};
use serde_json::{Value, json};

use crate::environment::{BELOW, Environment, PATIENCE, REFUSALS, StandIns};
use crate::plan::Plan;
use crate::results::{Changed, Idle, Memory, Started, Who};
use crate::stateful_set::{self, Kubelet, LISTED, Manager};

/// Between two looks at all objects: how exact the time of a start is.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

pub(crate) fn name(number: usize) -> String {
    format!("m{number:05}")
}

/// All results with many. The WorkloadDeployments are left behind.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<(Vec<Memory>, Started, Changed, Idle)> {
    let mut stand_ins = StandIns::start(environment);
    let (mut memory, mut started, mut made) = (Vec::new(), None, 0);
    for count in plan.deployments {
        println!("{count} WorkloadDeployments");
        let mut controller = environment.controller().await?;
        if count > made {
            started = Some(start(environment, &controller, made, count).await?);
        }
        made = count;
        controller.end()?;
        let mut controller = environment.controller().await?;
        Counters::at_rest(&environment.planes(), &controller).await?;
        let pid = controller.pid().context("the controller does not run")?;
        memory.push(resident(Who::Popcell, plan, count, pid).await?);
        controller.end()?;
    }
    let mut controller = environment.controller().await?;
    // From here on this process is the provider.
    drop(stand_ins.provider.take());
    println!("changes of {} of them", plan.changes);
    let changed = change(environment, &controller, plan).await?;
    println!("idle");
    let idle = idle(environment, &controller, plan).await?;
    controller.expect_log_without(&REFUSALS)?;
    controller.end()?;
    drop(stand_ins);
    Ok((memory, started.context("none was started")?, changed, idle))
}

async fn resident(who: Who, plan: &Plan, deployments: usize, pid: u32) -> Result<Memory> {
    tokio::time::sleep(Duration::from_secs(plan.settle_seconds)).await;
    Ok(Memory {
        who,
        deployments,
        resident_kib: process::resident_kib(pid)?,
        peak_kib: process::peak_kib(pid)?,
    })
}

/// The same objects of the peer.
pub(crate) async fn peer(environment: &Environment, plan: &Plan) -> Result<Vec<Memory>> {
    let (mut memory, mut made) = (Vec::new(), 0);
    let _kubelet = Kubelet::start(environment);
    for count in plan.deployments {
        println!("{count} StatefulSets");
        let mut manager = Manager::start(environment)?;
        stateful_set::many(environment, made, count).await?;
        made = count;
        manager.expect_alive()?;
        drop(manager);
        let mut manager = Manager::start(environment)?;
        tokio::time::sleep(LISTED).await;
        memory.push(resident(Who::StatefulSet, plan, count, manager.pid()).await?);
        manager.expect_alive()?;
    }
    Ok(memory)
}

/// Makes WorkloadDeployments until there are so many.
async fn start(environment: &Environment, controller: &Controller, made: usize, count: usize) -> Result<Started> {
    let before = Counters::at_rest(&environment.planes(), controller).await?;
    let began = Instant::now();
    for_each(made..count, async |number| {
        environment.deployment(&name(number), 1).await.map(|_| ())
    })
    .await?;
    eventually("all are ready and reported on the hub", PATIENCE, async || {
        // A look lists thousands of objects, which costs the servers as much as their changes do.
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let all = environment.cell.list(WORKLOAD_DEPLOYMENT, Some(BELOW), "").await?;
        let ready = all.iter().filter(|one| at(one, "/status/readyReplicas") == 1).count();
        ensure!(ready == count, "{ready} of {count} are ready");
        let copies = environment.hub.list(INSTANCE, Some(BELOW), "").await?;
        let reported = copies.iter().filter(|one| is_ready(one).is_ok());
        let reported = reported.count();
        ensure!(reported == count, "{reported} of {count} are reported on the hub");
        Ok(())
    })
    .await?;
    let seconds = began.elapsed().as_secs_f64();
    let after = Counters::at_rest(&environment.planes(), controller).await?;
    Ok(Started {
        deployments: count.saturating_sub(made),
        seconds,
        effort: after.since(&before, count.saturating_sub(made)),
    })
}

/// The provider says of one after the other that it is down.
async fn change(environment: &Environment, controller: &Controller, plan: &Plan) -> Result<Changed> {
    let mut deployments = StatusWatch::of(&environment.cell, WORKLOAD_DEPLOYMENT).await?;
    let mut copies = StatusWatch::of(&environment.hub, INSTANCE).await?;
    let before = Counters::at_rest(&environment.planes(), controller).await?;
    let (mut to_deployment, mut to_hub) = (Vec::new(), Vec::new());
    for number in 0..plan.changes {
        let deployment = name(number);
        let instance = format!("{deployment}-0");
        let found = environment.cell.expect(INSTANCE, Some(BELOW), &instance).await?;
        let patch = json!({ "status": { "conditions": with_provider_down(&found) } });
        let sent = Instant::now();
        let api = environment.cell.api(INSTANCE, Some(BELOW));
        let how = kube::api::PatchParams::default();
        api.patch_status(&instance, &how, &kube::api::Patch::Merge(&patch))
            .await
            .context("failed to say that an instance is down")?;
        let counted = |one: &DynamicObject| {
            is(one, BELOW, &deployment) && at(one, "/status/readyReplicas").as_i64().unwrap_or_default() == 0
        };
        to_deployment.push(deployments.of_one(counted).await?.millis_since(sent));
        let reported = |one: &DynamicObject| is(one, BELOW, &instance) && says(one, "Ready", "False", DOWN).is_ok();
        to_hub.push(copies.of_one(reported).await?.millis_since(sent));
    }
    let after = Counters::at_rest(&environment.planes(), controller).await?;
    Ok(Changed {
        to_deployment: Times::of(to_deployment),
        to_hub: Times::of(to_hub),
        effort: after.since(&before, plan.changes),
    })
}

const DOWN: &str = "Failed";

fn with_provider_down(instance: &DynamicObject) -> Value {
    let mut conditions = at(instance, "/status/conditions").clone();
    for one in conditions.as_array_mut().into_iter().flatten() {
        if one["type"] == "Available" {
            *one = objects::condition("Available", "False", DOWN, "The machine ended by itself", 1);
        }
    }
    conditions
}

/// Nothing happens.
async fn idle(environment: &Environment, controller: &Controller, plan: &Plan) -> Result<Idle> {
    let pid = controller.pid().context("the controller does not run")?;
    let before = Counters::at_rest(&environment.planes(), controller).await?;
    let (resident, faults) = (process::resident_kib(pid)?, process::page_faults(pid)?);
    tokio::time::sleep(Duration::from_secs(plan.idle_seconds)).await;
    let (grown_kib, page_faults) = (
        process::resident_kib(pid)? - resident,
        process::page_faults(pid)? - faults,
    );
    let after = Counters::read(&environment.planes(), controller).await?;
    Ok(Idle {
        seconds: plan.idle_seconds,
        grown_kib,
        page_faults,
        effort: after.since(&before, 1),
    })
}
