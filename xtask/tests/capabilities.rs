//! docs/capabilities.md names tests that exist, and every capability.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// First segments of names, and the crates that they are in.
const CRATES: [(&str, &str); 8] = [
    ("core", "controller/core"),
    ("api", "controller/api"),
    ("client", "controller/client"),
    ("runtime", "controller/runtime"),
    ("compute", "interpreter-wasm/compute"),
    ("support", "tests/support"),
    ("cli", "cli"),
    ("xtask", "xtask"),
];
/// Suites list their tests by name.
const SUITES: [&str; 5] = ["cell", "conformance", "e2e", "management", "projects"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Whether a path such as `core::plan::tests::the_earliest_look_counts` is that of a test.
fn is_a_test(path: &str) -> bool {
    let (first, inner) = path.split_once("::").unwrap();
    if SUITES.contains(&first) {
        let main = root().join("tests/suites").join(first).join("main.rs");
        let text = fs::read_to_string(main).unwrap();
        return text.contains(&format!(".test(\"{inner}\", "));
    }
    let Some((_, folder)) = CRATES.iter().find(|(name, _)| *name == first) else {
        return false;
    };
    let (modules, name) = inner.rsplit_once("::").unwrap();
    let modules = modules.replace("::", "/");
    // A module of tests is a file of its own, or stands in the file that it tests.
    let inline = modules.strip_suffix("/tests").unwrap_or(&modules);
    [&modules, inline]
        .iter()
        .flat_map(|module| [format!("{module}.rs"), format!("{module}/mod.rs")])
        .flat_map(|file| ["src", "tests"].map(|part| root().join(folder).join(part).join(&file)))
        .any(|file| fs::read_to_string(file).is_ok_and(|text| has_test(&text, name)))
}

/// Whether a function of this name has an attribute that makes it a test.
fn has_test(text: &str, name: &str) -> bool {
    let function = format!("fn {name}(");
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") {
            if is_test && line.strip_prefix("async ").unwrap_or(line).starts_with(&function) {
                return true;
            }
            is_test = false;
        }
    }
    false
}

/// Number and tests of each row.
fn rows(page: &str) -> Vec<(u32, &str)> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| {
        let (number, rest) = row.split_once(" | ")?;
        Some((number.parse().ok()?, rest.split_once(" | ")?.1))
    });
    rows.collect()
}

#[test]
fn every_capability_has_its_row() {
    let page = page("capabilities.md");
    let numbers: Vec<u32> = rows(&page).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=90).collect::<Vec<u32>>());
}

#[test]
fn every_row_names_tests_or_says_that_there_are_none() {
    let page = page("capabilities.md");
    let mut wrong = Vec::new();
    for (number, tests) in rows(&page) {
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && tests != "no test yet" {
            wrong.push((number, tests));
        }
        let paths = named.into_iter().filter(|word| word.contains("::"));
        wrong.extend(paths.filter(|path| !is_a_test(path)).map(|path| (number, path)));
    }
    assert!(wrong.is_empty(), "no tests: {wrong:#?}");
}

#[test]
fn what_is_no_test_is_told_from_one() {
    assert!(is_a_test("core::plan::tests::the_earliest_look_counts"));
    assert!(is_a_test("core::laws::a_converged_world_is_quiet"));
    assert!(is_a_test(
        "core::federation::tests::identity::a_project_that_is_back_is_no_longer_noted_as_gone"
    ));
    assert!(is_a_test("e2e::city::dfw_goes_only_to_dfw"));
    for path in [
        "core::plan::tests::the_latest_look_counts",
        "core::plan::tests::requeue_within",
        "e2e::city::only_to_its_city",
        "nowhere::plan::tests::the_earliest_look_counts",
    ] {
        assert!(!is_a_test(path), "{path}");
    }
}

#[test]
fn the_four_questions_are_answered() {
    let page = page("architecture.md");
    let (_, answers) = page.split_once("\n## Four answers\n").unwrap();
    let answers = answers.split("\n## ").next().unwrap();
    for question in [
        "Routing",
        "The scheduler's fate",
        "Where Location lives",
        "How status flows",
    ] {
        assert!(answers.contains(&format!("\n- **{question}**: ")), "{question}");
    }
}
