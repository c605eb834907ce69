//! What a fresh machine of a Debian kind lacks; and `ci`: that, and then everything that must pass.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use popcell_module_build::{BuildError, find_toolchain};
use popcell_test_support::{artifacts, missing_for_containers};

use crate::test::{Test, cargo, runs};

/// The newest that Rust 1.95 builds.
const DENY: &str = "0.20.2";

/// A compiler for modules: one that is there, one that rustup brings, or Debian's packages.
pub(crate) fn wasm() -> Result<()> {
    match find_toolchain(&mut |line| println!("{line}")) {
        Err(BuildError::NoToolchain { .. }) if runs(version_of("apt-get")) => {
            packages(&["rustc-web", "cargo-web", "rust-web-src"])?;
            let found = find_toolchain(&mut |line| println!("{line}"));
            found.context("Debian's packages are installed, and still modules cannot be built")?;
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// cargo-deny, which checks licences, bans and sources. Unoptimised: it is compiled longer than it runs.
pub(crate) fn deny() -> Result<()> {
    if runs(cargo(&["deny", "--version"])) {
        return Ok(());
    }
    println!("cargo install cargo-deny@{DENY} --locked --debug");
    let status = cargo(&[
        "install",
        "--quiet",
        &format!("cargo-deny@{DENY}"),
        "--locked",
        "--debug",
    ])
    .status();
    let status = status.context("failed to start cargo")?;
    ensure!(status.success(), "cargo install cargo-deny ended with {status}");
    Ok(())
}

/// libfaketime, with which a test moves the clock of one process.
pub(crate) fn faketime() -> Result<()> {
    if has_faketime() {
        Ok(())
    } else {
        packages(&["faketime"])
    }
}

/// What runs containers, for root: no other user may start them.
fn containers() -> Result<()> {
    match missing_for_containers() {
        Some(missing) if is_root() => {
            println!("{missing}");
            packages(&["containerd", "runc", "containernetworking-plugins"])
        }
        _ => Ok(()),
    }
}

/// Lets three labs run at a time, where we may: their programs watch files, and Linux allows a user 128 such watchers.
pub(crate) fn room_for_labs() {
    const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
    let allowed = std::fs::read_to_string(LIMIT)
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok());
    if allowed.is_some_and(|allowed| allowed < 512) {
        match std::fs::write(LIMIT, "512") {
            Ok(()) => println!("fs.inotify.max_user_instances is 512"),
            Err(error) => println!("fewer labs at a time: failed to write 512 to {LIMIT}: {error}"),
        }
    }
}

/// Whether libfaketime is there.
pub(crate) fn has_faketime() -> bool {
    runs(version_of("faketime"))
}

fn version_of(program: &str) -> Command {
    let mut command = Command::new(program);
    command.arg("--version");
    command
}

/// Installs packages of Debian.
pub(crate) fn packages(packages: &[&str]) -> Result<()> {
    println!("apt-get install {}", packages.join(" "));
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
    if is_root() || !runs(version_of("sudo")) {
        return Command::new("apt-get");
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", "--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

/// Arguments of `ci`.
#[derive(Args)]
pub(crate) struct Ci {
    /// Install only
    #[arg(long)]
    prepare: bool,
}

impl Ci {
    /// Installs what is missing, and runs the tests unless `--prepare` is given.
    pub(crate) fn run(&self) -> Result<()> {
        if let Err(missing) = artifacts::go::version() {
            println!("{missing:#}");
            // Go from Debian fetches the toolchain that the lab names by itself.
            packages(&["golang-go"])?;
        }
        println!("the lab is built by {}", artifacts::go::version()?);
        wasm()?;
        deny()?;
        faketime()?;
        containers()?;
        room_for_labs();
        if self.prepare { Ok(()) } else { Test::default().run() }
    }
}
