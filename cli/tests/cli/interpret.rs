//! `popcell interpret` on a module.

use crate::program::{module, popcell, popcell_with};

fn interpret(args: &[&str]) -> crate::program::Run {
    popcell(&[&["interpret", "--module", module()], args].concat())
}

#[test]
fn the_output_is_that_of_karmadactl() {
    let run = interpret(&["--operation", "interpretreplica", "-f", "workload.yaml"]).expect(0);
    assert_eq!(
        run.out, "---\n# [1/2] replica:\n2\n---\n# [2/2] requires:\nresourceRequest:\n  cpu: 500m\n  memory: 64Mi\n",
        "{}",
        run.err
    );
}

#[test]
fn standard_input_and_json_are_taken() {
    let object = r#"{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"a"},"spec":{"replicas":3},"status":{"readyReplicas":3}}"#;
    let run = popcell_with(
        &[
            "interpret",
            "--module",
            module(),
            "--operation",
            "InterpretHealth",
            "-f",
            "-",
            "-o",
            "json",
        ],
        object,
    )
    .expect(0);
    assert_eq!(run.out, "{\"healthy\":true}\n");
}

#[test]
fn numbers_keep_their_digits() {
    let run = interpret(&[
        "--operation",
        "ReviseReplica",
        "-f",
        "workload.yaml",
        "--desired-replica",
        "5",
    ])
    .expect(0);
    assert!(
        run.out.contains("generation: 9007199254740993") && run.out.contains("  replicas: 5\n"),
        "{}",
        run.out
    );
}

#[test]
fn status_items_come_from_a_stream_of_documents() {
    let run = interpret(&[
        "--operation",
        "AggregateStatus",
        "-f",
        "workload.yaml",
        "--status-file",
        "items.yaml",
    ])
    .expect(0);
    assert!(run.out.contains("readyReplicas: 3\n"), "{}", run.out);
}

#[test]
fn an_invalid_object_is_an_error_with_the_path_of_the_field() {
    let run = interpret(&["--operation", "InterpretReplica", "-f", "workload-odd.yaml"]).expect(1);
    assert!(run.out.is_empty());
    assert!(
        run.err.contains("/spec/replicas: expected an integer, found \"two\""),
        "{}",
        run.err
    );
}

#[test]
fn an_empty_file_is_a_usage_error() {
    let run = interpret(&["--operation", "InterpretReplica", "-f", "empty.yaml"]).expect(2);
    assert!(run.err.contains("empty.yaml: it holds no object"), "{}", run.err);
    let run = popcell_with(
        &[
            "interpret",
            "--module",
            module(),
            "--operation",
            "InterpretHealth",
            "-f",
            "-",
        ],
        "",
    )
    .expect(2);
    assert!(run.err.contains("it holds no object"), "{}", run.err);
}

#[test]
fn files_that_do_not_fit_the_operation_are_usage_errors() {
    for args in [
        &["--operation", "Retain", "--desired-file", "workload.yaml"][..],
        &["--operation", "InterpretHealth"],
        &[
            "--operation",
            "InterpretHealth",
            "-f",
            "workload.yaml",
            "--observed-file",
            "workload.yaml",
        ],
        &[
            "--operation",
            "InterpretHealth",
            "-f",
            "workload.yaml",
            "--desired-replica",
            "1",
        ],
        &[
            "--operation",
            "InterpretHealth",
            "-f",
            "workload.yaml",
            "--status-file",
            "items.yaml",
        ],
        &["--operation", "ReviseReplica", "-f", "workload.yaml"],
        &[
            "--operation",
            "ReviseReplica",
            "-f",
            "workload.yaml",
            "--desired-replica",
            "-1",
        ],
        &["--operation", "Retain", "--desired-file", "-", "--observed-file", "-"],
        &["--operation", "InterpretHealth", "-f", "items.yaml"],
        &["--operation", "InterpretHealth", "-f", "clusters.yaml"],
    ] {
        let run = interpret(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
    }
}

#[test]
fn a_file_that_is_no_module_is_refused() {
    let run = popcell(&[
        "interpret",
        "--module",
        "workload.yaml",
        "--operation",
        "InterpretHealth",
        "-f",
        "workload.yaml",
    ])
    .expect(3);
    assert!(run.err.contains("workload.yaml"), "{}", run.err);
    popcell(&[
        "interpret",
        "--module",
        "nowhere.wasm",
        "--operation",
        "InterpretHealth",
        "-f",
        "workload.yaml",
    ])
    .expect(4);
}
