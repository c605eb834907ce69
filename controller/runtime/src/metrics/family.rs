//! One metric with all its series.
//!
//! prometheus-client's own families cannot replace a set of series in one step, nor take a count over that is kept
//! elsewhere; its registry and text are used as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use popcell_core::metrics::{Metric, Type};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use thiserror::Error;

use crate::times::Times;

/// Why a figure is left out.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum Refusal {
    #[error("it is not in the table")]
    Unknown,
    #[error("it has {wanted} labels, not {given}")]
    Labels { wanted: usize, given: usize },
    #[error("it is a {0:?}")]
    Type(Type),
}

/// What becomes of one series.
#[derive(Clone, Copy, Debug)]
pub(super) enum Update<'a> {
    Add(u64),
    Reach(u64),
    Set(f64),
    Observe(Duration),
    Show(&'a Times),
    Forget,
}

/// By label values.
type Series<T> = BTreeMap<Vec<String>, T>;

enum Rows {
    Counter(Series<u64>),
    Gauge(Series<f64>),
    Histogram(Series<Times>),
}

/// Clones share the series.
#[derive(Clone)]
pub(super) struct Family {
    metric: Metric,
    rows: Arc<Mutex<Rows>>,
}

impl Family {
    pub(super) fn new(metric: Metric) -> Self {
        let mut rows = match metric.type_ {
            Type::Counter => Rows::Counter(Series::new()),
            Type::Gauge => Rows::Gauge(Series::new()),
            Type::Histogram => Rows::Histogram(Series::new()),
        };
        if begins_at_zero(&metric) {
            match &mut rows {
                Rows::Counter(rows) => {
                    rows.insert(Vec::new(), 0);
                }
                Rows::Histogram(rows) => {
                    rows.insert(Vec::new(), Times::default());
                }
                Rows::Gauge(_) => {}
            }
        }
        Self {
            metric,
            rows: Arc::new(Mutex::new(rows)),
        }
    }

    pub(super) fn update(&self, labels: &[&str], update: Update<'_>) -> Result<(), Refusal> {
        self.check(labels.len())?;
        let key: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        match (&mut *self.rows(), update) {
            (Rows::Counter(rows), Update::Add(by)) => {
                let count = rows.entry(key).or_default();
                *count = count.saturating_add(by);
            }
            (Rows::Counter(rows), Update::Reach(total)) => {
                let count = rows.entry(key).or_default();
                *count = total.max(*count);
            }
            (Rows::Counter(rows), Update::Forget) => {
                rows.remove(&key);
            }
            (Rows::Gauge(rows), Update::Set(value)) => {
                rows.insert(key, value);
            }
            (Rows::Gauge(rows), Update::Forget) => {
                rows.remove(&key);
            }
            (Rows::Histogram(rows), Update::Observe(time)) => rows.entry(key).or_default().observe(time),
            (Rows::Histogram(rows), Update::Show(times)) => {
                rows.insert(key, times.clone());
            }
            (Rows::Histogram(rows), Update::Forget) => {
                rows.remove(&key);
            }
            _ => return Err(Refusal::Type(self.metric.type_)),
        }
        Ok(())
    }

    pub(super) fn replace(&self, new: Vec<(Vec<String>, f64)>) -> Result<(), Refusal> {
        for (labels, _) in &new {
            self.check(labels.len())?;
        }
        match &mut *self.rows() {
            Rows::Gauge(rows) => *rows = new.into_iter().collect(),
            Rows::Counter(_) | Rows::Histogram(_) => return Err(Refusal::Type(self.metric.type_)),
        }
        Ok(())
    }

    fn check(&self, given: usize) -> Result<(), Refusal> {
        let wanted = self.metric.labels.len();
        if wanted == given {
            Ok(())
        } else {
            Err(Refusal::Labels { wanted, given })
        }
    }

    // Each access is one step of a map: there is no half-done state that a panic could leave.
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes each series with its labels.
    fn each<T>(
        &self,
        encoder: &mut MetricEncoder<'_>,
        rows: &Series<T>,
        write: impl Fn(&mut MetricEncoder<'_>, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (values, value) in rows {
            let values = values.iter().map(String::as_str);
            let labels: Vec<(&str, &str)> = self.metric.labels.iter().copied().zip(values).collect();
            write(&mut encoder.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Family").field(&self.metric.name).finish()
    }
}

impl EncodeMetric for Family {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        match &*self.rows() {
            Rows::Counter(rows) => self.each(encoder, rows, |out, count| {
                out.encode_counter::<NoLabelSet, _, f64>(count, None)
            }),
            Rows::Gauge(rows) => self.each(encoder, rows, |out, &value| out.encode_gauge(&value)),
            Rows::Histogram(rows) => self.each(encoder, rows, |out, times| {
                let buckets: Vec<(f64, u64)> = times.buckets().collect();
                out.encode_histogram::<NoLabelSet>(times.sum().as_secs_f64(), times.count(), &buckets, None)
            }),
        }
    }

    fn metric_type(&self) -> MetricType {
        match self.metric.type_ {
            Type::Counter => MetricType::Counter,
            Type::Gauge => MetricType::Gauge,
            Type::Histogram => MetricType::Histogram,
        }
    }

    fn is_empty(&self) -> bool {
        match &*self.rows() {
            Rows::Counter(rows) => rows.is_empty(),
            Rows::Gauge(rows) => rows.is_empty(),
            Rows::Histogram(rows) => rows.is_empty(),
        }
    }
}

/// Whether series without labels are there from the start. A gauge is not: 0 would be a claim.
fn begins_at_zero(metric: &Metric) -> bool {
    metric.labels.is_empty() && metric.type_ != Type::Gauge
}
