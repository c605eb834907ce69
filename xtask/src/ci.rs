//! `ci`: what a fresh machine of a Debian kind lacks, and then everything that must pass.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use popcell_test_support::artifacts;

use crate::test::{Test, runs};

/// Arguments of `ci`.
#[derive(Args)]
pub(crate) struct Ci {
    /// Install only
    #[arg(long)]
    prepare: bool,
}

impl Ci {
    /// Installs what is missing, and runs the tests unless told not to.
    pub(crate) fn run(&self) -> Result<()> {
        prepare()?;
        if self.prepare { Ok(()) } else { Test {}.run() }
    }
}

/// Go from Debian fetches the toolchain that the lab names by itself. What the modules need beyond Rust is found, or
/// installed through rustup, when they are built; without rustup it is Debian's packages.
fn prepare() -> Result<()> {
    let mut packages = Vec::new();
    if artifacts::go::version().is_err() {
        packages.push("golang-go");
    }
    if !runs(version_of("rustup")) && !has_wasm_std() {
        packages.extend(["rustc-web", "cargo-web", "rust-web-src"]);
    }
    if packages.is_empty() {
        println!("ci: nothing to install");
    } else {
        install(&packages)?;
    }
    println!("ci: {}", artifacts::go::version()?);
    Ok(())
}

fn version_of(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

/// Whether rustc comes with a standard library for modules.
fn has_wasm_std() -> bool {
    let mut command = Command::new("rustc");
    let output = command
        .args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"])
        .output();
    output.is_ok_and(|output| std::path::Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn install(packages: &[&str]) -> Result<()> {
    println!("ci: apt-get install {}", packages.join(" "));
    for arguments in [
        vec!["update", "-qq"],
        [&["install", "-qq", "-y", "--no-install-recommends"], packages].concat(),
    ] {
        let status = apt_get()
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        let status = status.context("failed to start apt-get")?;
        ensure!(
            status.success(),
            "apt-get ended with {status}; needed are: {}",
            packages.join(" ")
        );
    }
    Ok(())
}

/// `apt-get`, through sudo where we are not root and there is sudo.
fn apt_get() -> Command {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    if root || !runs(version_of("sudo")) {
        return Command::new("apt-get");
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", "--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
    command
}
