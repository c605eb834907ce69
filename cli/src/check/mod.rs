//! `popcell check`: what a module or a running webhook is and can do, and what Karmada does without the rest.

mod report;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use popcell_engine::{Call, Inspection, LoadError, Module, Modules, inspect, module_files};
use popcell_protocol::{Gvk, Operation, client::Question};
use popcell_sdk::Object;

use crate::{
    args::module::Check,
    console::Console,
    endpoint::{
        Endpoint,
        call::{AskError, Connection, Sample},
        dial::Trust,
    },
    exit::{Exit, Failure, Outcome},
    interpreters,
};
use report::{Available, File, Report, Sampled, Target};

/// Runs the command.
pub fn run(args: &Check, console: &mut Console) -> Outcome {
    let sample = args
        .sample
        .as_deref()
        .map(|file| crate::interpret::object(file, console))
        .transpose()?;
    let sampling = Sampling {
        object: sample.as_ref(),
        calls: args.calls,
        limit: args.trust.timeout,
    };
    if let Some(url) = &args.url {
        let kinds: Vec<Gvk> = (args.kind.iter())
            .map(|kind| Gvk::new(&kind.group, &kind.version, &kind.kind))
            .collect();
        let (endpoint, trust) = interpreters::reach(url, &args.trust)?;
        let measured = webhook(&endpoint, &trust, &kinds, &sampling);
        let report = crate::runtime()?
            .block_on(measured)
            .map_err(|error| Failure::Environment(error.to_string()))?;
        report::print(&[report], args.output, &mut console.out)?;
        return Ok(Exit::Success);
    }
    let path = (args.path.as_deref())
        .or(args.module.as_deref())
        .ok_or_else(|| Failure::Usage("give a module, a folder of modules, or --url".to_owned()))?;
    let (reports, refusals) = modules(path, &sampling)?;
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

/// How operations are timed.
struct Sampling<'a> {
    /// What they are about, where it is of their kind.
    object: Option<&'a Object>,
    calls: u32,
    /// What each call may take.
    limit: Duration,
}

/// Reports of the modules that can be loaded, and why the others cannot.
fn modules(path: &Path, sampling: &Sampling<'_>) -> Result<(Vec<Report>, Vec<String>), Failure> {
    let engine = interpreters::engine(true)?;
    let (mut reports, mut refusals, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
    for file in files(path)? {
        let wasm = std::fs::read(&file).map_err(|error| Failure::file("read", &file, &error))?;
        match engine.load(&file.display().to_string(), &wasm) {
            Ok(module) => {
                let inspection = inspect(&wasm).unwrap_or_default();
                reports.push(measured(&module, &inspection, sampling, &mut refusals));
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

/// What a kind is asked about.
fn sample_of(kind: &Gvk, given: Option<&Object>) -> Sample {
    let given = given.filter(|object| object.api_version() == kind.api_version() && object.kind() == kind.kind);
    given.map_or_else(|| Sample::of(kind), |object| Sample::given(kind, object.to_text()))
}

/// Describes and times a module. `broken` gets every operation in which the sample broke it.
fn measured(module: &Module, inspection: &Inspection, sampling: &Sampling<'_>, broken: &mut Vec<String>) -> Report {
    let description = module.description();
    let mut targets = Vec::new();
    for target in &description.targets {
        let sample = sample_of(&target.kind, sampling.object);
        let available = target.operations.iter().map(|known| {
            let (sampled, fault) = timed(module, &target.kind, known.operation, sample.text(), sampling);
            broken.extend(fault);
            Available {
                operation: known.operation.as_str(),
                registered: Some(known.register),
                sample: sampled,
            }
        });
        let available = available.collect();
        targets.push(Target::new(&target.kind, available));
    }
    let file = File {
        name: description.name.clone(),
        version: description.version.clone(),
        interface: format!("popcell:interpreter@{}", inspection.interface_version().unwrap_or("?")),
        imports: inspection.imports.clone(),
        bytes: module.size(),
        sha256: module.digest().to_owned(),
    };
    Report {
        origin: module.origin().to_owned(),
        module: Some(file),
        targets,
    }
}

fn timed(
    module: &Module,
    kind: &Gvk,
    operation: Operation,
    text: &str,
    sampling: &Sampling<'_>,
) -> (Option<Sampled>, Option<String>) {
    let call = Call {
        observed: (operation == Operation::Retain).then_some(text.as_bytes()),
        replicas: 1,
        ..Call::new(operation, kind, text.as_bytes())
    };
    let (mut times, mut peak, mut answer) = (Vec::new(), 0, String::new());
    for _ in 0..sampling.calls {
        let start = Instant::now();
        let (answered, memory) = module.measure(&call, sampling.limit);
        times.push(start.elapsed());
        peak = peak.max(memory);
        answer = match answered {
            Ok(_) => "answered".to_owned(),
            Err(error) if error.cause.is_module_fault() => {
                let message = error.to_string();
                return (Sampled::new(times, Some(peak), message.clone()), Some(message));
            }
            Err(error) => error.cause.to_string(),
        };
    }
    (Sampled::new(times, Some(peak), answer), None)
}

/// Asks a webhook for every operation of the kinds. Times are those of the whole call over one connection.
async fn webhook(
    endpoint: &Endpoint,
    trust: &Trust,
    kinds: &[Gvk],
    sampling: &Sampling<'_>,
) -> Result<Report, AskError> {
    let mut connection = Connection::open(endpoint, trust, sampling.limit).await?;
    let mut targets = Vec::new();
    for kind in kinds {
        let sample = sample_of(kind, sampling.object);
        let mut available = Vec::new();
        for operation in Operation::ALL {
            let question = sample.question(operation);
            if let Some(sampled) = asked(&mut connection, &question, sampling.calls.max(1)).await? {
                available.push(Available {
                    operation: operation.as_str(),
                    registered: None,
                    sample: (sampling.calls > 0).then_some(sampled),
                });
            }
        }
        targets.push(Target::new(kind, available));
    }
    Ok(Report {
        origin: endpoint.to_string(),
        module: None,
        targets,
    })
}

/// `None` when the webhook does not serve the operation.
async fn asked(connection: &mut Connection, question: &Question<'_>, calls: u32) -> Result<Option<Sampled>, AskError> {
    let (mut times, mut answer) = (Vec::new(), String::new());
    for _ in 0..calls {
        let start = Instant::now();
        let answered = connection.ask(question).await;
        times.push(start.elapsed());
        answer = match answered {
            Ok(_) => "answered".to_owned(),
            Err(AskError::Refused { code, .. }) if crate::register::not_served(code) => return Ok(None),
            Err(AskError::Refused { message, .. }) => message,
            Err(error) => return Err(error),
        };
    }
    Ok(Sampled::new(times, None, answer))
}
