//! Runs cases and laws in WebAssembly and compares with the native answers.

use std::time::{Duration, Instant};

use popcell_sdk::{
    Error,
    module::Run,
    test::{
        cases::{self, Answer, Case, CaseError, CaseFile},
        jsonl, laws, report, runner,
    },
};

use super::native::Answers;

/// A test that was run.
pub(super) struct Tested {
    pub(super) result: TestResult,
    /// What came back, for `--bless`.
    pub(super) case: Option<(Case, Result<Answer, Error>)>,
}

/// What is reported of a test.
#[derive(Debug)]
pub(super) struct TestResult {
    /// `file::name`, or `laws::name`.
    pub(super) name: String,
    /// Why it failed, as its author should see it.
    pub(super) failure: Option<String>,
    pub(super) time: Duration,
}

/// Runs every test whose name contains `filter`. Names begin with `prefix`.
pub(super) fn tests(
    module: &dyn Run,
    files: Vec<CaseFile>,
    native: Option<&Answers>,
    prefix: &str,
    filter: Option<&str>,
) -> Vec<Tested> {
    let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    let mut tests = Vec::new();
    let seen = laws::Seen::of(files.iter().flat_map(|file| file.cases.iter().flatten()));
    let names = runner::names(&files);
    for (file, names) in files.into_iter().zip(names) {
        let names = names.into_iter().map(|name| format!("{prefix}{name}"));
        for (document, name) in file.cases.into_iter().zip(names).filter(|(_, name)| wanted(name)) {
            tests.push(document_test(module, document, name, &file.text, native));
        }
    }
    for law in laws::of(&module.describe()) {
        let name = format!("{prefix}laws::{}", law.name);
        if wanted(&name) {
            let start = Instant::now();
            let failure = law.check(module, &seen).err().map(|broken| broken.to_string());
            tests.push(Tested {
                result: TestResult {
                    name,
                    failure,
                    time: start.elapsed(),
                },
                case: None,
            });
        }
    }
    tests
}

fn document_test(
    module: &dyn Run,
    document: Result<Case, CaseError>,
    name: String,
    text: &str,
    native: Option<&Answers>,
) -> Tested {
    let start = Instant::now();
    match document {
        Err(error) => Tested {
            result: TestResult {
                name,
                failure: Some(report::unreadable(&error, text)),
                time: start.elapsed(),
            },
            case: None,
        },
        Ok(case) => {
            let (outcome, verdict) = cases::check(&case, module);
            let time = start.elapsed();
            let mut failure = verdict.err().map(|failure| report::failure(&case, &failure, text));
            let here = jsonl::line(&case, &outcome, failure.is_none());
            if let Some(difference) = native.and_then(|native| native.difference(&case, &here)) {
                failure =
                    Some(failure.map_or_else(|| difference.clone(), |failure| format!("{failure}\n{difference}")));
            }
            Tested {
                result: TestResult { name, failure, time },
                case: Some((case, outcome)),
            }
        }
    }
}
