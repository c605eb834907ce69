//! One storm, as the webhook's own metrics tell it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use popcell_test_support::Webhook;
use popcell_test_support::process::peak_kib;

/// What one storm was.
#[derive(Debug)]
pub(crate) struct Storm {
    /// From the start of Karmada's processes until every object was interpreted.
    pub(crate) took: Duration,
    /// From a change of one more object's spec, made at the start of the storm, until its cell has it.
    pub(crate) one_more: Duration,
    pub(crate) calls: f64,
    pub(crate) health_calls: f64,
    /// Calls with another outcome than `ok`, those that were turned away left out.
    pub(crate) not_ok: f64,
    pub(crate) turned_away: f64,
    /// Upper bound of the bucket in which the 99th percentile of the waiting lies; "none" where no call waited.
    pub(crate) queue: String,
    /// The same of the time in the module.
    pub(crate) duration: String,
    /// Seconds of CPU that the webhook took.
    pub(crate) cpu: f64,
    /// The most memory that the webhook's process ever had.
    pub(crate) peak_mib: f64,
}

/// Counters of a fresh webhook that has seen nothing but the storm.
pub(crate) async fn measure(webhook: &Webhook, took: Duration, one_more: Duration) -> Result<Storm> {
    const CALLS: &str = "popcell_calls_total";
    let calls = webhook.metric(CALLS, &[]).await?;
    let ok = webhook.metric(CALLS, &[r#"outcome="ok""#]).await?;
    let mut turned_away = 0.0;
    for outcome in ["overloaded", "late"] {
        turned_away += webhook.metric(CALLS, &[&format!("outcome=\"{outcome}\"")]).await?;
    }
    let text = webhook.metrics().await?;
    let pid = webhook.pid().context("the webhook does not run")?;
    Ok(Storm {
        took,
        one_more,
        calls,
        health_calls: webhook.metric(CALLS, &[r#"operation="InterpretHealth""#]).await?,
        not_ok: calls - ok - turned_away,
        turned_away,
        queue: percentile(&text, "popcell_call_queue_seconds_bucket", 0.99)?,
        duration: percentile(&text, "popcell_call_duration_seconds_bucket", 0.99)?,
        cpu: webhook.metric("process_cpu_seconds_total", &[]).await?,
        peak_mib: peak_kib(pid)? / 1024.0,
    })
}

/// Upper bound of the bucket, over all series of a histogram, that holds the quantile.
fn percentile(text: &str, metric: &str, quantile: f64) -> Result<String> {
    // By order of the bounds; their text is kept, since it is what is printed.
    let mut buckets: BTreeMap<u64, (String, f64)> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with(metric)) {
        let (labels, count) = line.rsplit_once(' ').context("a sample without value")?;
        let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
        let bound = bound.with_context(|| format!("a bucket without bound: {line}"))?;
        let value: f64 = if bound == "+Inf" {
            f64::INFINITY
        } else {
            bound.parse().context("a bound that is no number")?
        };
        // Floats that are not negative sort as their bits do.
        let bucket = buckets
            .entry(value.to_bits())
            .or_insert_with(|| (bound.to_owned(), 0.0));
        bucket.1 += count.parse::<f64>().context("a count that is no number")?;
    }
    let all = buckets.values().last().map_or(0.0, |(_, count)| *count);
    if all == 0.0 {
        return Ok("none".to_owned());
    }
    let holds = buckets.values().find(|(_, count)| *count >= quantile * all);
    Ok(holds.map_or_else(|| "none".to_owned(), |(bound, _)| format!("at most {bound} s")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_bound_of_its_bucket_over_all_series() {
        let text = "x_bucket{le=\"0.1\",a=\"1\"} 90\nx_bucket{le=\"1.0\",a=\"1\"} 100\nx_bucket{le=\"+Inf\",a=\"1\"} 100\n\
                    x_bucket{le=\"0.1\",a=\"2\"} 0\nx_bucket{le=\"1.0\",a=\"2\"} 0\nx_bucket{le=\"+Inf\",a=\"2\"} 1\n";
        assert_eq!(percentile(text, "x_bucket", 0.5).unwrap(), "at most 0.1 s");
        assert_eq!(percentile(text, "x_bucket", 0.99).unwrap(), "at most 1.0 s");
        assert_eq!(percentile(text, "x_bucket", 1.0).unwrap(), "at most +Inf s");
        assert_eq!(percentile(text, "y_bucket", 0.99).unwrap(), "none");
    }
}
