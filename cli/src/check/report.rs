//! What is found, as data.

use std::time::Duration;

use popcell_protocol::{Gvk, Operation};
use serde::Serialize;

use crate::operation;

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
                means: operation::without(operation),
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
