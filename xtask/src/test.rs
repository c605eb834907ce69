//! `test`: everything that must pass.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use popcell_test_support::artifacts::{self, Profile};
use popcell_test_support::{manifests, missing_for_containers, pod, workspace};

use crate::crds::Crds;
use crate::steps::Steps;
use crate::{install, module, programs};

/// What repeats tests without servers, one package at a time.
const TESTS: &str = "cargo test -p <package>";

/// Arguments of `test`.
#[derive(Args, Default)]
pub(crate) struct Test {
    /// Run only what needs no servers: formatting, licences, lints, words and links of the docs, and all tests but the suites
    #[arg(long)]
    quick: bool,
    /// Labs that run at a time, one for each suite [default: as many as the machine has room for, at most three]
    #[arg(long, conflicts_with = "quick", value_parser = clap::value_parser!(u8).range(1..=8))]
    labs: Option<u8>,
}

impl Test {
    /// Runs all steps, the cheap ones first, and stops at the first that fails.
    pub(crate) fn run(self) -> Result<()> {
        let mut steps = Steps::new();
        texts(&mut steps)?;
        dependencies(&mut steps)?;
        if self.quick {
            lints(&mut steps)?;
            steps.count("tests without servers", TESTS, programs::without_servers)?;
            steps.skip("the rest", "--quick");
            steps.finish();
            return Ok(());
        }
        lints(&mut steps)?;
        lab(&mut steps)?;
        steps.call("modules", "cargo xtask module", module::build_all)?;
        steps.call("our programs", "cargo build --bins", || {
            artifacts::programs(Profile::Dev).map(|_| ())
        })?;
        let reference = ["reference", "--output=docs/reference/cli.md", "--check"];
        steps.run(
            "the command line's reference is up to date",
            in_root(artifacts::popcell()?).args(reference),
        )?;
        steps.call("manifests can be built", "cargo xtask test", build_manifests)?;
        if !install::has_faketime() {
            steps.skip(
                "a jump of the host's clock",
                "libfaketime is not installed (apt-get install faketime)",
            );
        }
        if let Some(obstacle) = pod::obstacle()? {
            steps.skip("Pods of the manifests", &obstacle);
        }
        steps.count("tests without servers", TESTS, programs::without_servers)?;
        steps.test(
            "examples in the documentation",
            &mut cargo(&["test", "--workspace", "--doc"]),
        )?;
        let labs = self.labs.map_or_else(programs::labs_of_this_machine, usize::from);
        if let Some(missing) = missing_for_containers() {
            steps.skip("containers", &missing);
        }
        let repeat = "cargo test --workspace --test <suite> -- <part of a test's name>";
        steps.count("suites", repeat, |counts| programs::suites(labs, counts))?;
        steps.finish();
        Ok(())
    }
}

/// What can be judged without compiling.
fn texts(steps: &mut Steps) -> Result<()> {
    steps.run("formatting", &mut cargo(&["fmt", "--all", "--check"]))?;
    steps.call("CRDs are up to date", "cargo xtask crds --check", || {
        Crds::check().run()
    })
}

fn lints(steps: &mut Steps) -> Result<()> {
    steps.run(
        "lints",
        &mut cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    )
}

/// The lab's own checks, and its programs.
fn lab(steps: &mut Steps) -> Result<()> {
    steps.call("Go", "go version", || {
        println!("{}", artifacts::go::version()?);
        Ok(())
    })?;
    steps.call("the lab's programs", "cargo xtask lab build", || {
        let programs = match missing_for_containers() {
            None => artifacts::lab_programs_and_kubelet()?,
            Some(_) => artifacts::lab_programs()?,
        };
        println!("{}", programs.display());
        Ok(())
    })?;
    steps.call("formatting of the lab", "(cd tests/lab && gofmt -l .)", go_formatting)?;
    steps.run("lints of the lab", artifacts::go::command().args(["vet", "./..."]))?;
    steps.run("tests of the lab", artifacts::go::command().args(["test", "./..."]))
}

fn go_formatting() -> Result<()> {
    let lab = artifacts::go::command();
    let directory = lab.get_current_dir().unwrap_or(Path::new("."));
    let output = Command::new("gofmt").args(["-l", "."]).current_dir(directory).output();
    let output = output.context("failed to start gofmt, which comes with Go")?;
    let files = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "gofmt: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(
        files.is_empty(),
        "not formatted (gofmt -w): {}",
        files.trim().replace('\n', ", ")
    );
    Ok(())
}

