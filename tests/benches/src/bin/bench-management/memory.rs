//! What an engaged idle project takes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use popcell_test_support::process;

use crate::figures::{Memory, Way};
use crate::plan::Plan;
use crate::world::World;

/// A fresh process for each number of projects, and for the largest of them every other way.
pub(crate) async fn measure(world: &mut World, plan: &Plan) -> Result<Vec<Memory>> {
    let mut found = Vec::new();
    for count in plan.projects {
        println!("memory with {count} engaged");
        world.set_projects(count).await?;
        found.push(one(world, plan, count, Way::Tls).await?);
    }
    let most = plan.projects.into_iter().max().unwrap_or_default();
    for way in Way::ALL.into_iter().filter(|way| *way != Way::Tls) {
        println!("memory with {most} engaged, {}", way.name());
        found.push(one(world, plan, most, way).await?);
    }
    Ok(found)
}

async fn one(world: &World, plan: &Plan, projects: usize, way: Way) -> Result<Memory> {
    let began = Instant::now();
    let mut controller = world.controller(way).await?;
    world.wait_engaged(&controller, projects).await?;
    let engaged_after_seconds = began.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(plan.settle_seconds)).await;
    world.wait_engaged(&controller, projects).await?;
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
    Ok(memory)
}
