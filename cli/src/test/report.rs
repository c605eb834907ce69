//! The report: text, JSON, JUnit.

use std::{
    io::{self, Write},
    time::Duration,
};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::run::TestResult;
use crate::{args::TestFormat, exit::Failure};

/// Everything that was run.
#[derive(Default)]
pub(super) struct Report {
    pub(super) tests: Vec<TestResult>,
    modules: Vec<String>,
}

impl Report {
    /// Notes a module, and whether it was compared with native code.
    pub(super) fn module(&mut self, label: &str, native: bool) {
        self.modules.push(match (native, label.starts_with("https://")) {
            (true, _) => format!("{label}, WebAssembly and native"),
            (false, false) => format!("{label}, WebAssembly"),
            (false, true) => label.to_owned(),
        });
    }

    pub(super) fn failed(&self) -> usize {
        self.tests.iter().filter(|test| test.failure.is_some()).count()
    }

    pub(super) fn print(&self, format: TestFormat, fail_only: bool, out: &mut dyn Write) -> Result<(), Failure> {
        match format {
            TestFormat::Text => self.text(fail_only, out)?,
            TestFormat::Json => self.json(fail_only, out)?,
            TestFormat::Junit => {
                let text = self
                    .junit(fail_only)
                    .to_string()
                    .map_err(|error| Failure::Environment(format!("failed to write JUnit: {error}")))?;
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    }

    fn shown(&self, fail_only: bool) -> impl Iterator<Item = &TestResult> {
        self.tests
            .iter()
            .filter(move |test| !fail_only || test.failure.is_some())
    }

    fn text(&self, fail_only: bool, out: &mut dyn Write) -> io::Result<()> {
        for test in self.shown(fail_only) {
            match &test.failure {
                None => writeln!(out, "ok    {}", test.name)?,
                Some(failure) => {
                    writeln!(out, "FAIL  {}", test.name)?;
                    for line in failure.lines() {
                        writeln!(out, "      {line}")?;
                    }
                }
            }
        }
        let (all, failed) = (self.tests.len(), self.failed());
        writeln!(
            out,
            "{} passed, {failed} failed ({})",
            all - failed,
            self.modules.join("; ")
        )
    }

    fn json(&self, fail_only: bool, out: &mut dyn Write) -> io::Result<()> {
        let one = |test: &TestResult| {
            serde_json::json!({
                "name": test.name, "ok": test.failure.is_none(), "failure": test.failure, "seconds": test.time.as_secs_f64(),
            })
        };
        let failed = self.failed();
        let report = serde_json::json!({
            "modules": self.modules, "passed": self.tests.len() - failed, "failed": failed,
            "tests": self.shown(fail_only).map(one).collect::<Vec<_>>(),
        });
        writeln!(out, "{report:#}")
    }

    fn junit(&self, fail_only: bool) -> quick_junit::Report {
        let mut report = quick_junit::Report::new("popcell test");
        let mut suite = TestSuite::new(self.modules.join("; "));
        for test in self.shown(fail_only) {
            let mut status = TestCaseStatus::success();
            if let Some(failure) = &test.failure {
                status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(failure.lines().next().unwrap_or_default());
                status.set_description(failure.as_str());
            }
            let mut case = TestCase::new(test.name.as_str(), status);
            case.set_time(test.time);
            suite.add_test_case(case);
        }
        suite.set_time(self.tests.iter().map(|test| test.time).sum::<Duration>());
        report.add_test_suite(suite);
        report
    }
}
