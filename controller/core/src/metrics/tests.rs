//! Rules of the table, and docs/metrics.md, which is made from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::{ALL, Metric, PER_SUBJECT, Type, outcome};

/// What each label says. A label that is not here fails the tests.
const LABELS: [(&str, &str); 12] = [
    ("reconciler", "the reconciler"),
    ("outcome", "how it ended, see below; at admission what the answer was"),
    ("plane_kind", "kind of API server: `project`, `hub` or `cell`"),
    ("plane", "the API server: `project <id>`, `hub` or `cell`"),
    ("kind", "kind of the objects"),
    (
        "verb",
        "kind of the request, as servers name it: `create`, `patch`, `delete`",
    ),
    ("code", "HTTP status of the answer"),
    ("reason", "why, one of a fixed set"),
    ("source_cluster", "the cell, by the name of its Cluster in Karmada"),
    (
        "name",
        "as `reconciler`; of `leader_election_master_status` the name of the Lease",
    ),
    ("controller", "as `reconciler`"),
    ("result", "as controller-runtime names outcomes"),
];

/// Begin of the names, and what those metrics are.
const GROUPS: [(&str, &str, &str); 5] = [
    ("popcell_", "popcell's own", ""),
    (
        "controller_runtime_",
        "Reconciles, under controller-runtime's names",
        "The same values under the names that existing dashboards and alerts use.",
    ),
    (
        "workqueue_",
        "Queues, as controller-runtime names them",
        "A key counts as added each time that it becomes ready, however often it was asked for meanwhile.",
    ),
    ("leader_election_", "The Lease, as client-go names it", ""),
    ("compute_", "Quota, as upstream names it", ""),
];

const OUTCOMES: [(&str, &str); 9] = [
    (outcome::UNCHANGED, "nothing differed; the usual case"),
    (outcome::WRITTEN, "something was written"),
    (
        outcome::CONFLICT,
        "three conflicts in a row: the observed state was outdated; requeued with backoff",
    ),
    (
        outcome::TERMINAL,
        "only a change of the object can help; its conditions say what is wrong, or, where the object cannot be read, the log \
         (at debug)",
    ),
    (
        outcome::ERROR,
        "a server did not do what was asked; the log says which and why",
    ),
    (
        outcome::WITHHELD,
        "deletes were not sent: a live read contradicted their proof or failed, or the deletion guard holds",
    ),
    (
        outcome::ABANDONED,
        "given up unfinished: the API server is unreachable or was disengaged, a circuit breaker is open, or the Lease lost; or it leads nowhere, such as a copy on the hub \
         that no WorkloadDeployment asks for",
    ),
    (outcome::PAUSED, "the pause annotation is set"),
    (
        outcome::DRY_RUN,
        "in a dry run: something differed, and would have been written",
    ),
];

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md")
}

fn page() -> String {
    let mut page = "<!-- Generated from controller/core/src/metrics.rs: see there. Do not edit. -->\n\n".to_owned();
    page.push_str("# Metrics of popcell-controller\n\n");
    page.push_str(
        "`/metrics` on the port of `--health-probe-bind-address`, in the OpenMetrics text format. Times are in seconds. A metric\n\
         appears with its first series. Series with a label that names a subject",
    );
    let subjects: Vec<String> = PER_SUBJECT.iter().map(|label| format!("`{label}`")).collect();
    writeln!(page, " ({}) end with that subject.", subjects.join(", ")).unwrap();
    for (begin, title, text) in GROUPS {
        write!(page, "\n## {title}\n\n").unwrap();
        if !text.is_empty() {
            write!(page, "{text}\n\n").unwrap();
        }
        page.push_str("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");
        for metric in ALL.iter().filter(|metric| metric.name.starts_with(begin)) {
            page.push_str(&row(metric));
        }
    }
    page.push_str("\n## Labels\n\n| label | meaning |\n| --- | --- |\n");
    for (label, meaning) in LABELS {
        writeln!(page, "| `{label}` | {meaning} |").unwrap();
    }
    page.push_str("\n## Outcomes of reconciles\n\n| `outcome` | meaning |\n| --- | --- |\n");
    for (outcome, meaning) in OUTCOMES {
        writeln!(page, "| `{outcome}` | {meaning} |").unwrap();
    }
    page
}

fn row(metric: &Metric) -> String {
    let type_ = match metric.type_ {
        Type::Counter => "counter",
        Type::Gauge => "gauge",
        Type::Histogram => "histogram",
    };
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    format!(
        "| `{}` | {type_} | {} | {} |\n",
        metric.name,
        labels.join(", "),
        metric.help
    )
}

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

#[test]
fn the_page_in_docs_is_what_the_table_says() {
    let found = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        found == page(),
        "docs/metrics.md is not what the table says: run `cargo test -p popcell-core write_the_page -- --ignored`"
    );
}

#[test]
#[ignore = "writes docs/metrics.md"]
fn write_the_page() {
    std::fs::write(file(), page()).unwrap();
}

#[test]
fn everything_in_the_table_is_on_the_page() {
    let page = page();
    for metric in ALL {
        assert_eq!(page.matches(&row(metric)).count(), 1, "{}", metric.name);
        for label in metric.labels {
            assert!(LABELS.iter().any(|(each, _)| each == label), "{}: {label}", metric.name);
        }
    }
    assert_eq!(OUTCOMES.map(|(outcome, _)| outcome), outcome::ALL);
}
