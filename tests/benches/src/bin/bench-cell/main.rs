//! What a cell costs: ordered starts and rolls, grants, memory, requests and reconciles.
//!
//! Invariants
//! - Servers are real: a cell, a hub with Karmada, a project behind the gateway. Our program is the optimised build, as its
//!   shipped users; stand-ins take no time of their own but their requests.
//! - The least that ordered starts can take, and the StatefulSet controller of Kubernetes, run on the same servers in the
//!   same run, each while no other controller is at work.
//! - Values are printed and written; nothing fails because a machine is slow.
#![forbid(unsafe_code)]

mod environment;
mod floor;
mod grants;
mod many;
mod ordered;
mod plan;
mod print;
mod results;
mod stateful_set;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use popcell_benches::Run;

use environment::Environment;
use plan::Plan;
use results::Report;

/// Measures popcell-controller in a cell on real control planes.
#[derive(Parser)]
#[command(name = "cargo xtask bench cell")]
struct Flags {
    #[command(flatten)]
    run: Run,
}

#[tokio::main]
async fn main() -> ExitCode {
    popcell_benches::ended(&Flags::parse().run.of("cell", measure, print::report).await)
}

async fn measure(short: bool) -> Result<Report> {
    let plan = if short { Plan::short() } else { Plan::full() };
    let environment = Environment::start().await?;
    println!("{} in order: the least, StatefulSet, popcell", plan.slots);
    let ordered = vec![
        floor::measure(&environment, &plan).await?,
        stateful_set::measure(&environment, &plan).await?,
        ordered::measure(&environment, &plan).await?,
    ];
    println!("{} grants", plan.grants);
    let grants = grants::measure(&environment, &plan).await?;
    let (mut memory, started, changed, idle) = many::measure(&environment, &plan).await?;
    memory.extend(many::peer(&environment, &plan).await?);
    environment.end().await?;
    Ok(Report {
        plan,
        ordered,
        grants,
        memory,
        started,
        changed,
        idle,
    })
}
