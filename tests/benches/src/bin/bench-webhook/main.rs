//! What interpreting costs: our webhook beside Karmada's example webhook, Karmada's Lua, and a webhook that does nothing.
//!
//! Invariants
//! - Every value comes from this run, and all peers get the same objects from the same client, Karmada's own.
//! - Peers take turns within each operation and round, and a value is the median of the rounds: a machine that is
//!   slower for a while is slower for all of them.
//! - Values are compared with what is required of them, and printed; nothing fails because a machine is slow.
#![forbid(unsafe_code)]

mod client;
mod engine;
mod large;
mod memory;
mod peers;
mod plan;
mod print;
mod report;
mod results;
mod verdict;

use std::process::ExitCode;

use clap::Parser;
use popcell_benches::Run;

use plan::Plan;
use report::Report;

/// Measures interpreter webhooks and Lua with Karmada's own client.
#[derive(Parser)]
#[command(name = "cargo xtask bench webhook")]
struct Flags {
    #[command(flatten)]
    run: Run,
    /// Rounds; a result is their median
    #[arg(long)]
    rounds: Option<usize>,
    /// Calls per round, peer, operation and number of callers
    #[arg(long)]
    count: Option<usize>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Flags { run, rounds, count } = Flags::parse();
    let measure = async move |short: bool| {
        let mut plan = if short { Plan::short() } else { Plan::full() };
        plan.rounds = rounds.unwrap_or(plan.rounds).max(1);
        plan.count = count.unwrap_or(plan.count).max(1);
        Report::measure(&plan).await
    };
    popcell_benches::ended(&run.of("webhook", measure, print::report).await)
}
