//! `popcell test`: Karmada's test files and the laws, in WebAssembly, and natively where there is a crate. The two have to
//! agree on every case.

mod bless;
mod find;
mod native;
mod report;

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use itertools::Itertools as _;
use popcell_sdk::{
    Error,
    module::Run,
    test::{
        cases::{self, Answer, Case, CaseError, CaseFile},
        jsonl, laws, report as sdk_report, runner,
    },
};

use crate::{
    args::module::Test,
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::Interpreter,
};
use find::Suite;
use native::Answers;
use report::{Ran, Report};

/// Runs the command.
pub fn run(args: &Test, console: &mut Console) -> Outcome {
    let suites = find::suites(&args.path, args.module.is_some() || args.url.is_some())?;
    let several = suites.len() > 1;
    let mut report = Report {
        format: args.output,
        fail_only: args.fail_only,
        ran: Vec::new(),
    };
    for suite in suites {
        let ran = match run_suite(&suite, args, console) {
            // Of several modules a broken one must not hide the others.
            Err(Failure::Failed(reason) | Failure::Module(reason)) if several => broken(&suite, reason),
            ran => ran?,
        };
        report.add(ran, &mut console.out)?;
    }
    if report.is_empty() {
        return Err(Failure::Failed(match &args.filter {
            Some(filter) => format!("no test has {filter:?} in its name"),
            None => format!("no test found in {}", args.path),
        }));
    }
    report.finish(&mut console.out)?;
    Ok(if report.failed() == 0 {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn run_suite(suite: &Suite, args: &Test, console: &mut Console) -> Result<Ran, Failure> {
    let mut files = find::files(suite, console)?;
    let interpreter = interpreter(suite, args, console)?;
    let mut native = answers(suite, args, console)?;
    let filter = args.filter.as_deref();
    let mut tests = tests_of(&interpreter, files, native.as_ref(), &suite.prefix, filter);
    if args.bless {
        let written = bless::bless(&tests)?;
        for file in &written {
            writeln!(console.err, "wrote {}", file.display())?;
        }
        if !written.is_empty() {
            // What was written is judged like everything else.
            files = find::files(suite, console)?;
            native = answers(suite, args, console)?;
            tests = tests_of(&interpreter, files, native.as_ref(), &suite.prefix, filter);
        }
    }
    let label = match (&interpreter, &native) {
        (Interpreter::Module(module, _), Some(_)) => format!("{}, WebAssembly and native", module.label()),
        (Interpreter::Module(module, _), None) => format!("{}, WebAssembly", module.label()),
        (Interpreter::Webhook(_), _) => args.url.clone().unwrap_or_default(),
    };
    let tests = tests.into_iter().map(|test| test.result).collect();
    Ok(Ran { label, tests })
}

/// A module that has no tests, or could not be built or loaded: one failure in the place of its tests.
fn broken(suite: &Suite, reason: String) -> Ran {
    let package = suite.package.as_deref().unwrap_or(&suite.shown);
    Ran {
        label: format!("{}, not run", package.display()),
        tests: vec![TestResult {
            name: format!("{}module", suite.prefix),
            failure: Some(reason),
            time: Duration::ZERO,
        }],
    }
}

/// Who is tested.
fn interpreter(suite: &Suite, args: &Test, console: &mut Console) -> Result<Interpreter, Failure> {
    if let Some(url) = &args.url {
        return Interpreter::webhook(url, &args.trust);
    }
    let component = match (&args.module, &suite.package) {
        (Some(file), _) => file.clone(),
        (None, Some(package)) => crate::build::build(package, None, console)?.output,
        (None, None) => {
            return Err(Failure::Usage(format!(
                "there is no Cargo.toml of a module at or above {}: give --module",
                suite.shown.display()
            )));
        }
    };
    Interpreter::module(&component, args.trust.timeout)
}

/// The native answers; a webhook may well serve another version than the crate has.
fn answers(suite: &Suite, args: &Test, console: &mut Console) -> Result<Option<Answers>, Failure> {
    match &suite.package {
        Some(package) if args.url.is_none() => native::answers(package, suite, console),
        _ => Ok(None),
    }
}

/// A test that was run.
struct Tested {
    result: TestResult,
    /// What came back, for `--bless`.
    case: Option<(Case, Result<Answer, Error>)>,
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

/// Runs every case and law whose name contains `filter`, and compares with the native answers. Names begin with `prefix`.
fn tests_of(
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
    let tested = |failure, time, case| Tested {
        result: TestResult { name, failure, time },
        case,
    };
    let case = match document {
        Ok(case) => case,
        Err(error) => return tested(Some(sdk_report::unreadable(&error, text)), start.elapsed(), None),
    };
    let (outcome, verdict) = cases::check(&case, module);
    let time = start.elapsed();
    let failure = verdict.err().map(|failure| sdk_report::failure(&case, &failure, text));
    let here = jsonl::line(&case, &outcome, failure.is_none());
    let difference = native.and_then(|native| native.difference(&case, &here));
    let failures = failure.into_iter().chain(difference).collect_vec();
    let failure = (!failures.is_empty()).then(|| failures.join("\n"));
    tested(failure, time, Some((case, outcome)))
}
