//! Sample calls.

use std::time::{Duration, Instant};

use popcell_engine::{Call, Inspection, Module};
use popcell_protocol::{Gvk, Operation, client::Question};
use popcell_sdk::Object;

use super::report::{Available, File, Report, Sampled, Target};
use crate::endpoint::{
    Endpoint,
    call::{AskError, Connection, Sample},
    dial::Trust,
};

/// What a kind is asked about.
fn sample_of(kind: &Gvk, given: Option<&Object>) -> Sample {
    let given = given.filter(|object| object.api_version() == kind.api_version() && object.kind() == kind.kind);
    given.map_or_else(|| Sample::of(kind), |object| Sample::given(kind, object.to_text()))
}

/// Describes and times a module. The second part names every operation in which the sample broke it.
pub(super) fn module(
    module: &Module,
    inspection: &Inspection,
    sample: Option<&Object>,
    calls: u32,
    limit: Duration,
) -> (Report, Vec<String>) {
    let mut broken = Vec::new();
    let description = module.description();
    let mut targets = Vec::new();
    for target in &description.targets {
        let sample = sample_of(&target.kind, sample);
        let available = target.operations.iter().map(|known| {
            let (sampled, fault) = timed(module, &target.kind, known.operation, sample.text(), calls, limit);
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
    (
        Report {
            origin: module.origin().to_owned(),
            module: Some(file),
            targets,
        },
        broken,
    )
}

fn timed(
    module: &Module,
    kind: &Gvk,
    operation: Operation,
    text: &str,
    calls: u32,
    limit: Duration,
) -> (Option<Sampled>, Option<String>) {
    let call = Call {
        observed: (operation == Operation::Retain).then_some(text.as_bytes()),
        replicas: 1,
        ..Call::new(operation, kind, text.as_bytes())
    };
    let (mut times, mut peak, mut answer) = (Vec::new(), 0, String::new());
    for _ in 0..calls {
        let start = Instant::now();
        let (answered, memory) = module.measure(&call, limit);
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
pub(super) async fn webhook(
    endpoint: &Endpoint,
    trust: &Trust,
    limit: Duration,
    kinds: &[Gvk],
    sample: Option<&Object>,
    calls: u32,
) -> Result<Report, AskError> {
    let mut connection = Connection::open(endpoint, trust, limit).await?;
    let mut targets = Vec::new();
    for kind in kinds {
        let sample = sample_of(kind, sample);
        let mut available = Vec::new();
        for operation in Operation::ALL {
            let question = sample.question(operation);
            if let Some(sampled) = asked(&mut connection, &question, calls.max(1)).await? {
                available.push(Available {
                    operation: operation.as_str(),
                    registered: None,
                    sample: (calls > 0).then_some(sampled),
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
