//! `popcell test`: Karmada's test files and the laws, in WebAssembly, and natively where there is a crate. The two have to
//! agree on every case.

mod bless;
mod find;
mod native;
mod report;
mod run;

use std::io::Write as _;

use crate::{
    args::module::Test,
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::Wasm,
};
use find::Suite;
use report::Report;

/// Runs the command.
pub fn run(args: &Test, console: &mut Console) -> Outcome {
    let mut report = Report::default();
    for suite in find::suites(&args.path, args.module.is_some())? {
        run_suite(&suite, args, &mut report, console)?;
    }
    if report.tests.is_empty() {
        return Err(Failure::Failed(match &args.filter {
            Some(filter) => format!("no test has {filter:?} in its name"),
            None => format!("no test found in {}", args.path),
        }));
    }
    report.print(args.output, args.fail_only, &mut console.out)?;
    Ok(if report.failed() == 0 {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn run_suite(suite: &Suite, args: &Test, report: &mut Report, console: &mut Console) -> Result<(), Failure> {
    let files = find::files(suite, console)?;
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
    let module = Wasm::open(&component, std::time::Duration::from_secs(5))?;
    let native = match &suite.package {
        Some(package) => native::answers(package, console)?,
        None => None,
    };
    report.module(module.module().label(), native.is_some());
    let tests = run::tests(&module, files, native.as_ref(), args.filter.as_deref());
    if !args.bless {
        report.tests.extend(tests.into_iter().map(|test| test.result));
        return Ok(());
    }
    let blessed = bless::bless(suite, &tests)?;
    for file in &blessed.files {
        writeln!(console.err, "wrote {}", file.display())?;
    }
    if blessed.files.is_empty() {
        report.tests.extend(tests.into_iter().map(|test| test.result));
        return Ok(());
    }
    // What was written is judged like everything else.
    let native = suite
        .package
        .as_ref()
        .map(|package| native::answers(package, console))
        .transpose()?
        .flatten();
    let tests = run::tests(
        &module,
        find::files(suite, console)?,
        native.as_ref(),
        args.filter.as_deref(),
    );
    report.tests.extend(tests.into_iter().map(|test| test.result));
    Ok(())
}
