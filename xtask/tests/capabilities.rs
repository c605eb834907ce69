//! docs/capabilities.md names one existing test for each capability.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// First segments of names, and the crates that they are in.
const CRATES: [(&str, &str); 9] = [
    ("core", "controller/core"),
    ("api", "controller/api"),
    ("client", "controller/client"),
    ("runtime", "controller/runtime"),
    ("compute", "interpreter-wasm/compute"),
    ("provider-pod", "provider/pod"),
    ("support", "tests/support"),
    ("cli", "cli"),
    ("xtask", "xtask"),
];
/// Suites list their tests by name.
const SUITES: [&str; 6] = ["cell", "conformance", "e2e", "management", "projects", "provider"];

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

/// Capability and test of each row, under the heading that it stands below.
fn rows(page: &str) -> Vec<(&str, &str, &str)> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
        }
        let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
        match row.and_then(|row| row.split_once(" | ")) {
            Some((capability, test)) if capability != "capability" && capability != "---" => {
                rows.push((heading, capability, test));
            }
            _ => {}
        }
    }
    rows
}

#[test]
fn every_capability_stands_once_in_a_group_of_what_users_do() {
    let page = page("capabilities.md");
    let rows = rows(&page);
    assert!(rows.len() > 80, "{} rows", rows.len());
    let mut names: Vec<&str> = rows.iter().map(|(_, capability, _)| *capability).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a capability stands twice");
    assert!(rows.iter().all(|(heading, ..)| !heading.is_empty()));
}

#[test]
fn every_capability_names_one_test_that_exists() {
    let page = page("capabilities.md");
    let mut wrong = Vec::new();
    for (_, capability, test) in rows(&page) {
        let name = test.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        if !name.is_some_and(|name| !name.contains('`') && is_a_test(name)) {
            wrong.push((capability, test));
        }
    }
    assert!(wrong.is_empty(), "no tests: {wrong:#?}");
}

#[test]
fn what_is_no_test_is_distinguished_from_one() {
    assert!(is_a_test("core::plan::tests::the_earliest_look_counts"));
    assert!(is_a_test("core::laws::a_converged_state_plans_nothing"));
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
