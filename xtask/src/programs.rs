//! Test programs side by side.
//!
//! Cargo builds them and then holds no lock. Suites run each on a lab of its own, and a lab mostly waits; long suites are dealt
//! out over several. What a program prints is kept in a file; of one that failed it is shown at the end, so that the end of the
//! output says what is wrong.

use std::collections::VecDeque;
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
use crate::test::cargo;

/// The package whose tests need servers.
const SUITES: &str = "tests/suites";

/// Programs that take longest, which begin: suites with the labs that they are dealt out over, then the others.
const LONG: [(&str, usize); 10] = [
    ("cell", 3),
    ("restores", 1),
    ("management", 2),
    ("projects", 1),
    ("e2e", 2),
    ("provider", 1),
    ("cli", 1),
    ("webhook", 1),
    ("corpus", 1),
    ("limits", 1),
];

/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 10;

/// Instances of inotify that one lab needs, with room; Linux allows a user 128 by default.
const INOTIFY_PER_LAB: usize = 100;

/// Memory that one lab takes with its suite, in KiB, with room.
const MEMORY_PER_LAB: usize = 3 << 20;

/// A test program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// Folder of its package, from the repository's root.
    package: String,
    target: String,
    file: PathBuf,
}

/// One share of a program's tests, which one process runs.
struct Share {
    program: Program,
    /// Which of how many, from 1.
    part: usize,
    of: usize,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { package, target, .. } = &self.program;
        if package != SUITES {
            write!(f, "{}.", package.replace('/', "-"))?;
        }
        f.write_str(target)?;
        match self.of {
            1 => Ok(()),
            _ => write!(f, "-{}", self.part),
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

/// Builds all tests and runs the suites on up to `labs` labs at a time; adds up what passed and failed.
///
/// # Errors
/// Names the suites that failed.
pub(crate) fn suites(labs: usize, counts: &mut Counts) -> Result<()> {
    let outcomes = run(built()?.into_iter().filter(|one| one.package == SUITES), labs)?;
    let outcome = report(&outcomes, counts);
    println!("\nthe slowest tests:");
    for (seconds, test) in slowest(&outcomes) {
        println!("{seconds:8.1} s  {test}");
    }
    outcome
}

/// As [`suites`], for all tests that need no servers: as many programs at a time as there are cores.
///
/// # Errors
/// Names the programs that failed.
pub(crate) fn without_servers(counts: &mut Counts) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report(
        &run(built()?.into_iter().filter(|one| one.package != SUITES), cores)?,
        counts,
    )
}

/// Runs programs, so many at a time; those that failed come last.
fn run(programs: impl Iterator<Item = Program>, at_a_time: usize) -> Result<Vec<Outcome>> {
    let logs = workspace::target_dir().join("test-output");
    fs::create_dir_all(&logs).with_context(|| format!("failed to make {}", logs.display()))?;
    let waiting = Mutex::new(shares(programs.collect()));
    let ended = Mutex::new(Vec::new());
    println!("{at_a_time} at a time; what they print is in {}", logs.display());
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
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
    let mut outcomes: Vec<Outcome> = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|outcome| outcome.failure.is_some());
    Ok(outcomes)
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

/// The test programs of the whole workspace, which is built with the features of all other commands.
fn built() -> Result<Vec<Program>> {
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
        "failed to build the tests: cargo ended with {}",
        output.status
    );
    let (messages, root) = (String::from_utf8_lossy(&output.stdout), workspace::root());
    let found: Vec<_> = messages.lines().filter_map(|line| program_of(line, &root)).collect();
    ensure!(!found.is_empty(), "cargo built no tests");
    Ok(found)
}

/// The test program that a line of cargo's messages names.
fn program_of(line: &str, root: &Path) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let is_test = message.pointer("/profile/test").and_then(Value::as_bool)?;
    let package = Path::new(text("/manifest_path")?).parent()?.strip_prefix(root).ok()?;
    is_test.then_some(Program {
        package: package.to_str()?.to_owned(),
        target: text("/target/name")?.to_owned(),
        file: text("/executable")?.into(),
    })
}

/// All shares, those of the longest programs first.
fn shares(mut programs: Vec<Program>) -> VecDeque<Share> {
    let place = |target: &str| LONG.iter().position(|(long, _)| *long == target);
    programs.sort_by_key(|one| {
        (
            place(&one.target).unwrap_or(LONG.len()),
            one.package.clone(),
            one.target.clone(),
        )
    });
    let all = programs.into_iter().flat_map(|program| {
        let of = place(&program.target)
            .and_then(|place| LONG.get(place))
            .map_or(1, |(_, of)| *of);
        (1..=of).map(move |part| Share {
            program: program.clone(),
            part,
            of,
        })
    });
    all.collect()
}

fn run_one(share: &Share, logs: &Path) -> Outcome {
    let name = share.to_string();
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
    let package = workspace::root().join(&share.program.package);
    // As `cargo test` starts it.
    let status = Command::new(&share.program.file)
        .current_dir(&package)
        .env("CARGO_MANIFEST_DIR", &package)
        .env("POPCELL_SHARE", format!("{}/{}", share.part, share.of))
        .stdout(output)
        .stderr(errors)
        .status();
    let status = status.with_context(|| format!("failed to start {}", share.program.file.display()))?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Counts, shows what failed ones printed, and names them.
fn report(outcomes: &[Outcome], counts: &mut Counts) -> Result<()> {
    for more in outcomes
        .iter()
        .flat_map(|outcome| outcome.output.lines())
        .filter_map(result_of)
    {
        counts.passed += more.passed;
        counts.failed += more.failed;
    }
    let mut failed = Vec::new();
    for outcome in outcomes {
        let Some(reason) = &outcome.failure else { continue };
        println!(
            "\n--- {} ({:.0} s)\n{}",
            outcome.name,
            outcome.seconds,
            outcome.output.trim()
        );
        failed.push(format!("{}: {reason}", outcome.name));
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join("; "));
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

    fn program(package: &str, target: &str) -> Program {
        Program {
            package: package.to_owned(),
            target: target.to_owned(),
            file: PathBuf::from(target),
        }
    }

    #[test]
    fn every_program_has_its_share_and_long_ones_begin() {
        let programs = [
            (SUITES, "young"),
            (SUITES, "e2e"),
            ("controller/core", "popcell_core"),
            (SUITES, "cell"),
        ];
        let programs = programs.map(|(package, target)| program(package, target)).to_vec();
        let names: Vec<_> = shares(programs).iter().map(ToString::to_string).collect();
        let expected = [
            "cell-1",
            "cell-2",
            "cell-3",
            "e2e-1",
            "e2e-2",
            "controller-core.popcell_core",
            "young",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn test_programs_are_found_in_what_cargo_says() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"manifest_path":"/r/tests/suites/Cargo.toml","target":{{"name":"cell"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let root = Path::new("/r");
        let expected = Program {
            file: PathBuf::from("/t/cell-1"),
            ..program(SUITES, "cell")
        };
        assert_eq!(program_of(&line(true, r#""/t/cell-1""#), root), Some(expected));
        assert_eq!(program_of(&line(false, r#""/t/cell-1""#), root), None);
        assert_eq!(program_of(&line(true, "null"), root), None);
        assert_eq!(program_of("not JSON", root), None);
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
        let error = report(&[failed, passed], &mut counts).unwrap_err();
        assert_eq!(counts, Counts { passed: 3, failed: 1 });
        assert_eq!(error.to_string(), "cell: exit status: 101");
    }
}