fn build_manifests() -> Result<()> {
    for overlay in manifests::overlays()? {
        let objects = manifests::build(&overlay)?;
        println!("{}: {} objects", overlay.display(), objects.len());
    }
    Ok(())
}

/// The cargo that runs us, in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").map_or_else(|| "cargo".into(), short_name));
    command.args(arguments).current_dir(workspace::root());
    command
}

fn in_root(mut command: Command) -> Command {
    command.current_dir(workspace::root());
    command
}

/// `cargo` where that finds the same program, so that what is printed to be repeated can be read.
fn short_name(path: std::ffi::OsString) -> std::ffi::OsString {
    // A rustup proxy selects the same toolchain by RUSTUP_TOOLCHAIN, which it has set for us.
    if std::env::var_os("RUSTUP_TOOLCHAIN").is_some() {
        "cargo".into()
    } else {
        path
    }
}

/// Whether the command can be started and succeeds; its output is dropped.
pub(crate) fn runs(mut command: Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

const WITHOUT_NETWORK: &str = "licences, bans and sources";
const ADVISORIES: &str = "advisories";

/// All checks. Leaves out, and says so, what cannot be checked here.
fn dependencies(steps: &mut Steps) -> Result<()> {
    if !runs(cargo(&["deny", "--version"])) {
        for step in [WITHOUT_NETWORK, ADVISORIES] {
            steps.skip(step, "cargo-deny is not installed (cargo install cargo-deny)");
        }
        return Ok(());
    }
    steps.run(
        WITHOUT_NETWORK,
        &mut cargo(&["deny", "check", "licenses", "bans", "sources"]),
    )?;
    let mut fetch = cargo(&["deny", "fetch", "db"]);
    // A server that does not answer must neither hold up the tests nor ask for a password.
    fetch.envs([
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_HTTP_LOW_SPEED_LIMIT", "1000"),
        ("GIT_HTTP_LOW_SPEED_TIME", "20"),
    ]);
    let mut check = cargo(&["deny", "--offline", "check", "advisories"]);
    advisories(steps, &mut fetch, &mut check)
}

/// `check` ends alike for an advisory that was found and for a database that is not there, so the database is fetched by
/// itself: only when that fails is the step skipped. (A `deny.toml` that cannot be read has failed the step before.)
fn advisories(steps: &mut Steps, fetch: &mut Command, check: &mut Command) -> Result<()> {
    let fetched = fetch.output().context("failed to start cargo-deny")?;
    if fetched.status.success() {
        return steps.run(ADVISORIES, check);
    }
    let said = String::from_utf8_lossy(&fetched.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    let reason = format!(
        "their database cannot be reached: {}",
        last.unwrap_or("no reason given")
    );
    steps.skip(ADVISORIES, &reason);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fetch: &str, check: &str) -> (Result<()>, Steps) {
        let script = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        let mut steps = Steps::new();
        let result = advisories(&mut steps, &mut script(fetch), &mut script(check));
        (result, steps)
    }

    #[test]
    fn a_database_that_cannot_be_reached_is_reported_and_no_failure() {
        let (result, steps) = outcome("echo 'fatal: no network' >&2; echo >&2; exit 1", "exit 1");
        result.unwrap();
        let summary = steps.summary();
        assert!(
            summary.starts_with("0 passed, 0 failed, skipped: advisories"),
            "{summary}"
        );
    }

    #[test]
    fn an_advisory_that_is_found_is_a_failure() {
        let (result, steps) = outcome("true", "echo 'error[vulnerability]: gone wrong' >&2; exit 1");
        let error = format!("{:#}", result.unwrap_err());
        assert!(error.contains("advisories failed"), "{error}");
        assert!(steps.summary().starts_with("0 passed, 1 failed"), "{}", steps.summary());
    }

    #[test]
    fn without_an_advisory_nothing_is_said_at_the_end() {
        let (result, steps) = outcome("true", "true");
        result.unwrap();
        assert!(!steps.summary().contains("skipped"), "{}", steps.summary());
    }
}
