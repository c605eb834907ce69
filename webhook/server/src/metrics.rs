//! What `/metrics` shows. Labels are bounded: kinds and modules are those that are loaded, everything else is a fixed set.
//!
//! Values of connections, the certificate and the process are read at the moment of the scrape.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use popcell_engine::{Allocator, CallResult, Modules, Outcome, Path};
use popcell_https::{CertificateStatus, ListenerStatus, log};
use popcell_protocol::{Aggregation, Answer, Gvk, Operation, Request};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// Begins every name but those of the process.
const PREFIX: &str = "popcell";

/// The registry of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Arc<Calls>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModuleLabels {
    name: String,
    version: String,
    digest: String,
}

impl Metrics {
    /// Registers everything that is known once the modules are loaded.
    pub fn new(modules: &Modules, allocator: Allocator) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process::default()));
        let own = registry.sub_registry_with_prefix(PREFIX);
        own.register(
            "build",
            "This program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        own.register(
            "engine_allocator",
            "Where the memory of module instances comes from",
            Info::new([("allocator", allocator.as_str())]),
        );
        let loaded = Family::<ModuleLabels, Gauge>::default();
        for module in modules.iter() {
            let description = module.description();
            let labels = ModuleLabels {
                name: description.name.clone(),
                version: description.version.clone(),
                digest: module.digest().to_owned(),
            };
            loaded.get_or_create(&labels).set(1);
        }
        own.register("module_info", "Loaded modules", loaded);
        let calls = Arc::new(Calls::register(own, modules));
        Self { registry, calls }
    }

    /// Counters of calls.
    pub fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    /// Adds the TLS listener and its certificate.
    pub fn add_listener(&mut self, listener: Arc<ListenerStatus>, certificate: Arc<CertificateStatus>) {
        self.registry
            .sub_registry_with_prefix(PREFIX)
            .register_collector(Box::new(Listening { listener, certificate }));
    }

    /// All of it in OpenMetrics text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::with_capacity(16 * 1024);
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Writes one counter whose value is known at the moment of the scrape. `_total` is added to the name.
fn counter<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: N) -> std::fmt::Result
where
    ConstCounter<N>: EncodeMetric,
{
    let metric = ConstCounter::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// Writes one gauge whose value is known at the moment of the scrape.
fn gauge<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: N) -> std::fmt::Result
where
    ConstGauge<N>: EncodeMetric,
{
    let metric = ConstGauge::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

#[derive(Debug)]
struct Listening {
    listener: Arc<ListenerStatus>,
    certificate: Arc<CertificateStatus>,
}

impl Collector for Listening {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let out = &mut encoder;
        let Self { listener, certificate } = self;
        let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("connections", "Open connections", signed(listener.open.load(Relaxed))),
            (
                "requests_in_flight",
                "Requests being answered",
                signed(listener.in_flight.load(Relaxed)),
            ),
            (
                "request_memory_bytes",
                "Memory that requests and answers hold, until they are written",
                signed(listener.held.load(Relaxed)),
            ),
            (
                "certificate_not_after_seconds",
                "End of validity of the served certificate, in seconds since 1970",
                certificate.not_after.load(Relaxed),
            ),
            (
                "certificate_reload_failing",
                "1 when the last look for a new certificate failed",
                i64::from(certificate.failing.load(Relaxed)),
            ),
        ] {
            gauge(out, name, help, value)?;
        }
        counter(
            out,
            "log_lines_lost",
            "Log lines that could not be written to standard error",
            log::lost(),
        )?;
        for (name, help, value) in [
            ("connections_accepted", "Accepted connections", &listener.accepted),
            (
                "connections_refused",
                "Connections closed because too many were open and all were being served",
                &listener.refused,
            ),
            (
                "connections_evicted",
                "Connections closed because they kept a place or memory from others",
                &listener.evicted,
            ),
            (
                "connections_unread",
                "Connections cut because an answer was not read in time",
                &listener.unread,
            ),
            (
                "requests_without_memory",
                "Requests answered 429 for want of memory",
                &listener.no_room,
            ),
            (
                "connections_silent",
                "Connections closed because no request came",
                &listener.silent,
            ),
            ("connections_cut", "Connections cut at the stop", &listener.cut),
            (
                "accept_errors",
                "Failures to accept a connection",
                &listener.accept_errors,
            ),
            (
                "handshake_errors",
                "TLS handshakes that failed or took too long",
                &listener.handshake_errors,
            ),
            ("certificate_reloads", "New certificates taken", &certificate.reloads),
            (
                "certificate_reload_errors",
                "Failed looks for a new certificate",
                &certificate.reload_errors,
            ),
        ] {
            counter(out, name, help, value.load(Relaxed))?;
        }
        Ok(())
    }
}

/// `USER_HZ`: fixed at 100 in Linux's interface to user space (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;
/// proc(5) counts fields from 1; these are `utime`, `stime` and `vsize` after the two that precede the state.
const AFTER_NAME: [usize; 3] = [11, 12, 20];

#[derive(Debug)]
struct Process {
    started: f64,
}

impl Default for Process {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            started: started.as_secs_f64(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let out = &mut encoder;
        if let Some([user, system, virtual_bytes]) = stat() {
            let cpu = (user + system) / TICKS_PER_SECOND;
            counter(out, "process_cpu_seconds", "CPU time of the process", cpu)?;
            gauge(
                out,
                "process_virtual_memory_bytes",
                "Address space of the process",
                virtual_bytes,
            )?;
        }
        if let Some(resident) = resident_bytes() {
            gauge(out, "process_resident_memory_bytes", "Memory of the process", resident)?;
        }
        if let Some(open) = open_files() {
            gauge(out, "process_open_fds", "Open file descriptors", open)?;
        }
        if let Some(max) = max_files() {
            gauge(out, "process_max_fds", "File descriptors that may be open", max)?;
        }
        gauge(
            out,
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
            self.started,
        )
    }
}

fn stat() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may contain anything, so count from its end.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let [user, system, virtual_bytes] = AFTER_NAME.map(|index| fields.get(index)?.parse::<f64>().ok());
    Some([user?, system?, virtual_bytes?])
}

fn resident_bytes() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

/// The soft limit; `None` where there is none.
pub(crate) fn max_files() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

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
    fn register(registry: &mut Registry, modules: &Modules) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let [user, system, virtual_bytes] = stat().unwrap();
        let resident = resident_bytes().unwrap();
        assert!(user + system < 1e9);
        assert!(resident > 1e5 && virtual_bytes > resident, "{virtual_bytes} {resident}");
        assert!(open_files().unwrap() >= 3.0);
        assert!(max_files().unwrap() >= 3.0);
    }
}
