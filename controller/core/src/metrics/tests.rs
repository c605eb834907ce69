use super::*;
use std::collections::BTreeSet;

#[test]
fn names_follow_the_rules_of_prometheus_and_are_unique() {
    let mut names = BTreeSet::new();
    for metric in ALL {
        assert!(names.insert(metric.name), "{} twice", metric.name);
        let good = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(metric.name.bytes().all(good), "{}", metric.name);
        assert_eq!(
            metric.name.ends_with("_total"),
            metric.type_ == Type::Counter,
            "{}",
            metric.name
        );
        if metric.type_ == Type::Histogram {
            assert!(metric.name.ends_with("_seconds"), "{}", metric.name);
        }
        assert!(metric.help.ends_with('.'), "{}", metric.name);
    }
}

#[test]
fn no_label_grows_with_objects_and_no_histogram_with_planes() {
    const BOUNDED: [&str; 11] = [
        "reconciler",
        "outcome",
        "plane_kind",
        "kind",
        "verb",
        "code",
        "reason",
        "name",
        "controller",
        "result",
        "source_cluster",
    ];
    for metric in ALL {
        for label in metric.labels {
            assert!(
                BOUNDED.contains(label) || PER_SUBJECT.contains(label),
                "{}: {label}",
                metric.name
            );
            assert!(
                metric.type_ != Type::Histogram || !PER_SUBJECT.contains(label),
                "{}: {label} on a histogram",
                metric.name
            );
            assert!(!matches!(*label, "project" | "namespace" | "uid"), "{}", metric.name);
        }
    }
}

#[test]
fn existing_dashboards_find_their_names() {
    for (name, labels) in [
        ("controller_runtime_reconcile_total", &["controller", "result"][..]),
        ("workqueue_depth", &["name", "controller"]),
        ("compute_quota_eval_failures_total", &["reason"]),
    ] {
        assert!(ALL.iter().any(|one| one.name == name && one.labels == labels), "{name}");
    }
}
