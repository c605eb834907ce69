//! What a scrape shows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use popcell_core::metrics::{self as table, ALL, Metric, Type, outcome};
use popcell_core::plan::Plane;
use tokio::time::Instant;

use super::{Metrics, observe_pass, observe_planes, observe_queue};
use crate::planes;
use crate::queue::{Backoff, Key, Queue, Verdict, Workers};
use crate::world::testing::Log;

/// The value of a series, labels included.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn labels_of(metric: &Metric) -> Vec<&'static str> {
    vec!["x"; metric.labels.len()]
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
    for metric in ALL {
        let labels = labels_of(metric);
        match metric.type_ {
            Type::Counter => metrics.count(metric, &labels),
            Type::Gauge => metrics.set(metric, &labels, 1.5),
            Type::Histogram => metrics.observe(metric, &labels, Duration::from_millis(1_500)),
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
        metrics.observe(&table::PASS_SECONDS, &["workload"], Duration::from_millis(millis));
    }
    let text = metrics.encode();
    for (bound, count) in [("0.001", 1.0), ("1.0", 1.0), ("2.5", 2.0), ("60.0", 2.0), ("+Inf", 3.0)] {
        let bucket = format!("popcell_pass_duration_seconds_bucket{{le=\"{bound}\",reconciler=\"workload\"}}");
        assert_eq!(value(&text, &bucket), Some(count), "{text}");
    }
}

#[test]
fn what_does_not_fit_the_table_is_left_out_and_told() {
    const STRANGER: Metric = Metric {
        name: "popcell_stranger_total",
        type_: Type::Counter,
        labels: &[],
        help: "Not in the table.",
    };
    let (metrics, log) = (filled(), Log::default());
    let before = metrics.encode();
    tracing::subscriber::with_default(log.subscriber(), || {
        metrics.count(&STRANGER, &[]);
        metrics.replace(&STRANGER, Vec::new());
        for metric in ALL {
            let mut labels = labels_of(metric);
            labels.push("y");
            metrics.count(metric, &labels);
            metrics.set(metric, &labels, 9.0);
            metrics.observe(metric, &labels, Duration::from_secs(9));
            metrics.forget(metric, &labels);
            metrics.replace(metric, vec![(labels.into_iter().map(str::to_owned).collect(), 9.0)]);
        }
        metrics.set(&table::PASSES, &["x", "x"], 9.0);
        metrics.replace(&table::PASSES, Vec::new());
        metrics.count(&table::QUEUE_DEPTH, &["x"]);
        metrics.observe(&table::QUEUE_DEPTH, &["x"], Duration::from_secs(9));
        metrics.add(&table::PASS_SECONDS, &["x"], 9);
    });
    assert_eq!(metrics.encode(), before);
    let log = log.text();
    for told in [
        "metric=\"popcell_stranger_total\" refusal=it is not in the table",
        "metric=\"popcell_passes_total\" refusal=it has 2 labels, not 3",
        "metric=\"popcell_queue_depth\" refusal=it is a Gauge",
    ] {
        assert!(log.contains(told), "{told}: {log}");
    }
}

#[test]
fn series_end_with_their_subject() {
    let metrics = Metrics::new();
    metrics.set(&table::STATUS_AGE, &["cell-a"], 3.0);
    metrics.set(&table::STATUS_AGE, &["cell-b"], 4.0);
    metrics.forget(&table::STATUS_AGE, &["cell-a"]);
    metrics.forget(&table::STATUS_AGE, &["never-seen"]);
    let text = metrics.encode();
    assert!(!text.contains("cell-a") && !text.contains("never-seen"), "{text}");
    assert_eq!(
        value(&text, "popcell_status_age_seconds{source_cluster=\"cell-b\"}"),
        Some(4.0)
    );

    let row = |plane: &str, kind: &str| (vec![plane.to_owned(), kind.to_owned()], 1.0);
    metrics.replace(
        &table::BRAKE,
        vec![row("hub", "Instance"), row("project p", "Instance")],
    );
    metrics.replace(&table::BRAKE, vec![row("hub", "WorkloadDeployment")]);
    let text = metrics.encode();
    let left: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("popcell_brake_held"))
        .collect();
    assert_eq!(
        left,
        ["popcell_brake_held{plane=\"hub\",kind=\"WorkloadDeployment\"} 1.0"]
    );
    metrics.replace(&table::BRAKE, Vec::new());
    assert!(!metrics.encode().contains("popcell_brake_held"));
}

#[test]
fn nothing_is_claimed_before_it_is_known() {
    let text = Metrics::new().encode();
    assert_eq!(value(&text, "popcell_leader"), None);
    assert_eq!(value(&text, "compute_quota_claim_orphaned_total"), Some(0.0));
    assert_eq!(value(&text, "popcell_admission_duration_seconds_count"), Some(0.0));
}

