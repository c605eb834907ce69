//! The operations guide names every flag and every metric, and none that is not there.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory, Parser};
use popcell_https::Limits;
use popcell_webhook::flags::Flags;

use crate::fixture::request;
use crate::process::Environment;

/// The part of docs/operations.md under a heading.
fn section(heading: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// What stands in the first column of a table in backticks and begins so.
fn first_column(section: &str, begins: &str) -> BTreeSet<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells
        .flat_map(|cell| cell.split('`'))
        .filter(|word| word.starts_with(begins))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_flag_is_in_the_operations_guide() {
    let command = Flags::command();
    let flags = command.get_arguments().filter_map(|argument| argument.get_long());
    let flags: BTreeSet<String> = flags
        .filter(|flag| !["help", "version"].contains(flag))
        .map(|flag| format!("--{flag}"))
        .collect();
    assert_eq!(first_column(&section("Settings of popcell-webhook"), "--"), flags);
}

/// The sum in docs/operations.md.
#[test]
fn the_memory_limit_of_the_deployment_is_above_all_that_the_webhook_may_take() {
    const PROGRAM: usize = 60 << 20;
    const POD: usize = 768 << 20;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/webhook/base/deployment.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let limit = format!("limits: {{memory: {}Mi}}", POD >> 20);
    assert!(text.contains(&limit), "{limit}");
    let (_, slots) = text.split_once("--slots=").unwrap();
    let slots: usize = slots.lines().next().unwrap().parse().unwrap();
    let calls = slots * Flags::parse_from(["popcell-webhook", "--module-dir", "m"]).max_memory;
    let ports = Limits::default().memory() + Limits::for_scrapers().memory();
    let sum = PROGRAM + ports + calls;
    assert!(sum <= POD, "{}", sum >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_in_the_operations_guide() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&[]);
    let client = environment.client(&webhook);
    // A family without a series is not shown.
    assert!(client.post("", request("InterpretHealth", "")).await.is_successful());
    assert_eq!(client.post("", "{").await.status, 400);
    let text = webhook.metrics().await;
    let mut shown = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let ending = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        shown.insert(format!("{name}{ending}"));
    }
    let guide = section("Metrics");
    let documented: BTreeSet<String> = [first_column(&guide, "popcell_"), first_column(&guide, "process_")]
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(documented, shown);
}
