//! `popcell test` on files and a module.

use crate::program::{module, popcell, repository, scratch};

const GOOD: &str = "\
name: ready
operation: InterpretHealth
observedObj: {apiVersion: workload.example.io/v1alpha1, kind: Workload, metadata: {name: a}, spec: {replicas: 2}, status: {readyReplicas: 2}}
output: {healthy: true}
";
const BAD: &str = "\
# A remark that stays.
name: wrong on purpose
operation: InterpretReplica
desiredObj: {apiVersion: workload.example.io/v1alpha1, kind: Workload, metadata: {name: a}, spec: {replicas: 2}}
output:
  replica: 7 # gone with the expectation
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = scratch();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn test(folder: &tempfile::TempDir, args: &[&str]) -> crate::program::Run {
    popcell(&[&["test", folder.path().to_str().unwrap(), "--module", module()], args].concat())
}

#[test]
fn each_document_and_each_law_is_a_test() {
    let folder = folder(&[("health.yaml", GOOD)]);
    let run = test(&folder, &[]).expect(0);
    assert!(
        run.out.contains("ok    health.yaml::ready\n") && run.out.contains("ok    laws::"),
        "{}",
        run.out
    );
}

#[test]
fn a_wrong_answer_fails_with_a_difference() {
    let folder = folder(&[("health.yaml", GOOD), ("replicas.yaml", BAD)]);
    let run = test(&folder, &["--fail-only"]).expect(1);
    assert!(
        run.out.contains("FAIL  replicas.yaml::wrong on purpose") && run.out.contains("-7") && run.out.contains("+2"),
        "{}",
        run.out
    );
    assert!(!run.out.contains("health.yaml::ready"), "{}", run.out);
}

#[test]
fn a_filter_chooses_and_no_test_at_all_is_a_failure() {
    let folder = folder(&[("health.yaml", GOOD), ("replicas.yaml", BAD)]);
    test(&folder, &["-k", "health.yaml"]).expect(0);
    let run = test(&folder, &["-k", "nothing has this name"]).expect(1);
    assert!(run.err.contains("nothing has this name"), "{}", run.err);
    let run = test(&scratch(), &[]).expect(1);
    assert!(run.err.contains("no test"), "{}", run.err);
}

#[test]
fn reports_are_data_for_programs() {
    let folder = folder(&[("health.yaml", GOOD), ("replicas.yaml", BAD)]);
    let run = test(&folder, &["-k", ".yaml", "-o", "json"]).expect(1);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (report["passed"].as_u64(), report["failed"].as_u64()),
        (Some(1), Some(1))
    );
    let run = test(&folder, &["-k", ".yaml", "-o", "junit"]).expect(1);
    assert!(
        run.out.contains("tests=\"2\"") && run.out.contains("failures=\"1\""),
        "{}",
        run.out
    );
}

#[test]
fn bless_writes_the_answer_and_keeps_the_rest() {
    let folder = folder(&[("replicas.yaml", BAD)]);
    test(&folder, &["--bless", "-k", "replicas.yaml"]).expect(0);
    let text = std::fs::read_to_string(folder.path().join("replicas.yaml")).unwrap();
    assert_eq!(
        text,
        BAD.replace("  replica: 7 # gone with the expectation\n", "  replica: 2\n")
    );
    test(&folder, &["-k", "replicas.yaml"]).expect(0);
}

#[test]
fn a_crash_and_an_unknown_kind_are_not_blessed() {
    let text = GOOD.replace("kind: Workload", "kind: Nobody");
    let folder = folder(&[("health.yaml", &text)]);
    test(&folder, &["--bless", "-k", "health.yaml"]).expect(1);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("health.yaml")).unwrap(),
        text
    );
}

#[test]
fn a_document_that_is_no_test_fails_and_manifests_are_skipped() {
    let folder = folder(&[
        ("health.yaml", GOOD),
        ("customizations.yaml", "apiVersion: v1\nkind: A\n"),
    ]);
    let run = test(&folder, &["-k", ".yaml"]).expect(0);
    assert!(run.err.contains("skipped customizations.yaml"), "{}", run.err);
    std::fs::write(folder.path().join("odd.yaml"), "name: odd\n").unwrap();
    let run = test(&folder, &["-k", ".yaml"]).expect(1);
    assert!(run.out.contains("a test needs an operation"), "{}", run.out);
}

#[test]
fn a_crate_is_tested_in_webassembly_and_natively() {
    let run = popcell(&[
        "test",
        repository().join("interpreter-wasm/karmada-example").to_str().unwrap(),
    ])
    .expect(0);
    assert!(
        run.out
            .contains("karmada-example-interpreter@0.1.0, WebAssembly and native"),
        "{}",
        run.out
    );
}

/// The laws run natively in each crate's own tests, and in WebAssembly for the crate above.
#[test]
fn every_document_of_this_repository_agrees_in_webassembly_and_natively() {
    let modules = repository().join("interpreter-wasm");
    let below = format!("{}/...", modules.display());
    let run = popcell(&["test", &below, "-k", ".yaml", "-o", "json"]).expect(0);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let documents = ["compute", "cloneset", "karmada-example"].map(|module| {
        let folder = modules.join(module).join("tests");
        let files = popcell_sdk::test::cases::read_folder(&folder, &folder).unwrap();
        files.iter().map(|file| file.cases.len()).sum::<usize>()
    });
    assert_eq!(
        report["passed"].as_u64().unwrap(),
        documents.iter().sum::<usize>() as u64,
        "{documents:?}"
    );
    let labels = report["modules"].as_array().unwrap();
    assert!(
        labels.len() == documents.len()
            && labels
                .iter()
                .all(|label| label.as_str().unwrap().ends_with("WebAssembly and native")),
        "{labels:?}"
    );
}
