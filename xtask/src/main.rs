//! Developer commands: `cargo xtask <command>`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod crds;
mod demo;
mod dist;
mod install;
mod lab;
mod module;
mod programs;
mod steps;
mod test;

/// Developer commands of popcell.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show it: a real Karmada, two cities, and an object on its way to the cell and back
    Demo(demo::Demo),
    /// Run everything that must pass
    Test(test::Test),
    /// Start, end or look at a lab that stays: a real Karmada with a Push and a Pull member
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Build interpreter modules into target/modules
    Module(module::Module),
    /// Run benchmarks in the optimised build
    Bench(bench::Bench),
    /// Write the CRDs to manifests/crds
    Crds(crds::Crds),
    /// Build what operators get: static programs, an image, install files, a chart, checksums
    Dist(dist::Dist),
    /// Install what a fresh CI machine lacks, then run everything that must pass
    Ci(install::Ci),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(command) => command.run(),
        Command::Test(command) => command.run(),
        Command::Lab(command) => command.run(),
        Command::Module(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Crds(command) => command.run(),
        Command::Dist(command) => command.run(),
        Command::Ci(command) => command.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
