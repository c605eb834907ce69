//! What the management plane costs: memory for each engaged project, time from project to hub and back, requests.
//!
//! Invariants
//! - Servers are real: one API server for all projects behind the project gateway, and Karmada with one member. Our
//!   program is the optimised build, reaches projects over TLS, and is the only user of its name on both servers.
//! - Times are between what this process sends and what its own watches tell it. Objects come one after the other, so
//!   nothing waits for another of ours.
//! - Values are printed and written; nothing fails because a machine is slow.
#![forbid(unsafe_code)]

mod environment;
mod failing;
mod front;
mod latency;
mod memory;
mod noisy;
mod plan;
mod print;
mod requests;
mod results;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use popcell_benches::Run;

use environment::Environment;
use plan::Plan;
use results::{Report, Way};

/// Measures popcell-controller with many projects on real control planes.
#[derive(Parser)]
#[command(name = "cargo xtask bench management")]
struct Flags {
    #[command(flatten)]
    run: Run,
}

#[tokio::main]
async fn main() -> ExitCode {
    popcell_benches::ended(&Flags::parse().run.of("management", measure, print::report).await)
}

async fn measure(short: bool) -> Result<Report> {
    let plan = if short { Plan::short() } else { Plan::full() };
    let mut environment = Environment::start(&plan).await?;
    let memory = memory::measure(&mut environment, &plan).await?;
    println!("{} large objects", plan.large);
    let large = memory::large(&mut environment, &plan).await?;
    let mut latencies = Vec::new();
    let mut requests = Vec::new();
    for engaged in plan.engaged {
        println!("latency with {engaged} engaged");
        environment.set_projects(engaged).await?;
        let mut controller = environment.controller(Way::Tls).await?;
        environment.wait_engaged(&controller, engaged).await?;
        latencies.extend(latency::measure(&environment, &plan, engaged).await?);
        environment.clean(engaged).await?;
        if engaged == 1 {
            println!("requests");
            requests = requests::measure(&environment, &controller, plan.objects).await?;
            environment.clean(engaged).await?;
        }
        controller.end()?;
    }
    environment.set_projects(noisy::PROJECTS).await?;
    let mut controller = environment.controller(Way::Tls).await?;
    environment.wait_engaged(&controller, noisy::PROJECTS).await?;
    let noisy = noisy::measure(&environment, &plan).await?;
    controller.end()?;
    environment.end().await?;
    Ok(Report {
        plan,
        memory,
        large,
        latencies,
        noisy,
        requests,
    })
}
