//! What an engaged idle project takes, and one with large objects.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{objects, process};
use serde_json::json;

use crate::environment::{CITY, Environment, id};
use crate::plan::{LARGE_BYTES, Plan};
use crate::results::{Memory, Way};

/// A fresh process for each number of projects, and for the largest of them every other way.
pub(crate) async fn measure(environment: &mut Environment, plan: &Plan) -> Result<Vec<Memory>> {
    let mut found = Vec::new();
    for count in plan.projects {
        println!("memory with {count} engaged");
        environment.set_projects(count).await?;
        found.push(one(environment, plan, count, Way::Tls).await?);
    }
    let most = plan.projects.into_iter().max().unwrap_or_default();
    for way in Way::ALL.into_iter().filter(|way| *way != Way::Tls) {
        println!("memory with {most} engaged, {}", way.name());
        found.push(one(environment, plan, most, way).await?);
    }
    Ok(found)
}

/// A fresh process with one project, without and with large WorkloadDeployments that its tenant made. They go again.
pub(crate) async fn large(environment: &mut Environment, plan: &Plan) -> Result<[Memory; 2]> {
    environment.set_projects(1).await?;
    let without = one(environment, plan, 1, Way::Tls).await?;
    let (server, project) = (&environment.server, id(0));
    for number in 0..plan.large {
        let mut deployment = objects::workload_deployment(&project, &format!("large-{number}"), CITY, 1);
        deployment["metadata"]["labels"] = json!({});
        let container = &mut deployment["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
        // Many small values: of all shapes it is the one that takes most when it is decoded.
        let variables =
            (0..LARGE_BYTES / 40).map(|n| json!({ "name": format!("N{n:06}"), "value": format!("{n:07}") }));
        container["env"] = variables.collect();
        server.create(&deployment, false).await?;
    }
    let with = one(environment, plan, 1, Way::Tls).await?;
    for number in 0..plan.large {
        let name = format!("large-{number}");
        server.delete(WORKLOAD_DEPLOYMENT, Some(&project), &name).await?;
    }
    Ok([without, with])
}

async fn one(environment: &Environment, plan: &Plan, projects: usize, way: Way) -> Result<Memory> {
    let began = Instant::now();
    let mut controller = environment.controller(way).await?;
    environment.wait_engaged(&controller, projects).await?;
    let engaged_after_seconds = began.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(plan.settle_seconds)).await;
    environment.wait_engaged(&controller, projects).await?;
    let pid = controller.pid().context("the controller does not run")?;
    let memory = Memory {
        projects,
        way,
        resident_kib: process::resident_kib(pid)?,
        peak_kib: process::peak_kib(pid)?,
        threads: process::threads(pid)?,
        open_files: process::files(pid)?,
        engaged_after_seconds,
    };
    controller.end()?;
    println!("  {} KiB, {} KiB at most", memory.resident_kib, memory.peak_kib);
    Ok(memory)
}
