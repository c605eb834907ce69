//! Command line of popcell: everything behind the thin `main`, so that tests can call it.
//!
//! Invariants: results go to stdout and remarks to stderr; a command ends with a documented [`exit::Exit`]; what is decided
//! (rules, shadows, bundles, verdicts) is a pure function, apart from what is read and written.

#![forbid(unsafe_code)]

pub mod args;
pub mod build;
pub mod cell;
pub mod check;
pub mod console;
pub mod doctor;
pub mod endpoint;
pub mod exit;
pub mod interpret;
pub mod interpreters;
pub mod new;
pub mod orphans;
pub mod planes;
pub mod project;
pub mod quota;
pub mod register;
pub mod reinterpret;
pub mod restart;
pub mod rollout;
pub mod scale;
pub mod test;
pub mod tree;
pub mod version;

pub use args::Cli;
pub use console::Console;

use args::Command;
use clap::CommandFactory as _;
use exit::{Exit, Outcome};

/// Runs one command.
pub fn run(cli: Cli, console: &mut Console) -> Outcome {
    match cli.command {
        Command::New(args) => new::run(&args, console),
        Command::Build(args) => build::run(&args, console),
        Command::Test(args) => test::run(&args, console),
        Command::Interpret(args) => interpret::run(&args, console),
        Command::Check(args) => check::run(&args, console),
        Command::Register(args) => register::run(&args, console),
        Command::Doctor(args) => doctor::run(&args, console),
        Command::Orphans(args) => orphans::run(&args, console),
        Command::Reinterpret(args) => reinterpret::run(&args, console),
        Command::Tree(args) => tree::run(&args, console),
        Command::Cell(args) => cell::run(&args, console),
        Command::Project(args) => project::run(&args, console),
        Command::Scale(args) => scale::run(&args, console),
        Command::Restart(args) => restart::run(&args, console),
        Command::Rollout(args) => rollout::run(&args, console),
        Command::Quota(args) => quota::run(&args, console),
        Command::Completion { shell } => {
            // Into memory first: on a closed pipe clap_complete would panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "popcell", &mut script);
            console.out.write_all(&script)?;
            Ok(Exit::Success)
        }
        Command::Version { output } => version::run(output, console),
        Command::ManPages { directory } => args::man_pages(&directory),
        Command::Reference { output, check } => args::reference(output.as_deref(), check, console),
    }
}

/// A runtime for the commands that talk to servers.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    // kube asks for the process's default; two crypto providers in one process are a panic.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
