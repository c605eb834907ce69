//! Objects of 1 MiB of every shape: CPU and memory of a call, in this process.

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result};
use popcell_benches::shapes::Shape;
use popcell_engine::{Call, Engine, Settings};
use popcell_protocol::{Gvk, Health, Operation, StatusItem};
use popcell_test_support::artifacts;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::plan::MEASURED;
use crate::results::{median, spelled};

/// Bytes of all that a module is given.
const BYTES: usize = 1 << 20;

/// A call about a large object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LargeSummary {
    pub(crate) shape: &'static str,
    #[serde(serialize_with = "spelled")]
    pub(crate) operation: Operation,
    /// Median of the calls, host and guest.
    pub(crate) cpu_millis: f64,
    /// The most linear memory that a call had.
    pub(crate) guest_mib: f64,
}

/// Asks the module of WorkloadDeployments, which carries statuses whole.
pub(crate) fn measure(calls: usize) -> Result<Vec<LargeSummary>> {
    let file = artifacts::modules()?.join("compute.wasm");
    let settings = Settings {
        call_timeout: Duration::from_secs(30),
        ..Settings::default()
    };
    let engine = Engine::new(&settings).context("failed to start the engine")?;
    let module = engine.load_file(&file).context("failed to load the module")?;
    let kind = Gvk::new("compute.datumapis.com", "v1alpha", "WorkloadDeployment");
    let mut summaries = Vec::new();
    for shape in Shape::ALL {
        for operation in MEASURED {
            let texts = Texts::of(&kind, shape, operation)?;
            let item = StatusItem {
                cluster_name: "dfw".into(),
                status: Some(&texts.status),
                applied: true,
                applied_message: "".into(),
                health: Some(Health::Healthy),
            };
            let call = Call {
                observed: Some(texts.observed.as_bytes()),
                replicas: 2,
                items: &[item],
                ..Call::new(operation, &kind, texts.object.as_bytes())
            };
            let (mut times, mut most) = (Vec::with_capacity(calls), 0);
            for _ in 0..calls {
                let before = thread_cpu()?;
                let (answer, memory) = black_box(module.measure(black_box(&call), Duration::from_secs(30)));
                times.push(thread_cpu()?.saturating_sub(before).as_secs_f64() * 1e3);
                most = most.max(memory);
                match answer {
                    Err(error) if error.cause.is_module_fault() => {
                        return Err(error).with_context(|| format!("{} of {}", operation.as_str(), shape.name()));
                    }
                    _ => {}
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "a value for people")]
            summaries.push(LargeSummary {
                shape: shape.name(),
                operation,
                cpu_millis: median(times),
                guest_mib: most as f64 / f64::from(1 << 20),
            });
        }
    }
    Ok(summaries)
}

/// What this thread has run so far.
fn thread_cpu() -> Result<Duration> {
    let file = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {file}"))?;
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Ok(Duration::from_nanos(
        nanos.with_context(|| format!("{file} has no time"))?,
    ))
}

struct Texts {
    object: String,
    observed: String,
    status: Box<RawValue>,
}

impl Texts {
    /// The large value lies where the operation looks; where it is given two values, each is half as large.
    fn of(kind: &Gvk, shape: Shape, operation: Operation) -> Result<Self> {
        let takes_two = matches!(operation, Operation::Retain | Operation::AggregateStatus);
        let each = if takes_two { BYTES / 2 } else { BYTES };
        let (one, other) = (shape.value(each, 2), shape.value(each, 3));
        let status = |value: &str| {
            let name = if value.starts_with('[') { "conditions" } else { "extra" };
            format!(r#"{{"observedGeneration":1,"{name}":{value}}}"#)
        };
        let object = |spec: &str, status: &str| {
            format!(
                r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"a","namespace":"ns","generation":2}},"spec":{{"scaleSettings":{{"minReplicas":1}}{spec}}},"status":{status}}}"#,
                kind.api_version(),
                kind.kind
            )
        };
        let reads_status = matches!(
            operation,
            Operation::InterpretStatus | Operation::InterpretHealth | Operation::AggregateStatus
        );
        let (object, observed) = if reads_status {
            (object("", &status(&one)), object("", "{}"))
        } else {
            (
                object(&format!(r#","template":{{"extra":{one}}}"#), "{}"),
                object("", &status(&other)),
            )
        };
        let reported = if operation == Operation::AggregateStatus {
            status(&other)
        } else {
            "{}".to_owned()
        };
        Ok(Self {
            object,
            observed,
            status: RawValue::from_string(reported).context("failed to write a status")?,
        })
    }
}