#[test]
fn what_somebody_else_counts_never_goes_down() {
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

#[test]
fn a_pass_counts_under_our_names_and_controller_runtimes() {
    let metrics = Metrics::new();
    for outcome in outcome::ALL {
        observe_pass(&metrics, "workload", outcome, Duration::from_millis(5));
    }
    let text = metrics.encode();
    for outcome in outcome::ALL {
        let passes = format!("popcell_passes_total{{reconciler=\"workload\",outcome=\"{outcome}\"}}");
        assert_eq!(value(&text, &passes), Some(1.0), "{text}");
    }
    for (result, count) in [
        ("success", 5.0),
        ("error", 2.0),
        ("requeue", 1.0),
        ("requeue_after", 1.0),
    ] {
        let passes = format!("controller_runtime_reconcile_total{{controller=\"workload\",result=\"{result}\"}}");
        assert_eq!(value(&text, &passes), Some(count), "{text}");
    }
    for (series, count) in [
        ("controller_runtime_reconcile_errors_total", 2.0),
        ("controller_runtime_terminal_reconcile_errors_total", 1.0),
        ("controller_runtime_reconcile_time_seconds_count", 9.0),
    ] {
        assert_eq!(
            value(&text, &format!("{series}{{controller=\"workload\"}}")),
            Some(count)
        );
    }
    let took = value(&text, "popcell_pass_duration_seconds_sum{reconciler=\"workload\"}");
    assert_eq!(took, Some(0.045));
}

#[test]
fn errors_are_there_before_the_first() {
    let metrics = Metrics::new();
    observe_pass(&metrics, "workload", outcome::QUIET, Duration::ZERO);
    let errors = "controller_runtime_reconcile_errors_total{controller=\"workload\"}";
    assert_eq!(value(&metrics.encode(), errors), Some(0.0));
}

#[test]
fn a_queue_shows_under_our_names_and_controller_runtimes() {
    let (metrics, start) = (Metrics::new(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    let key = |name: &str| Key::new(&Plane::Hub, "ns", name);
    let mut queue = Queue::new(Workers { total: 3, share: 3 });
    for name in ["a", "b", "c", "d"] {
        queue.add(key(name), at(0));
    }
    for seconds in [1, 2, 2] {
        queue.pop(at(seconds)).unwrap();
    }
    queue.done(&key("a"), Verdict::Failed(Backoff::REFUSED), at(4));
    observe_queue(&metrics, "policy", &queue.stats(at(9)));

    let text = metrics.encode();
    for (series, expected) in [
        ("popcell_queue_depth", 1.0),
        ("popcell_queue_oldest_seconds", 9.0),
        ("controller_runtime_max_concurrent_reconciles", 3.0),
        ("controller_runtime_active_workers", 2.0),
    ] {
        let label = if series.starts_with("popcell") {
            "reconciler"
        } else {
            "controller"
        };
        let shown = value(&text, &format!("{series}{{{label}=\"policy\"}}"));
        assert_eq!(shown, Some(expected), "{series}");
    }
    for (series, expected) in [
        ("workqueue_depth", 1.0),
        ("workqueue_adds_total", 4.0),
        ("workqueue_retries_total", 1.0),
        ("workqueue_queue_duration_seconds_count", 3.0),
        ("workqueue_queue_duration_seconds_sum", 5.0),
        ("workqueue_work_duration_seconds_count", 1.0),
        ("workqueue_work_duration_seconds_sum", 3.0),
        ("workqueue_unfinished_work_seconds", 14.0),
        ("workqueue_longest_running_processor_seconds", 7.0),
    ] {
        let shown = value(&text, &format!("{series}{{name=\"policy\",controller=\"policy\"}}"));
        assert_eq!(shown, Some(expected), "{series}");
    }
}

#[test]
fn planes_show_by_kind_and_leave_nothing_behind() {
    let metrics = Metrics::new();
    let stats = planes::Stats {
        engaged: 3,
        projects: 2,
        streams_by_sort: [(("project", "Workload"), 2), (("hub", "Instance"), 1)].into(),
        unknown_planes: [("project", 1), ("hub", 0)].into(),
        unreadable_by_sort: [(("project", "Workload"), 4)].into(),
        ..planes::Stats::default()
    };
    observe_planes(&metrics, &stats);
    let text = metrics.encode();
    for (series, expected) in [
        ("popcell_projects_engaged", 2.0),
        ("popcell_watch_streams{plane_kind=\"project\",kind=\"Workload\"}", 2.0),
        ("popcell_watch_streams{plane_kind=\"hub\",kind=\"Instance\"}", 1.0),
        ("popcell_planes_unknown{plane_kind=\"project\"}", 1.0),
        ("popcell_planes_unknown{plane_kind=\"hub\"}", 0.0),
        (
            "popcell_objects_undecodable{plane_kind=\"project\",kind=\"Workload\"}",
            4.0,
        ),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}");
    }
    observe_planes(&metrics, &planes::Stats::default());
    let text = metrics.encode();
    assert!(!text.contains("plane_kind"), "{text}");
    assert_eq!(value(&text, "popcell_projects_engaged"), Some(0.0));
}
