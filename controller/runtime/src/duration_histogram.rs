//! Times by size: what a histogram shows, without a registry.

use std::time::Duration;

/// Upper bounds; what took longer is counted beyond the last. A reconcile over a converged object takes about 1 ms, and
/// nothing that a server answers may take a minute.
pub const BOUNDS: [Duration; 15] = [
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
];

/// How many times there were between two bounds, and how long they were together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    counts: [u64; BOUNDS.len()],
    beyond: u64,
    sum: Duration,
}

impl DurationHistogram {
    /// Counts one.
    pub fn observe(&mut self, time: Duration) {
        let within = BOUNDS.iter().position(|bound| time <= *bound);
        let count = within.and_then(|place| self.counts.get_mut(place));
        *count.unwrap_or(&mut self.beyond) += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.beyond
    }

    /// How long they were together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Upper bounds in seconds, infinity last, and how many were counted between each and the one before.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = BOUNDS.iter().map(Duration::as_secs_f64);
        let within = bounds.zip(self.counts.iter().copied());
        within.chain([(f64::INFINITY, self.beyond)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_under_the_first_bound_that_it_does_not_exceed() {
        let mut times = DurationHistogram::default();
        for millis in [0, 1, 2, 60_000, 60_001, 3_600_000] {
            times.observe(Duration::from_millis(millis));
        }
        let filled: Vec<(f64, u64)> = times.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.001, 2), (0.0025, 1), (60.0, 1), (f64::INFINITY, 2)]);
        assert_eq!((times.count(), times.sum()), (6, Duration::from_millis(3_720_004)));
    }

    #[test]
    fn bounds_grow() {
        assert!(BOUNDS.is_sorted_by(|before, after| before < after));
    }
}
