//! Suites side by side: each runs on a lab of its own, and a lab mostly waits.
//!
//! Cargo builds all of them at once and then holds no lock. Long suites are dealt out over several labs. What a suite prints
//! is kept in a file and shown when it has ended, failed ones last, so that the end of the output says what is wrong.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use popcell_test_support::workspace;
use serde_json::Value;

use crate::steps::{Counts, result_of};
use crate::test::{SUITES, cargo};

/// Labs that a suite is dealt out over, the longest shares first. A suite that is not named here has one, and comes last.
const SHARES: [(&str, usize); 5] = [
    ("cell", 3),
    ("restores", 1),
    ("management", 2),
    ("projects", 1),
    ("e2e", 2),
];

/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 10;

/// Instances of inotify that one lab needs, with room; Linux allows a user 128 unless told otherwise.
const INOTIFY_PER_LAB: usize = 100;

/// Memory that one lab takes with its suite, in KiB, with room.
const MEMORY_PER_LAB: usize = 3 << 20;

/// One share of a suite, which one process runs on one lab.
struct Share {
    suite: String,
    program: PathBuf,
    /// Which of how many, from 1.
    part: usize,
    of: usize,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            1 => f.write_str(&self.suite),
            _ => write!(f, "{}-{}", self.suite, self.part),
        }
    }
}

/// What came of a share.
struct Outcome {
    name: String,
    output: String,
    seconds: f64,
    failure: Option<String>,
}

