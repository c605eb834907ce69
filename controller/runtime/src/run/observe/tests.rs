//! What a scrape shows of reconciles, queues and planes.

use tokio::time::Instant;

use super::*;
use crate::metrics::tests::value;
use crate::queue::{Backoff, Key, Queue, Requeue, Workers};

#[test]
fn a_reconcile_counts_under_our_names_and_controller_runtimes() {
    let metrics = Metrics::new();
    for outcome in outcome::ALL {
        observe_reconcile(&metrics, "workload", outcome, Duration::from_millis(5));
    }
    let text = metrics.encode();
    for outcome in outcome::ALL {
        let reconciles = format!("popcell_reconciles_total{{reconciler=\"workload\",outcome=\"{outcome}\"}}");
        assert_eq!(value(&text, &reconciles), Some(1.0), "{text}");
    }
    for (result, count) in [
        ("success", 5.0),
        ("error", 2.0),
        ("requeue", 1.0),
        ("requeue_after", 1.0),
    ] {
        let reconciles = format!("controller_runtime_reconcile_total{{controller=\"workload\",result=\"{result}\"}}");
        assert_eq!(value(&text, &reconciles), Some(count), "{text}");
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
    let took = value(&text, "popcell_reconcile_duration_seconds_sum{reconciler=\"workload\"}");
    assert_eq!(took, Some(0.045));
}

#[test]
fn errors_are_there_before_the_first() {
    let metrics = Metrics::new();
    observe_reconcile(&metrics, "workload", outcome::UNCHANGED, Duration::ZERO);
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
    queue.done(&key("a"), Requeue::WithBackoff(Backoff::REFUSED), at(4));
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
        not_synced_planes: [("project", 1), ("hub", 0)].into(),
        unreadable_by_sort: [(("project", "Workload"), 4)].into(),
        ..planes::Stats::default()
    };
    observe_planes(&metrics, &stats, &Counts::new());
    let text = metrics.encode();
    for (series, expected) in [
        ("popcell_projects_engaged", 2.0),
        ("popcell_watch_streams{plane_kind=\"project\",kind=\"Workload\"}", 2.0),
        ("popcell_watch_streams{plane_kind=\"hub\",kind=\"Instance\"}", 1.0),
        ("popcell_planes_not_synced{plane_kind=\"project\"}", 1.0),
        ("popcell_planes_not_synced{plane_kind=\"hub\"}", 0.0),
        (
            "popcell_objects_undecodable{plane_kind=\"project\",kind=\"Workload\"}",
            4.0,
        ),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series}");
    }
    observe_planes(&metrics, &planes::Stats::default(), &Counts::new());
    let text = metrics.encode();
    assert!(!text.contains("plane_kind"), "{text}");
    assert_eq!(value(&text, "popcell_projects_engaged"), Some(0.0));
}
