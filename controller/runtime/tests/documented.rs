//! The operations guide names every flag, key and metric as it is, and none that is not there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::CommandFactory;
use popcell_controller_runtime::config::ServerConfig;
use popcell_controller_runtime::flags::Flags;
use popcell_core::metrics;

/// The part of docs/operations.md under a heading.
fn section(heading: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The first two cells of each row whose first cell begins so.
fn rows<'s>(section: &'s str, begins: &str) -> Vec<(&'s str, &'s str)> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter(|row| row.starts_with(begins));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        (cells.next().unwrap(), cells.next().unwrap())
    })
    .collect()
}

/// Words in backticks.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_flag_is_in_the_operations_guide_with_its_default() {
    let mut flags = BTreeMap::new();
    for argument in Flags::command().get_arguments() {
        let Some(name) = argument.get_long().filter(|name| !["help", "version"].contains(name)) else {
            continue;
        };
        let default = argument.get_default_values().first();
        flags.insert(
            format!("--{name}"),
            default.map(|value| value.to_str().unwrap().to_owned()),
        );
    }
    let guide = section("Settings of popcell-controller");
    let documented = rows(&guide, "`--").into_iter().map(|(flag, default)| {
        let name = words(flag).next().unwrap().to_owned();
        // A default that is no value of the flag itself is told in words.
        let value = default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        (name, value.filter(|value| !value.contains('`')).map(str::to_owned))
    });
    assert_eq!(documented.collect::<BTreeMap<_, _>>(), flags);
}

/// Keys that the program knows at a place, as it says itself.
fn known(place: &[&str]) -> Vec<String> {
    let head = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: WorkloadOperator\n";
    let nested = place
        .iter()
        .rev()
        .fold("{none: 1}".to_owned(), |inner, key| format!("{{{key}: {inner}}}"));
    let body = match place {
        [] => "none: 1\n".to_owned(),
        _ => format!("{}\n", nested.strip_prefix('{').unwrap().strip_suffix('}').unwrap()),
    };
    let refused = ServerConfig::parse(Path::new("f"), &format!("{head}{body}"))
        .unwrap_err()
        .to_string();
    let (_, keys) = refused.split_once("known here: ").unwrap();
    keys.split(", ").map(|key| [place, &[key]].concat().join(".")).collect()
}

#[test]
fn every_key_of_the_config_file_is_in_the_operations_guide() {
    let sections: [&[&str]; 6] = [
        &[],
        &["webhookServer"],
        &["webhookServer", "tls"],
        &["metricsServer"],
        &["metricsServer", "tls"],
        &["discovery"],
    ];
    let mut keys: BTreeSet<String> = sections.iter().flat_map(|place| known(place)).collect();
    let guide = section("Config file of popcell-controller");
    let (table, refused) = guide.split_once("Of upstream's keys ").unwrap();
    let mut documented: BTreeSet<String> = words(refused)
        .map(|word| word.split(':').next().unwrap().to_owned())
        .collect();
    let in_table = rows(table, "`")
        .into_iter()
        .flat_map(|(key, _)| words(key).map(str::to_owned).collect::<Vec<_>>());
    documented.extend(in_table);
    // Named in the text before the table, or nothing but the place of others.
    for key in ["metricsServer", "discovery", "webhookServer.tls", "metricsServer.tls"] {
        assert!(keys.remove(key), "{key}");
    }
    assert_eq!(documented, keys);
}

#[test]
fn what_to_watch_is_measured() {
    let guide = section("What to watch");
    let names: BTreeSet<&str> = metrics::ALL.iter().map(|metric| metric.name).collect();
    let mut watched = 0;
    for name in guide.split(|char: char| !char.is_ascii_alphanumeric() && char != '_') {
        if name.starts_with("popcell_") {
            assert!(names.contains(name), "{name}");
            watched += 1;
        }
    }
    assert!(watched > 10, "{guide}");
}
