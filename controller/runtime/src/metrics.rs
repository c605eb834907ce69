//! What `/metrics` shows: the table of popcell-core, with values.
//!
//! Invariants: there is a place for each metric of the table and for no other; nothing that is counted, set or observed
//! can fail or wait for long; a set of series that is replaced is never seen half.
//!
//! Series are kept here and not in families of prometheus-client 0.26, which writes the text: a `Family` cannot replace a
//! set of series in one step, nor take over a count or a histogram that a queue keeps by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use popcell_core::metrics::{ALL, Counter, Gauge, Histogram, Metric, Type};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tracing::debug;

use crate::duration_histogram::DurationHistogram;
use crate::sync::{self, lock};

#[cfg(test)]
pub(crate) mod tests;

/// Called before a scrape, to set gauges that are computed only then.
type Hook = dyn Fn(&Metrics) + Send + Sync;

/// Series by the name of their metric and the values of their labels.
type Series<T> = BTreeMap<&'static str, BTreeMap<Vec<String>, T>>;

/// All values of the process. Clones share them. Labels are given in the order of the table.
#[derive(Clone)]
pub struct Metrics {
    values: Shared,
    hooks: Arc<RwLock<Vec<Arc<Hook>>>>,
}

#[derive(Default)]
struct Values {
    counters: Series<u64>,
    gauges: Series<f64>,
    histograms: Series<DurationHistogram>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Values>>);

impl Metrics {
    /// Counters and histograms without labels begin at 0; everything else appears with its first series. A gauge does too:
    /// 0 would be a claim.
    pub fn new() -> Self {
        let mut values = Values::default();
        for metric in ALL.iter().filter(|metric| metric.labels.is_empty()) {
            match metric.type_ {
                Type::Counter => {
                    row(&mut values.counters, metric, &[]);
                }
                Type::Histogram => {
                    row(&mut values.histograms, metric, &[]);
                }
                Type::Gauge => {}
            }
        }
        Self {
            values: Shared(Arc::new(Mutex::new(values))),
            hooks: Arc::default(),
        }
    }

    /// A counter grows by one.
    pub fn count<const N: usize>(&self, counter: &Counter<N>, labels: &[&str; N]) {
        self.add(counter, labels, 1);
    }

    /// A counter grows by so many.
    pub fn add<const N: usize>(&self, counter: &Counter<N>, labels: &[&str; N], by: u64) {
        let mut values = self.values.lock();
        let count = row(&mut values.counters, &counter.0, labels);
        *count = count.saturating_add(by);
    }

    /// A counter that other code keeps has reached this value. It never decreases.
    pub fn reach<const N: usize>(&self, counter: &Counter<N>, labels: &[&str; N], total: u64) {
        let mut values = self.values.lock();
        let count = row(&mut values.counters, &counter.0, labels);
        *count = total.max(*count);
    }

    /// A gauge has this value now.
    pub fn set<const N: usize>(&self, gauge: &Gauge<N>, labels: &[&str; N], value: f64) {
        *row(&mut self.values.lock().gauges, &gauge.0, labels) = value;
    }

    /// A gauge has these series, each with its value, and no others. A scrape sees the old set or the new one.
    pub fn replace<const N: usize>(&self, gauge: &Gauge<N>, rows: impl IntoIterator<Item = ([String; N], f64)>) {
        let rows = rows.into_iter().map(|(labels, value)| (Vec::from(labels), value));
        let rows = rows.collect();
        self.values.lock().gauges.insert(gauge.0.name, rows);
    }

    /// A histogram counts this time.
    pub fn observe<const N: usize>(&self, histogram: &Histogram<N>, labels: &[&str; N], time: Duration) {
        row(&mut self.values.lock().histograms, &histogram.0, labels).observe(time);
    }

    /// A histogram that other code keeps has these values.
    pub fn show<const N: usize>(&self, histogram: &Histogram<N>, labels: &[&str; N], times: &DurationHistogram) {
        *row(&mut self.values.lock().histograms, &histogram.0, labels) = times.clone();
    }

    /// Calls this before each scrape, on the thread of the port: for gauges that would be computed in vain otherwise.
    pub fn before_scrape(&self, hook: Box<Hook>) {
        let mut hooks = sync::write(&self.hooks);
        hooks.push(Arc::from(hook));
    }

    /// All of it in OpenMetrics text.
    pub fn encode(&self) -> String {
        // Without the lock: a hook may add another.
        let hooks = sync::read(&self.hooks).clone();
        for hook in hooks {
            hook(self);
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.values.clone()));
        let mut text = String::with_capacity(16 * 1024);
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &registry) {
            // Only what is written into can fail, and this is a String.
            debug!(%error, "failed to write the metrics");
        }
        text
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

/// The series of these labels; a new one begins at 0.
fn row<'s, T: Default>(series: &'s mut Series<T>, metric: &Metric, labels: &[&str]) -> &'s mut T {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    series.entry(metric.name).or_default().entry(labels).or_default()
}

impl Shared {
    // Each access is one step of a map: there is no half-done state that a panic could leave.
    fn lock(&self) -> MutexGuard<'_, Values> {
        lock(&self.0)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        // The lock is given back between two metrics, so that nobody who counts waits for all of them.
        for metric in ALL {
            match metric.type_ {
                Type::Counter => write(out, metric, MetricType::Counter, &self.lock().counters, |out, count| {
                    out.encode_counter::<NoLabelSet, _, f64>(count, None)
                }),
                Type::Gauge => write(out, metric, MetricType::Gauge, &self.lock().gauges, |out, value| {
                    out.encode_gauge(value)
                }),
                Type::Histogram => write(
                    out,
                    metric,
                    MetricType::Histogram,
                    &self.lock().histograms,
                    |out, times| {
                        let buckets: Vec<(f64, u64)> = times.buckets().collect();
                        out.encode_histogram::<NoLabelSet>(times.sum().as_secs_f64(), times.count(), &buckets, None)
                    },
                ),
            }?;
        }
        Ok(())
    }
}

/// Writes a metric with its series; nothing where there is none.
fn write<T>(
    encoder: &mut DescriptorEncoder<'_>,
    metric: &Metric,
    type_: MetricType,
    series: &Series<T>,
    value: impl Fn(&mut MetricEncoder<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    let Some(rows) = series.get(metric.name).filter(|rows| !rows.is_empty()) else {
        return Ok(());
    };
    // The ending of counters is added when the text is written.
    let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    let mut encoder = encoder.encode_descriptor(name, metric.help, None, type_)?;
    for (values, figure) in rows {
        let values = values.iter().map(String::as_str);
        let labels: Vec<(&str, &str)> = metric.labels.iter().copied().zip(values).collect();
        value(&mut encoder.encode_family(&labels)?, figure)?;
    }
    Ok(())
}
