//! Times between what was sent and what was seen.

use std::time::Instant;

use serde::Serialize;

/// Milliseconds from one moment to another; none where the other was before.
pub trait MillisSince {
    /// How long after `earlier` this is.
    fn millis_since(&self, earlier: Instant) -> f64;
}

impl MillisSince for Instant {
    fn millis_since(&self, earlier: Instant) -> f64 {
        self.saturating_duration_since(earlier).as_secs_f64() * 1e3
    }
}

/// Times of one thing that happened several times, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    /// Half of them take no longer.
    pub p50: f64,
    /// All but one percent take no longer.
    pub p99: f64,
    /// In the order in which they were taken.
    pub samples: Vec<f64>,
}

impl Times {
    /// Of these samples.
    #[must_use]
    pub fn of(samples: Vec<f64>) -> Self {
        Self {
            p50: percentile(&samples, 50),
            p99: percentile(&samples, 99),
            samples,
        }
    }
}

/// The smallest value that so many percent do not exceed; not a number when there are none.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert!((percentile(&values, 50) - 100.0).abs() < f64::EPSILON);
        assert!((percentile(&values, 99) - 198.0).abs() < f64::EPSILON);
        assert!((percentile(&[7.0], 99) - 7.0).abs() < f64::EPSILON);
        assert!(percentile(&[], 50).is_nan());
    }
}