/// Builds all suites and runs them on up to `labs` labs at a time; adds up what passed and failed.
///
/// # Errors
/// Names the suites that failed, with the command that repeats one.
pub(crate) fn run(labs: usize, counts: &mut Counts) -> Result<()> {
    let logs = workspace::target_dir().join("suites");
    fs::create_dir_all(&logs).with_context(|| format!("failed to make {}", logs.display()))?;
    let waiting = Mutex::new(shares(&programs()?));
    let ended = Mutex::new(Vec::new());
    println!("{labs} labs at a time; output goes to {}", logs.display());
    std::thread::scope(|scope| {
        for _ in 0..labs {
            scope.spawn(|| {
                loop {
                    // Bound first: in the condition of a `while let` the guard would live as long as the body.
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(share) = next else { break };
                    let outcome = run_one(&share, &logs);
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    report(ended.into_inner().unwrap_or_else(PoisonError::into_inner), counts)
}

/// As many labs as this machine has room for, at most three: with more, two cores are the limit.
pub(crate) fn labs_of_this_machine() -> usize {
    let number = |path: &str, field: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field).map(str::to_owned));
        line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok())
    };
    let inotify = number("/proc/sys/fs/inotify/max_user_instances", "").unwrap_or(128);
    let memory = number("/proc/meminfo", "MemAvailable:").unwrap_or(MEMORY_PER_LAB);
    (inotify / INOTIFY_PER_LAB).min(memory / MEMORY_PER_LAB).clamp(1, 3)
}

/// The suites' programs, by name. The whole workspace is built, with the features of all other commands.
fn programs() -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo(&[
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.context("failed to start cargo test --no-run")?;
    ensure!(
        output.status.success(),
        "failed to build the suites: cargo ended with {}",
        output.status
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let found: BTreeMap<_, _> = messages.lines().filter_map(suite_of).collect();
    ensure!(!found.is_empty(), "cargo built no test of {SUITES}");
    Ok(found)
}

/// The suite that a line of cargo's messages tells of.
fn suite_of(line: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let ours = text("/manifest_path")?.ends_with("tests/suites/Cargo.toml") && text("/target/kind/0")? == "test";
    ours.then_some((text("/target/name")?.to_owned(), text("/executable")?.into()))
}

/// All shares, those of the longest suites first.
fn shares(programs: &BTreeMap<String, PathBuf>) -> VecDeque<Share> {
    let long = SHARES
        .iter()
        .filter_map(|(name, of)| Some((*name, programs.get(*name)?, *of)));
    let others = programs
        .iter()
        .filter(|(name, _)| SHARES.iter().all(|(long, _)| long != name))
        .map(|(name, program)| (name.as_str(), program, 1));
    let all = long.chain(others).flat_map(|(suite, program, of)| {
        (1..=of).map(move |part| Share {
            suite: suite.to_owned(),
            program: program.clone(),
            part,
            of,
        })
    });
    all.collect()
}

fn run_one(share: &Share, logs: &Path) -> Outcome {
    let name = share.to_string();
    println!("{name} begins");
    let started = Instant::now();
    let log = logs.join(format!("{name}.log"));
    let failure = execute(share, &log).err().map(|error| format!("{error:#}"));
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name} {} after {seconds:.0} s",
        if failure.is_none() { "passed" } else { "FAILED" }
    );
    let output = fs::read(&log).map(|output| String::from_utf8_lossy(&output).into_owned());
    Outcome {
        name,
        output: output.unwrap_or_else(|error| format!("failed to read {}: {error}", log.display())),
        seconds,
        failure,
    }
}

fn execute(share: &Share, log: &Path) -> Result<()> {
    let output = File::create(log).with_context(|| format!("failed to create {}", log.display()))?;
    let errors = output.try_clone().context("failed to share the log")?;
    let status = Command::new(&share.program)
        .current_dir(workspace::root().join("tests/suites"))
        .env("POPCELL_SHARE", format!("{}/{}", share.part, share.of))
        .stdout(output)
        .stderr(errors)
        .status();
    let status = status.with_context(|| format!("failed to start {}", share.program.display()))?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

fn report(mut outcomes: Vec<Outcome>, counts: &mut Counts) -> Result<()> {
    outcomes.sort_by_key(|outcome| outcome.failure.is_some());
    for outcome in &outcomes {
        println!(
            "\n--- {} ({:.0} s)\n{}",
            outcome.name,
            outcome.seconds,
            outcome.output.trim()
        );
        for more in outcome.output.lines().filter_map(result_of) {
            counts.passed += more.passed;
            counts.failed += more.failed;
        }
    }
    println!("\nthe slowest tests:");
    for (seconds, test) in slowest(&outcomes) {
        println!("{seconds:8.1} s  {test}");
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let named = failed.iter().map(|outcome| {
        let reason = outcome.failure.as_deref().unwrap_or_default();
        format!("{}: {reason}", outcome.name)
    });
    bail!("{}", named.collect::<Vec<_>>().join("; "));
}

/// The slowest tests of all, by what suites print of each: `took 12.3 s: name`.
fn slowest(outcomes: &[Outcome]) -> Vec<(f64, String)> {
    let timed = |line: &str| {
        let (seconds, test) = line.strip_prefix("took ")?.split_once(" s: ")?;
        Some((seconds.parse::<f64>().ok()?, test.to_owned()))
    };
    let mut all: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| {
            let suite = outcome.name.split('-').next().unwrap_or_default();
            outcome
                .output
                .lines()
                .filter_map(timed)
                .map(move |(seconds, test)| (seconds, format!("{suite} {test}")))
        })
        .collect();
    all.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    all.truncate(SLOWEST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, output: &str, failure: Option<&str>) -> Outcome {
        Outcome {
            name: name.to_owned(),
            output: output.to_owned(),
            seconds: 1.0,
            failure: failure.map(str::to_owned),
        }
    }

    #[test]
    fn every_suite_has_its_share_and_long_ones_begin() {
        let programs = ["cell", "e2e", "young"].map(|name| (name.to_owned(), PathBuf::from(name)));
        let names: Vec<_> = shares(&BTreeMap::from(programs))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["cell-1", "cell-2", "cell-3", "e2e-1", "e2e-2", "young"]);
    }

    #[test]
    fn suites_are_found_in_what_cargo_says() {
        let line = |manifest: &str| {
            format!(
                r#"{{"manifest_path":"/r/{manifest}","target":{{"kind":["test"],"name":"cell"}},"executable":"/t/cell-1"}}"#
            )
        };
        let found = suite_of(&line("tests/suites/Cargo.toml"));
        assert_eq!(found, Some(("cell".to_owned(), PathBuf::from("/t/cell-1"))));
        assert_eq!(suite_of(&line("cli/Cargo.toml")), None);
        assert_eq!(suite_of("not JSON"), None);
    }

    #[test]
    fn the_slowest_tests_of_all_suites_are_named() {
        let outcomes = [
            outcome("cell-1", "took 2.5 s: one\nnoise", None),
            outcome("e2e-2", "took 11.0 s: two\ntook x s: three", None),
        ];
        let expected = [(11.0, "e2e two".to_owned()), (2.5, "cell one".to_owned())];
        assert_eq!(slowest(&outcomes), expected);
    }

    #[test]
    fn a_suite_that_failed_is_counted_and_named() {
        let passed = outcome("e2e", "test result: ok. 2 passed; 0 failed;", None);
        let failed = outcome(
            "cell",
            "test result: FAILED. 1 passed; 1 failed;",
            Some("exit status: 101"),
        );
        let mut counts = Counts::default();
        let error = report(vec![failed, passed], &mut counts).unwrap_err();
        assert_eq!(counts, Counts { passed: 3, failed: 1 });
        assert_eq!(error.to_string(), "cell: exit status: 101");
    }
}
