//! Steps that are named, timed, streamed, and stop at the first failure.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, IsTerminal, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Tests that ran, over all steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// Runs steps one after the other.
pub(crate) struct Steps {
    started: Instant,
    number: usize,
    counts: Counts,
    skipped: Vec<String>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            number: 0,
            counts: Counts::default(),
            skipped: Vec::new(),
        }
    }

    /// Runs a program with its output on ours.
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let repeat = as_typed(command);
        self.step(name, &repeat, |_| {
            let status = command.status().with_context(|| format!("failed to start {repeat}"))?;
            if status.success() {
                Ok(())
            } else {
                bail!("it ended with {status}")
            }
        })
    }

    /// Runs a test program, and adds up the results that it prints.
    pub(crate) fn test(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let repeat = as_typed(command);
        self.step(name, &repeat, |counts| {
            if std::io::stdout().is_terminal() {
                command.env("CARGO_TERM_COLOR", "always");
            }
            let child = command.stdout(Stdio::piped()).spawn();
            let mut child = child.with_context(|| format!("failed to start {repeat}"))?;
            let output = child.stdout.take().context("the program has no output")?;
            copy(BufReader::new(output), counts)?;
            let status = child.wait().context("failed to wait for the program")?;
            if status.success() {
                Ok(())
            } else {
                bail!("it ended with {status}")
            }
        })
    }

    /// Runs a function; `repeat` is the command that does the same alone.
    pub(crate) fn call(&mut self, name: &str, repeat: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.step(name, repeat, |_| work())
    }

    /// As [`Steps::call`], for a function that runs tests and counts them.
    pub(crate) fn count(
        &mut self,
        name: &str,
        repeat: &str,
        work: impl FnOnce(&mut Counts) -> Result<()>,
    ) -> Result<()> {
        self.step(name, repeat, work)
    }

    /// Says that a step is skipped, and why.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.number += 1;
        println!("\n=== {}. {name}: skipped, {reason}", self.number);
        self.skipped.push(name.to_owned());
    }

    fn step(&mut self, name: &str, repeat: &str, work: impl FnOnce(&mut Counts) -> Result<()>) -> Result<()> {
        self.number += 1;
        println!("\n=== {}. {name}", self.number);
        let started = Instant::now();
        let mut counts = Counts::default();
        let outcome = work(&mut counts);
        self.counts.passed += counts.passed;
        self.counts.failed += counts.failed;
        println!("=== {name}: {:.1} s", started.elapsed().as_secs_f64());
        let Err(error) = outcome else { return Ok(()) };
        // A step that is no test counts as one that failed: "0 failed" is never printed after a failure.
        self.counts.failed = self.counts.failed.max(1);
        println!("\n{}", self.summary());
        bail!("{name} failed: {error:#}\nto repeat it: {repeat}")
    }

    /// The closing line.
    pub(crate) fn finish(self) {
        println!("\n{}", self.summary());
    }

    /// What [`Steps::finish`] prints.
    pub(crate) fn summary(&self) -> String {
        let mut line = format!("{} passed, {} failed", self.counts.passed, self.counts.failed);
        if !self.skipped.is_empty() {
            // Writing to a String does not fail.
            let _ = write!(line, ", skipped: {}", self.skipped.join(", "));
        }
        let _ = write!(line, " ({:.0} s)", self.started.elapsed().as_secs_f64());
        line
    }
}

fn copy(lines: impl BufRead, counts: &mut Counts) -> Result<()> {
    for line in lines.lines() {
        let line = line.context("failed to read the program's output")?;
        println!("{line}");
        std::io::stdout().flush().context("failed to write")?;
        if let Some(more) = result_of(&line) {
            counts.passed += more.passed;
            counts.failed += more.failed;
        }
    }
    Ok(())
}

/// The counts of a line `test result: ok. 7 passed; 0 failed; ...`, with or without colours.
pub(crate) fn result_of(line: &str) -> Option<Counts> {
    let (_, rest) = line.split_once("test result: ")?;
    let number = |word: &str| {
        let before = rest.split_once(word)?.0.trim_end();
        let digits = before.rsplit(|other: char| !other.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    Some(Counts {
        passed: number("passed")?,
        failed: number("failed")?,
    })
}

/// The command as a user would type it in the repository's root.
pub(crate) fn as_typed(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    let line = words.join(" ");
    match command.get_current_dir() {
        Some(dir) if dir != popcell_test_support::workspace::root() => format!("(cd {} && {line})", dir.display()),
        _ => line,
    }
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_with_and_without_colours() {
        let plain = "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.11s";
        assert_eq!(result_of(plain), Some(Counts { passed: 7, failed: 0 }));
        let colours = "test result: \u{1b}[31mFAILED\u{1b}(B\u{1b}[m. 12 passed; 3 failed; 0 ignored";
        assert_eq!(result_of(colours), Some(Counts { passed: 12, failed: 3 }));
        assert_eq!(result_of("test c03_health ... ok"), None);
    }

    #[test]
    fn a_failed_step_says_how_to_repeat_it() {
        let mut steps = Steps::new();
        let error = steps
            .run("a lie", Command::new("sh").args(["-c", "exit 3"]))
            .unwrap_err();
        let message = format!("{error:#}");
        assert!(
            message.contains("a lie failed") && message.contains("to repeat it: sh -c 'exit 3'"),
            "{message}"
        );
        assert!(steps.summary().starts_with("0 passed, 1 failed"), "{}", steps.summary());
    }

    #[test]
    fn results_of_a_test_program_are_added_up() {
        let mut steps = Steps::new();
        let print = "echo 'test result: ok. 2 passed; 0 failed;'; echo 'test result: ok. 3 passed; 0 failed;'";
        steps.test("tests", Command::new("sh").args(["-c", print])).unwrap();
        steps.skip("weather", "no window");
        assert!(
            steps.summary().starts_with("5 passed, 0 failed, skipped: weather"),
            "{}",
            steps.summary()
        );
    }
}
