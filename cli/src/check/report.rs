//! What is found, as data, for people and for programs.

use std::{
    io::{self, Write},
    time::Duration,
};

use popcell_protocol::{Gvk, Operation};
use serde::Serialize;

use crate::args::CheckFormat;

/// A module or a webhook.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// File or URL.
    pub(super) origin: String,
    /// Only of a module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) module: Option<File>,
    pub(super) targets: Vec<Target>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) interface: String,
    pub(super) imports: Vec<String>,
    pub(super) bytes: usize,
    pub(super) sha256: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) operations: Vec<Available>,
    /// What Karmada does without the other operations.
    pub(super) off: Vec<Off>,
}

#[derive(Debug, Serialize)]
pub(super) struct Available {
    pub(super) operation: &'static str,
    /// Unknown of a webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) registered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample: Option<Sampled>,
}

/// Calls on the sample object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sampled {
    pub(super) calls: usize,
    pub(super) p50_micros: f64,
    pub(super) p99_micros: f64,
    /// Linear memory, at most. Unknown of a webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_memory_bytes: Option<usize>,
    /// `answered`, or why the sample has no answer.
    pub(super) answer: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Off {
    pub(super) operation: &'static str,
    pub(super) means: &'static str,
}

impl Target {
    pub(super) fn new(kind: &Gvk, operations: Vec<Available>) -> Self {
        let has = |operation: &Operation| operations.iter().any(|known| known.operation == operation.as_str());
        let off = Operation::ALL.into_iter().filter(|operation| !has(operation));
        let off = off
            .map(|operation| Off {
                operation: operation.as_str(),
                means: without(operation),
            })
            .collect();
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            operations,
            off,
        }
    }
}

impl Sampled {
    /// `None` when nothing was timed.
    pub(super) fn new(mut times: Vec<Duration>, peak_memory_bytes: Option<usize>, answer: String) -> Option<Self> {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(rank).map(|time| (time.as_secs_f64() * 1e7).round() / 10.0)
        };
        Some(Self {
            calls: times.len(),
            p50_micros: at(50)?,
            p99_micros: at(99)?,
            peak_memory_bytes,
            answer,
        })
    }
}

pub(super) fn print(reports: &[Report], format: CheckFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        CheckFormat::Json => writeln!(out, "{:#}", serde_json::json!(reports)),
        CheckFormat::Text => reports.iter().try_for_each(|report| text(report, out)),
    }
}

fn text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.origin)?;
    if let Some(file) = &report.module {
        let imports = if file.imports.is_empty() {
            "none".to_owned()
        } else {
            file.imports.join(", ")
        };
        writeln!(out, "  module     {}@{}", file.name, file.version)?;
        writeln!(out, "  interface  {}", file.interface)?;
        writeln!(out, "  imports    {imports}")?;
        writeln!(out, "  size       {} bytes", file.bytes)?;
        writeln!(out, "  sha256     {}", file.sha256)?;
    }
    report.targets.iter().try_for_each(|target| kind(target, out))
}

fn kind(target: &Target, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {} {}", target.api_version, target.kind)?;
    for available in &target.operations {
        let registered = match available.registered {
            Some(true) => "registered",
            Some(false) => "not registered",
            None => "served",
        };
        write!(out, "    {:<20} {registered:<15}", available.operation)?;
        if let Some(sample) = &available.sample {
            sampled(sample, out)?;
        }
        writeln!(out)?;
    }
    for off in &target.off {
        writeln!(out, "    {:<20} absent: {}", off.operation, off.means)?;
    }
    Ok(())
}

fn sampled(sample: &Sampled, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        " p50 {:>7.1} us  p99 {:>7.1} us",
        sample.p50_micros, sample.p99_micros
    )?;
    if let Some(peak) = sample.peak_memory_bytes {
        write!(out, "  {:>6} KiB", peak >> 10)?;
    }
    if sample.answer != "answered" {
        write!(out, "  ({})", sample.answer)?;
    }
    Ok(())
}

/// What Karmada v1.18 does with a custom kind that lacks the operation.
fn without(operation: Operation) -> &'static str {
    match operation {
        Operation::InterpretReplica => {
            "replicas are 0 to Karmada: no division of replicas among clusters, no resource-aware scheduling, no quota by replicas"
        }
        Operation::InterpretComponent => {
            "objects with several pod templates are scheduled without their components (feature gate MultiplePodTemplatesScheduling)"
        }
        Operation::ReviseReplica => {
            "every cluster gets the template's own replicas: divided replicas are not written into the object"
        }
        Operation::Retain => "fields that the member cluster owns are overwritten at every apply",
        Operation::AggregateStatus => "status of the template on the hub is never set from the clusters",
        Operation::InterpretStatus => {
            "the whole status is reflected as it is, without the generations that observedGeneration needs"
        }
        Operation::InterpretHealth => "application failover is off, and every applied object counts as healthy",
        Operation::InterpretDependency => {
            "propagateDeps finds nothing: ConfigMaps, Secrets and the like do not follow the object"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let times = (1..=100).rev().map(Duration::from_micros).collect();
        let sampled = Sampled::new(times, None, String::new()).unwrap();
        assert!(
            (sampled.p50_micros - 50.0).abs() < 0.01 && (sampled.p99_micros - 99.0).abs() < 0.01,
            "{sampled:?}"
        );
        let one = Sampled::new(vec![Duration::from_nanos(1500)], None, String::new()).unwrap();
        assert!((one.p50_micros - 1.5).abs() < 0.01 && (one.p99_micros - 1.5).abs() < 0.01);
        assert!(Sampled::new(Vec::new(), None, String::new()).is_none());
    }

    #[test]
    fn a_missing_operation_is_named_with_the_feature_that_is_off() {
        let available = Available {
            operation: "InterpretReplica",
            registered: Some(true),
            sample: None,
        };
        let target = Target::new(&Gvk::new("example.io", "v1", "Widget"), vec![available]);
        let health = target
            .off
            .iter()
            .find(|off| off.operation == "InterpretHealth")
            .unwrap();
        assert!(health.means.contains("application failover is off"));
        assert_eq!(target.off.len(), 7);
    }
}
