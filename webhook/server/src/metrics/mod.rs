//! What `/metrics` shows. Labels are bounded: kinds and modules are those that are loaded, everything else is a fixed set.
//!
//! Values of connections, the certificate and the process are read at the moment of the scrape.

mod calls;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use popcell_engine::{Allocator, Modules};
use popcell_https::{CertificateStatus, ListenerStatus, log};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use calls::Calls;

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
