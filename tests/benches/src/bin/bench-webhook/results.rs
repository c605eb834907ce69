//! Medians of the rounds.

use popcell_protocol::Operation;
use serde::{Serialize, Serializer};

use crate::client::Measurement;
use crate::peers::{Peer, Transport};

/// What a measurement is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Key {
    pub(crate) peer: Peer,
    pub(crate) transport: Transport,
    #[serde(serialize_with = "spelled")]
    pub(crate) operation: Operation,
    pub(crate) callers: usize,
}

/// Medians, and the rounds that they come from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    #[serde(flatten)]
    pub(crate) key: Key,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) client_cpu_micros: f64,
    pub(crate) server_cpu_micros: Option<f64>,
    pub(crate) server_rss_kib: Option<f64>,
    pub(crate) rounds: Vec<Measurement>,
}

/// Median time of a call of the engine alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EngineSummary {
    #[serde(serialize_with = "spelled")]
    pub(crate) operation: Operation,
    pub(crate) p50_micros: f64,
    pub(crate) rounds: Vec<f64>,
}

impl Summary {
    /// Of the rounds of one key, of which there is at least one.
    pub(crate) fn of(key: Key, rounds: Vec<Measurement>) -> Self {
        let of = |value: fn(&Measurement) -> f64| median(rounds.iter().map(value).collect());
        let known = |value: fn(&Measurement) -> Option<f64>| {
            let values: Option<Vec<f64>> = rounds.iter().map(value).collect();
            values.map(median)
        };
        Self {
            key,
            p50_micros: of(|round| round.p50_micros),
            p99_micros: of(|round| round.p99_micros),
            calls_per_second: of(|round| round.calls_per_second),
            client_cpu_micros: of(|round| round.client_cpu_micros),
            server_cpu_micros: known(|round| round.server_cpu_micros),
            server_rss_kib: known(|round| round.server_rss_kib_after),
            rounds,
        }
    }

    /// Client and server.
    pub(crate) fn total_cpu_micros(&self) -> f64 {
        self.client_cpu_micros + self.server_cpu_micros.unwrap_or(0.0)
    }
}

/// The middle value; of an even number of values the mean of the two in the middle; not a number when there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    if values.len() % 2 == 1 {
        return upper;
    }
    let lower = values.get((values.len() / 2).wrapping_sub(1)).copied();
    f64::midpoint(lower.unwrap_or(f64::NAN), upper)
}

/// Karmada's spelling.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn spelled<S: Serializer>(operation: &Operation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(operation.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![9.0, 1.0, 2.0, 4.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }
}
