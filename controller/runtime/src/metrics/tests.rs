//! What a scrape shows.

use std::sync::atomic::{AtomicUsize, Ordering};

use popcell_core::metrics as table;

use super::*;

/// The value of a series, labels included.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

/// As it is written in the text, with this ending of the name.
fn series(metric: &Metric, ending: &str) -> String {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("{label}=\"x\"")).collect();
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", labels.join(","))
    };
    format!("{}{ending}{labels}", metric.name)
}

/// Gives each metric of the table one figure.
fn filled() -> Metrics {
    let metrics = Metrics::new();
    {
        let mut values = metrics.values.lock();
        for metric in ALL {
            let labels = vec!["x"; metric.labels.len()];
            match metric.type_ {
                Type::Counter => *row(&mut values.counters, metric, &labels) = 1,
                Type::Gauge => *row(&mut values.gauges, metric, &labels) = 1.5,
                Type::Histogram => row(&mut values.histograms, metric, &labels).observe(Duration::from_millis(1_500)),
            }
        }
    }
    metrics
}

#[test]
fn every_metric_of_the_table_can_be_used() {
    let text = filled().encode();
    for metric in ALL {
        let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        assert_eq!(
            text.matches(&format!("# HELP {name} {}\n", metric.help)).count(),
            1,
            "{name}"
        );
        match metric.type_ {
            Type::Counter => {
                assert!(text.contains(&format!("# TYPE {name} counter\n")), "{name}");
                assert_eq!(value(&text, &series(metric, "")), Some(1.0), "{name}");
            }
            Type::Gauge => {
                assert!(text.contains(&format!("# TYPE {name} gauge\n")), "{name}");
                assert_eq!(value(&text, &series(metric, "")), Some(1.5), "{name}");
            }
            Type::Histogram => {
                assert!(text.contains(&format!("# TYPE {name} histogram\n")), "{name}");
                assert_eq!(value(&text, &series(metric, "_count")), Some(1.0), "{name}");
                assert_eq!(value(&text, &series(metric, "_sum")), Some(1.5), "{name}");
            }
        }
    }
    assert!(!text.contains("_total_total"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn buckets_are_from_a_millisecond_to_a_minute() {
    let metrics = Metrics::new();
    for millis in [1, 1_500, 61_000] {
        metrics.observe(
            &table::POPCELL_RECONCILE_SECONDS,
            &["workload"],
            Duration::from_millis(millis),
        );
    }
    let text = metrics.encode();
    for (bound, count) in [("0.001", 1.0), ("1.0", 1.0), ("2.5", 2.0), ("60.0", 2.0), ("+Inf", 3.0)] {
        let bucket = format!("popcell_reconcile_duration_seconds_bucket{{le=\"{bound}\",reconciler=\"workload\"}}");
        assert_eq!(value(&text, &bucket), Some(count), "{text}");
    }
}

#[test]
fn series_end_with_their_subject() {
    let metrics = Metrics::new();
    let row = |plane: &str, kind: &str| ([plane.to_owned(), kind.to_owned()], 1.0);
    metrics.replace(
        &table::DELETION_GUARD,
        vec![row("hub", "Instance"), row("project p", "Instance")],
    );
    metrics.replace(&table::DELETION_GUARD, vec![row("hub", "WorkloadDeployment")]);
    let text = metrics.encode();
    let left: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("popcell_deletion_guard_held"))
        .collect();
    assert_eq!(
        left,
        ["popcell_deletion_guard_held{plane=\"hub\",kind=\"WorkloadDeployment\"} 1.0"]
    );
    metrics.replace(&table::DELETION_GUARD, Vec::new());
    assert!(!metrics.encode().contains("popcell_deletion_guard_held"));
}

#[test]
fn nothing_is_claimed_before_it_is_known() {
    let text = Metrics::new().encode();
    assert_eq!(value(&text, "popcell_leader"), None);
    assert_eq!(value(&text, "compute_quota_claim_orphaned_total"), Some(0.0));
    assert_eq!(value(&text, "popcell_admission_duration_seconds_count"), Some(0.0));
}

#[test]
fn a_reached_total_never_decreases() {
    let metrics = Metrics::new();
    for total in [3, 7, 5] {
        metrics.reach(&table::WORKQUEUE_ADDS, &["q", "q"], total);
    }
    let adds = value(&metrics.encode(), "workqueue_adds_total{name=\"q\",controller=\"q\"}");
    assert_eq!(adds, Some(7.0));
}

#[test]
fn hooks_run_before_each_scrape_and_may_add_others() {
    let (metrics, scrapes) = (Metrics::new(), AtomicUsize::new(0));
    metrics.before_scrape(Box::new(move |metrics| {
        let before = scrapes.fetch_add(1, Ordering::Relaxed);
        metrics.set(&table::QUEUE_AGE, &["x"], if before == 0 { 1.0 } else { 2.0 });
        metrics.before_scrape(Box::new(|metrics| metrics.set(&table::LEADER, &[], 1.0)));
    }));
    let age = "popcell_queue_oldest_seconds{reconciler=\"x\"}";
    assert_eq!(value(&metrics.encode(), age), Some(1.0));
    let text = metrics.clone().encode();
    assert_eq!(
        (value(&text, age), value(&text, "popcell_leader")),
        (Some(2.0), Some(1.0))
    );
}
