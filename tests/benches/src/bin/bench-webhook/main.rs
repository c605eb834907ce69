//! What interpreting costs: our webhook beside Karmada's example webhook, Karmada's Lua, and a webhook that does nothing.
//!
//! Invariants
//! - Every figure comes from this run, and all peers get the same objects from the same client, Karmada's own.
//! - Peers take turns within each operation and round, and a figure is the median of the rounds: a machine that is
//!   slower for a while is slower for all of them.
//! - Figures are compared with what is required of them, and printed; nothing fails because a machine is slow.
#![forbid(unsafe_code)]

mod client;
mod engine;
mod figures;
mod large;
mod memory;
mod operation;
mod peers;
mod plan;
mod print;
mod report;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use popcell_benches::write_json;
use popcell_test_support::workspace;

use plan::Plan;
use report::Report;

/// Measures interpreter webhooks and Lua with Karmada's own client.
#[derive(Parser)]
#[command(name = "cargo xtask bench webhook")]
struct Flags {
    /// A few calls of everything, to see that it runs; the figures mean nothing
    #[arg(long)]
    short: bool,
    /// Rounds; a figure is their median
    #[arg(long)]
    rounds: Option<usize>,
    /// Calls per round, peer, operation and number of callers
    #[arg(long)]
    count: Option<usize>,
    /// Where the figures go as JSON [default: target/bench/webhook.json]
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    popcell_benches::ended(&run(Flags::parse()).await)
}

async fn run(flags: Flags) -> Result<()> {
    let mut plan = if flags.short { Plan::short() } else { Plan::full() };
    plan.rounds = flags.rounds.unwrap_or(plan.rounds).max(1);
    plan.count = flags.count.unwrap_or(plan.count).max(1);
    let json = flags
        .json
        .unwrap_or_else(|| workspace::target_dir().join("bench/webhook.json"));

    let report = Report::measure(&plan).await?;
    print::report(&report);
    write_json(&report, &json)?;
    println!("\nwritten to {}", json.display());
    Ok(())
}
