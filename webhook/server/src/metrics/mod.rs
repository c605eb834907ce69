//! What `/metrics` shows. Labels are bounded: kinds and modules are those that are loaded, everything else is a fixed set.

mod calls;
mod listener;
mod process;

use std::sync::Arc;

use popcell_engine::{Allocator, Modules};
use popcell_https::{CertificateStatus, ListenerStatus};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use calls::Calls;
pub(crate) use process::max_files;

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
        registry.register_collector(Box::new(process::Process::default()));
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
            .register_collector(Box::new(listener::Listening { listener, certificate }));
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
