//! What `/metrics` shows: the table of popcell-core, with figures.
//!
//! Invariants: there is a place for each metric of the table and for no other; nothing that is counted, set or observed
//! can fail or wait for long; a set of series that is replaced is never seen half.

mod family;
mod glue;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use popcell_core::metrics::{ALL, Metric};
use prometheus_client::registry::Registry;
use tracing::debug;

use crate::times::Times;
use family::{Family, Refusal, Update};

pub use glue::{observe_discovery, observe_pass, observe_planes, observe_queue};

/// Called before a scrape, to set gauges that are computed only then.
type Hook = dyn Fn(&Metrics) + Send + Sync;

/// All figures of the process. Clones share them.
///
/// Labels are given in the order of the table. What does not fit the table, a metric that is not in it or a wrong number
/// of labels, is a mistake of the caller: it is told to the log at debug and left out.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    families: BTreeMap<&'static str, Family>,
    hooks: RwLock<Vec<Arc<Hook>>>,
}

impl Metrics {
    /// Registers the table. Counters and histograms without labels begin at 0; everything else appears with its first
    /// series.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let mut families = BTreeMap::new();
        for metric in ALL {
            let family = Family::new(*metric);
            // Both endings are added when the text is written.
            let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
            let help = metric.help.strip_suffix('.').unwrap_or(metric.help);
            registry.register(name, help, family.clone());
            families.insert(metric.name, family);
        }
        Self {
            inner: Arc::new(Inner {
                registry,
                families,
                hooks: RwLock::default(),
            }),
        }
    }

    /// A counter grows by one.
    pub fn count(&self, metric: &Metric, labels: &[&str]) {
        self.add(metric, labels, 1);
    }

    /// A counter grows by so many.
    pub fn add(&self, metric: &Metric, labels: &[&str], by: u64) {
        self.update(metric, labels, Update::Add(by));
    }

    /// A counter that somebody else keeps has reached this figure. It never goes down.
    pub fn reach(&self, metric: &Metric, labels: &[&str], total: u64) {
        self.update(metric, labels, Update::Reach(total));
    }

    /// A gauge has this value now.
    pub fn set(&self, metric: &Metric, labels: &[&str], value: f64) {
        self.update(metric, labels, Update::Set(value));
    }

    /// A histogram counts this time.
    pub fn observe(&self, metric: &Metric, labels: &[&str], time: Duration) {
        self.update(metric, labels, Update::Observe(time));
    }

    /// A histogram that somebody else keeps has become this.
    pub fn show(&self, metric: &Metric, labels: &[&str], times: &Times) {
        self.update(metric, labels, Update::Show(times));
    }

    /// The subject of a series is gone, and the series with it. Nothing happens where there is none.
    pub fn forget(&self, metric: &Metric, labels: &[&str]) {
        self.update(metric, labels, Update::Forget);
    }

    /// A gauge has these series, each with its value, and no others. A scrape sees the old set or the new one.
    pub fn replace(&self, metric: &Metric, rows: Vec<(Vec<String>, f64)>) {
        let done = self.family(metric).and_then(|family| family.replace(rows));
        told(metric, done);
    }

    /// Calls this before each scrape, on the thread of the port: for gauges that would be computed in vain otherwise.
    pub fn before_scrape(&self, hook: Box<Hook>) {
        let mut hooks = self.inner.hooks.write().unwrap_or_else(PoisonError::into_inner);
        hooks.push(Arc::from(hook));
    }

    /// All of it in OpenMetrics text.
    pub fn encode(&self) -> String {
        // Without the lock: a hook may add another.
        let hooks = self.inner.hooks.read().unwrap_or_else(PoisonError::into_inner).clone();
        for hook in hooks {
            hook(self);
        }
        let mut text = String::with_capacity(16 * 1024);
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.inner.registry) {
            // Only what is written into can fail, and this is a String.
            debug!(%error, "failed to write the metrics");
        }
        text
    }

    fn update(&self, metric: &Metric, labels: &[&str], update: Update<'_>) {
        let done = self.family(metric).and_then(|family| family.update(labels, update));
        told(metric, done);
    }

    fn family(&self, metric: &Metric) -> Result<&Family, Refusal> {
        let family = self.inner.families.get(metric.name);
        family.ok_or(Refusal::Unknown)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn told(metric: &Metric, done: Result<(), Refusal>) {
    if let Err(refusal) = done {
        debug!(metric = metric.name, %refusal, "a figure is left out");
    }
}
