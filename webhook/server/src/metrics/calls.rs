//! Calls by module, kind, operation and outcome.

use std::collections::HashMap;
use std::sync::Arc;

use popcell_engine::{CallResult, Modules, Outcome, Path};
use popcell_protocol::{Aggregation, Answer, Gvk, Operation, Request};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The label of kinds and modules that are not loaded: what strangers send must not make series.
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    module: Arc<str>,
    kind: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Question {
    #[prometheus(flatten)]
    source: Source,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    #[prometheus(flatten)]
    question: Question,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejection {
    reason: &'static str,
}

type Histograms = Family<Question, Histogram, fn() -> Histogram>;

/// Counters and histograms of calls.
#[derive(Debug)]
pub struct Calls {
    outcomes: Family<Call, Counter>,
    duration: Histograms,
    queue: Histograms,
    rejected: Family<Rejection, Counter>,
    left_out: Family<Source, Counter>,
    /// The series of what is loaded, found without building labels.
    known: HashMap<Gvk, HashMap<Operation, Series>>,
}

#[derive(Debug)]
struct Series {
    question: Question,
    ok: Counter,
    duration: Histogram,
    queue: Histogram,
}

impl Calls {
    pub(super) fn register(registry: &mut Registry, modules: &Modules) -> Self {
        let mut calls = Self {
            outcomes: Family::default(),
            duration: Family::new_with_constructor(|| buckets(&[10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 1e-3, 10e-3])),
            queue: Family::new_with_constructor(|| buckets(&[100e-6, 1e-3, 10e-3])),
            rejected: Family::default(),
            left_out: Family::default(),
            known: HashMap::new(),
        };
        for module in modules.iter() {
            let label: Arc<str> = module.label().into();
            for target in &module.description().targets {
                let source = Source {
                    module: Arc::clone(&label),
                    kind: target.kind.to_string().into(),
                };
                for implemented in &target.operations {
                    let operation = implemented.operation;
                    let question = Question {
                        source: source.clone(),
                        operation: operation.as_str(),
                    };
                    if operation == Operation::AggregateStatus {
                        // So that the series is there, at 0, before anything was skipped.
                        drop(calls.left_out.get_or_create(&source));
                    }
                    let series = calls.series(question);
                    calls
                        .known
                        .entry(target.kind.clone())
                        .or_default()
                        .insert(operation, series);
                }
            }
        }
        registry.register("calls", "Calls by outcome", calls.outcomes.clone());
        registry.register_with_unit(
            "call_duration",
            "Time in the module, on both paths together",
            Unit::Seconds,
            calls.duration.clone(),
        );
        registry.register_with_unit(
            "call_queue",
            "Time that a call waited for a slot, of those that needed one",
            Unit::Seconds,
            calls.queue.clone(),
        );
        registry.register(
            "status_parts_dropped",
            "Parts of members' statuses that AggregateStatus dropped from its answers",
            calls.left_out.clone(),
        );
        registry.register(
            "requests_rejected",
            "Requests that could not be read",
            calls.rejected.clone(),
        );
        calls
    }

    fn series(&self, question: Question) -> Series {
        Series {
            ok: self.outcomes.get_or_create_owned(&question.with("ok")),
            duration: self.duration.get_or_create_owned(&question),
            queue: self.queue.get_or_create_owned(&question),
            question,
        }
    }

    /// Counts a call; `outcome` is absent when there is nothing to measure.
    pub fn count(&self, request: &Request<'_>, outcome: Option<&Outcome>, label: &'static str) {
        let known = self
            .known
            .get(&request.kind)
            .and_then(|operations| operations.get(&request.operation));
        let Some(series) = known else {
            let question = self.stranger(request);
            self.outcomes.get_or_create(&question.with(label)).inc();
            return;
        };
        if label == "ok" {
            series.ok.inc();
        } else {
            self.outcomes.get_or_create(&series.question.with(label)).inc();
        }
        let Some(outcome) = outcome else { return };
        if let CallResult::Answer(Answer::Aggregation(Aggregation { left_out, .. })) = &outcome.result
            && *left_out > 0
        {
            let parts = self.left_out.get_or_create(&series.question.source);
            parts.inc_by(u64::from(*left_out));
        }
        series.duration.observe(outcome.ran.as_secs_f64());
        if outcome.path == Path::Slow {
            series.queue.observe(outcome.queued.as_secs_f64());
        }
    }

    /// Counts a request that was not read.
    pub fn reject(&self, reason: &'static str) {
        self.rejected.get_or_create(&Rejection { reason }).inc();
    }

    /// A question that nothing loaded answers: the kind is named only when it is one that is loaded.
    fn stranger(&self, request: &Request<'_>) -> Question {
        let kind = self
            .known
            .get(&request.kind)
            .and_then(|operations| operations.values().next());
        let kind = kind.map_or_else(|| OTHER.into(), |series| Arc::clone(&series.question.source.kind));
        Question {
            source: Source {
                module: OTHER.into(),
                kind,
            },
            operation: request.operation.as_str(),
        }
    }
}

impl Question {
    fn with(&self, outcome: &'static str) -> Call {
        Call {
            question: self.clone(),
            outcome,
        }
    }
}

/// Buckets in seconds: fine ones where nearly all calls are, then the steps of a deadline.
fn buckets(fine: &[f64]) -> Histogram {
    Histogram::new(fine.iter().copied().chain([0.1, 0.5, 1.0, 2.0, 5.0, 30.0]))
}
