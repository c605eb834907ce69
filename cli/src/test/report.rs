//! The report: text, JSON, JUnit.

use std::{
    io::{self, Write},
    time::Duration,
};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::TestResult;
use crate::{args::TestFormat, exit::Failure};

/// The tests of one module.
pub(super) struct Ran {
    /// The module, and in which ways it was run.
    pub(super) label: String,
    pub(super) tests: Vec<TestResult>,
}

/// Everything that was run, and how it is printed.
pub(super) struct Report {
    pub(super) format: TestFormat,
    pub(super) fail_only: bool,
    pub(super) ran: Vec<Ran>,
}

impl Report {
    /// Adds the tests of a module. For people they are printed at once.
    pub(super) fn add(&mut self, ran: Ran, out: &mut dyn Write) -> Result<(), Failure> {
        if self.format == TestFormat::Text {
            for test in self.shown(&ran) {
                text(test, out)?;
            }
        }
        self.ran.push(ran);
        Ok(())
    }

    fn shown<'a>(&self, ran: &'a Ran) -> impl Iterator<Item = &'a TestResult> + use<'a> {
        let fail_only = self.fail_only;
        ran.tests
            .iter()
            .filter(move |test| !fail_only || test.failure.is_some())
    }

    fn tests(&self) -> impl Iterator<Item = &TestResult> {
        self.ran.iter().flat_map(|ran| &ran.tests)
    }

    /// Whether nothing was run.
    pub(super) fn is_empty(&self) -> bool {
        self.tests().next().is_none()
    }

    /// How many tests failed.
    pub(super) fn failed(&self) -> usize {
        self.tests().filter(|test| test.failure.is_some()).count()
    }

    fn passed(&self) -> usize {
        self.tests().count() - self.failed()
    }

    fn labels(&self) -> Vec<&str> {
        self.ran.iter().map(|ran| ran.label.as_str()).collect()
    }

    /// Prints the end of the report, or the whole one where it is a document.
    pub(super) fn finish(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.format {
            TestFormat::Text => writeln!(
                out,
                "{} passed, {} failed ({})",
                self.passed(),
                self.failed(),
                self.labels().join("; ")
            )?,
            TestFormat::Json => self.json(out)?,
            TestFormat::Junit => {
                let text = self
                    .junit()
                    .to_string()
                    .map_err(|error| Failure::Environment(format!("failed to write JUnit: {error}")))?;
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let one = |test: &TestResult| {
            serde_json::json!({
                "name": test.name, "ok": test.failure.is_none(), "failure": test.failure, "seconds": test.time.as_secs_f64(),
            })
        };
        let tests: Vec<_> = self.ran.iter().flat_map(|ran| self.shown(ran)).map(one).collect();
        let report = serde_json::json!({
            "modules": self.labels(), "passed": self.passed(), "failed": self.failed(), "tests": tests,
        });
        writeln!(out, "{report:#}")
    }

    fn junit(&self) -> quick_junit::Report {
        let mut report = quick_junit::Report::new("popcell test");
        for ran in &self.ran {
            let mut suite = TestSuite::new(ran.label.as_str());
            for test in self.shown(ran) {
                suite.add_test_case(junit(test));
            }
            suite.set_time(ran.tests.iter().map(|test| test.time).sum::<Duration>());
            report.add_test_suite(suite);
        }
        report
    }
}

fn text(test: &TestResult, out: &mut dyn Write) -> io::Result<()> {
    let Some(failure) = &test.failure else {
        return writeln!(out, "ok    {}", test.name);
    };
    writeln!(out, "FAIL  {}", test.name)?;
    failure.lines().try_for_each(|line| writeln!(out, "      {line}"))
}

fn junit(test: &TestResult) -> TestCase {
    let mut status = TestCaseStatus::success();
    if let Some(failure) = &test.failure {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(failure.lines().next().unwrap_or_default());
        status.set_description(failure.as_str());
    }
    let mut case = TestCase::new(test.name.as_str(), status);
    case.set_time(test.time);
    case
}
