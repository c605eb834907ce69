//! What a cell costs: ordered starts and rolls, grants, memory, requests and passes.
//!
//! Invariants
//! - Servers are real: a cell, a hub with Karmada, a project behind the gateway. Our program is the optimised build, as its
//!   shipped users; stand-ins take no time of their own but their requests.
//! - The least that ordered starts can take, and the StatefulSet controller of Kubernetes, run on the same servers in the
//!   same run, each while nobody else is at work.
//! - Figures are printed and written; nothing fails because a machine is slow.
#![forbid(unsafe_code)]

mod effort;
mod figures;
mod floor;
mod grants;
mod many;
mod ordered;
mod plan;
mod print;
mod stateful_set;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use popcell_benches::{Machine, load_average, write_json};
use popcell_test_support::workspace;

use figures::Report;
use plan::Plan;
use world::World;

/// Measures popcell-controller in a cell on real control planes.
#[derive(Parser)]
#[command(name = "cargo xtask bench cell")]
struct Flags {
    /// Few objects, to see that it runs; the figures mean nothing
    #[arg(long)]
    short: bool,
    /// Where the figures go as JSON [default: target/bench/cell.json]
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    popcell_benches::ended(&run(Flags::parse()).await)
}

async fn run(flags: Flags) -> Result<()> {
    let plan = if flags.short { Plan::short() } else { Plan::full() };
    let json = flags
        .json
        .unwrap_or_else(|| workspace::target_dir().join("bench/cell.json"));
    let load_before = load_average()?;
    println!("load average at the start: {load_before}");
    let world = World::start().await?;
    println!("{} in order: the least, StatefulSet, popcell", plan.slots);
    let ordered = vec![
        floor::measure(&world, &plan).await?,
        stateful_set::measure(&world, &plan).await?,
        ordered::measure(&world, &plan).await?,
    ];
    println!("{} grants", plan.grants);
    let grants = grants::measure(&world, &plan).await?;
    let (mut memory, started, changed, idle) = many::measure(&world, &plan).await?;
    memory.extend(many::peer(&world, &plan).await?);
    world.end().await?;
    let report = Report {
        machine: Machine::this()?,
        load_before,
        load_after: load_average()?,
        plan,
        ordered,
        grants,
        memory,
        started,
        changed,
        idle,
    };
    print::report(&report);
    write_json(&report, &json)?;
    println!("\nwritten to {}", json.display());
    Ok(())
}
