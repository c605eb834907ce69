//! What cargo-deny checks: licences, bans and sources always, advisories where their database can be reached.

use std::process::Command;

use anyhow::{Context, Result};

use crate::steps::Steps;
use crate::test::{cargo, runs};

const WITHOUT_NETWORK: &str = "licences, bans and sources";
const ADVISORIES: &str = "advisories";

/// All checks. Leaves out, and says so, what cannot be checked here.
pub(crate) fn check(steps: &mut Steps) -> Result<()> {
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
/// itself: only when that fails is the step left out. (A `deny.toml` that cannot be read has failed the step before.)
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
