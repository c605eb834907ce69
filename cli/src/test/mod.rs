//! `popcell test`: Karmada's test files and the laws, in WebAssembly, and natively where there is a crate. The two have to
//! agree on every case.

mod bless;
mod find;
mod native;
mod report;
mod run;

use std::{io::Write as _, time::Duration};

use crate::{
    args::module::Test,
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::{Wasm, Webhook},
};
use find::Suite;
use native::Answers;
use popcell_sdk::module::Run;
use report::{Ran, Report};
use run::{TestResult, Tested};

/// Runs the command.
pub fn run(args: &Test, console: &mut Console) -> Outcome {
    let suites = find::suites(&args.path, args.module.is_some() || args.url.is_some())?;
    let several = suites.len() > 1;
    let mut report = Report::default();
    for suite in suites {
        let ran = match run_suite(&suite, args, console) {
            // Of several modules a broken one must not hide the others.
            Err(Failure::Failed(reason) | Failure::Module(reason)) if several => broken(&suite, reason),
            ran => ran?,
        };
        report.add(ran, args.output, args.fail_only, &mut console.out)?;
    }
    if report.is_empty() {
        return Err(Failure::Failed(match &args.filter {
            Some(filter) => format!("no test has {filter:?} in its name"),
            None => format!("no test found in {}", args.path),
        }));
    }
    report.finish(args.output, args.fail_only, &mut console.out)?;
    Ok(if report.failed() == 0 {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn run_suite(suite: &Suite, args: &Test, console: &mut Console) -> Result<Ran, Failure> {
    let mut files = find::files(suite, console)?;
    let asked = subject(suite, args, console)?;
    let mut native = answers(suite, args, console)?;
    let filter = args.filter.as_deref();
    let mut tests = run::tests(&*asked.run, files, native.as_ref(), &suite.prefix, filter);
    if args.bless {
        let written = bless::bless(&tests)?;
        for file in &written {
            writeln!(console.err, "wrote {}", file.display())?;
        }
        if !written.is_empty() {
            // What was written is judged like everything else.
            files = find::files(suite, console)?;
            native = answers(suite, args, console)?;
            tests = run::tests(&*asked.run, files, native.as_ref(), &suite.prefix, filter);
        }
    }
    Ok(Ran {
        label: match (native.is_some(), args.url.is_some()) {
            (true, _) => format!("{}, WebAssembly and native", asked.label),
            (false, false) => format!("{}, WebAssembly", asked.label),
            (false, true) => asked.label,
        },
        tests: tests.into_iter().map(|Tested { result, .. }| result).collect(),
    })
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
struct Subject {
    run: Box<dyn Run>,
    label: String,
}

fn subject(suite: &Suite, args: &Test, console: &mut Console) -> Result<Subject, Failure> {
    if let Some(url) = &args.url {
        let webhook = Webhook::open(url, &args.trust)?;
        return Ok(Subject {
            run: Box::new(webhook),
            label: url.clone(),
        });
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
    let module = Wasm::open(&component, args.trust.timeout())?;
    let label = module.module().label().to_owned();
    Ok(Subject {
        run: Box::new(module),
        label,
    })
}

/// The native answers; a webhook may well serve another version than the crate has.
fn answers(suite: &Suite, args: &Test, console: &mut Console) -> Result<Option<Answers>, Failure> {
    match &suite.package {
        Some(package) if args.url.is_none() => native::answers(package, suite, console),
        _ => Ok(None),
    }
}
