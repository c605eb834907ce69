//! `popcell check`: what a module or a running webhook is and can do, and what Karmada does without the rest.

mod measure;
mod report;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use popcell_engine::{LoadError, Modules, inspect, module_files};
use popcell_protocol::Gvk;
use popcell_sdk::Object;

use crate::{
    args::module::Check,
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters,
};
use report::Report;

/// Runs the command.
pub fn run(args: &Check, console: &mut Console) -> Outcome {
    let sample = args
        .sample
        .as_deref()
        .map(|file| crate::interpret::object(file, console))
        .transpose()?;
    if let Some(url) = &args.url {
        let kinds: Vec<Gvk> = (args.kind.iter())
            .map(|kind| Gvk::new(&kind.group, &kind.version, &kind.kind))
            .collect();
        let (endpoint, trust) = interpreters::reach(url, &args.trust)?;
        let measured = measure::webhook(
            &endpoint,
            &trust,
            args.trust.timeout(),
            &kinds,
            sample.as_ref(),
            args.calls,
        );
        let report = crate::runtime()?
            .block_on(measured)
            .map_err(|error| Failure::Environment(error.to_string()))?;
        report::print(&[report], args.output, &mut console.out)?;
        return Ok(Exit::Success);
    }
    let path = (args.path.as_deref())
        .or(args.module.as_deref())
        .ok_or_else(|| Failure::Usage("give a module, a folder of modules, or --url".to_owned()))?;
    let (reports, refusals) = modules(path, sample.as_ref(), args.calls, args.trust.timeout())?;
    report::print(&reports, args.output, &mut console.out)?;
    for refusal in &refusals {
        writeln!(console.err, "error: {refusal}")?;
    }
    Ok(if refusals.is_empty() {
        Exit::Success
    } else {
        Exit::Module
    })
}

/// Reports of the modules that can be loaded, and why the others cannot.
fn modules(
    path: &Path,
    sample: Option<&Object>,
    calls: u32,
    limit: Duration,
) -> Result<(Vec<Report>, Vec<String>), Failure> {
    let engine = interpreters::engine(true)?;
    let (mut reports, mut refusals, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
    for file in files(path)? {
        let wasm = std::fs::read(&file).map_err(|error| Failure::file("read", &file, &error))?;
        match engine.load(&file.display().to_string(), &wasm) {
            Ok(module) => {
                let (report, broken) =
                    measure::module(&module, &inspect(&wasm).unwrap_or_default(), sample, calls, limit);
                reports.push(report);
                refusals.extend(broken);
                loaded.push(module);
            }
            Err(refused) => refusals.push(refused.to_string()),
        }
    }
    if let Err(conflict @ LoadError::Conflict(_)) = Modules::new(loaded) {
        refusals.push(conflict.to_string());
    }
    Ok((reports, refusals))
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let fail = |error| Failure::file("read", path, &error);
    if !std::fs::metadata(path).map_err(fail)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    module_files(path).map_err(|error| Failure::of_load(&error))
}
