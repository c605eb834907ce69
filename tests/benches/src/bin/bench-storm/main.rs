//! What a restart of Karmada asks of the webhook: thousands of objects are interpreted again at once.
//!
//! While controller-manager, scheduler and agent are stopped, every object's status changes in its cell; then all three
//! start, and the clock runs until the hub shows every new status and Karmada records every object as Healthy. Karmada
//! does not repeat a failed InterpretHealth, so a call that is turned away for good would never get there. At the start of
//! the storm the spec of one more object changes, and a second clock runs until its cell has the change.
//!
//! Karmada's limits on its own requests are raised far beyond its defaults: they would spread the storm over minutes.
#![forbid(unsafe_code)]

mod environment;
mod storm;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use popcell_benches::load_average;

use environment::Environment;
use storm::Storm;

/// Restarts a real Karmada with many WorkloadDeployments, and measures how they are interpreted again.
#[derive(Parser)]
#[command(name = "cargo xtask bench storm")]
struct Flags {
    /// WorkloadDeployments, half of them in a Push member and half in a Pull member
    #[arg(long, default_value_t = 2000)]
    objects: usize,
    /// Few objects, to see that it runs; the results mean nothing
    #[arg(long)]
    short: bool,
}

/// What the webhook is given, by the name of the row.
const CONFIGURATIONS: [(&str, &[&str]); 2] = [("2 slots", &["--slots=2"]), ("defaults", &[])];

#[tokio::main]
async fn main() -> ExitCode {
    popcell_benches::ended(&run(&Flags::parse()).await)
}

async fn run(flags: &Flags) -> Result<()> {
    let each = if flags.short { 20 } else { flags.objects.div_ceil(2) };
    println!("load average at the start: {}", load_average()?);
    let environment = Environment::start(each).await?;
    let mut storms = Vec::new();
    for (turn, (name, flags)) in CONFIGURATIONS.into_iter().enumerate() {
        println!("storm: {name}");
        // Every storm brings another number of ready replicas, so that an old status cannot pass for the new one.
        let ready = i32::try_from(turn + 1)?;
        storms.push((name, environment.storm(flags, ready).await?));
    }
    println!("load average at the end: {}\n", load_average()?);
    print(2 * each, &storms);
    environment.end().await
}

fn print(objects: usize, storms: &[(&str, Storm)]) {
    println!("{objects} objects");
    println!(
        "| webhook | all interpreted after | one more change in its cell after | calls | of them InterpretHealth | not ok | 429 | most waiting (p99) | longest call (p99) | CPU of the webhook | peak memory |"
    );
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    for (name, storm) in storms {
        println!(
            "| {name} | {:.1} s | {:.1} s | {} | {} | {} | {} | {} | {} | {:.1} s | {:.0} MiB |",
            storm.took.as_secs_f64(),
            storm.one_more.as_secs_f64(),
            storm.calls,
            storm.health_calls,
            storm.not_ok,
            storm.turned_away,
            storm.queue,
            storm.duration,
            storm.cpu,
            storm.peak_mib
        );
    }
}
