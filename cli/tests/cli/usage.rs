//! The command line itself.

use std::process::Stdio;

use crate::program::{command, popcell, repository, scratch};

#[test]
fn nonsense_is_a_usage_error() {
    for args in [
        &["nonsense"][..],
        &["interpret", "--operation", "InterpretHealth", "-f", "widget.yaml"],
        &[
            "interpret",
            "--module",
            "a.wasm",
            "--operation",
            "Prune",
            "-f",
            "widget.yaml",
        ],
        &["register"],
        &[
            "register",
            "--module-dir",
            ".",
            "--url",
            "https://a/",
            "--service",
            "a/b",
        ],
        &[
            "register",
            "--module-dir",
            ".",
            "--url",
            "https://a/",
            "--timeout-seconds",
            "31",
        ],
        &["check"],
        &["check", "--url", "https://127.0.0.1:1/"],
        &["orphans"],
        &["orphans", "--project-kubeconfig", "a", "--yes"],
        &["orphans", "--project-kubeconfig", "a", "--yes=1"],
        &["orphans", "--project-kubeconfig", "a", "--delete", "--yes"],
        &["orphans", "--project-kubeconfig", "a", "--delete", "--yes=some"],
        &["orphans", "--project-kubeconfig", "a", "--dry-run"],
        &["orphans", "--project-kubeconfig", "a", "--mode", "kind"],
        &[
            "orphans",
            "--discovery-kubeconfig",
            "kubeconfig-dead.yaml",
            "--kubeconfig",
            "kubeconfig-dead.yaml",
        ],
        // Nobody is there to be asked.
        &["orphans", "--project-kubeconfig", "kubeconfig-dead.yaml", "--delete"],
        &["reinterpret", "--rate", "0/s"],
        &["reinterpret", "--kind", "Deployment"],
        &["reinterpret", "--since", "yesterday"],
    ] {
        let run = popcell(args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.err);
    }
}

#[test]
fn names_and_addresses_are_refused_before_anything_is_loaded() {
    let run = popcell(&["register", "--module-dir", "nowhere", "--url", "http://a/"]).expect(2);
    assert!(run.err.contains("https://"), "{}", run.err);
    let run = popcell(&["register", "--module-dir", "nowhere", "--service", "a"]).expect(2);
    assert!(run.err.contains("NAMESPACE/NAME"), "{}", run.err);
    let run = popcell(&["register", "--remove", "--webhook-name", "short"]).expect(2);
    assert!(run.err.contains("three labels"), "{}", run.err);
}

#[test]
fn what_is_not_there_is_named() {
    let run = popcell(&["check", "nowhere.wasm"]).expect(4);
    assert!(run.err.contains("nowhere.wasm"), "{}", run.err);
    let run = popcell(&["doctor", "--kubeconfig", "nowhere.yaml"]).expect(4);
    assert!(
        run.err.contains("nowhere.yaml") && run.err.contains("--kubeconfig"),
        "{}",
        run.err
    );
    let dead = "kubeconfig-dead.yaml";
    for args in [
        &["register", "--remove", "--kubeconfig", dead][..],
        &["reinterpret", "--kubeconfig", dead],
        &["orphans", "--kubeconfig", dead, "--project-kubeconfig", dead],
        &[
            "orphans",
            "--kubeconfig",
            dead,
            "--mode",
            "milo",
            "--project-kubeconfig",
            dead,
        ],
    ] {
        let run = popcell(args).expect(4);
        assert!(run.err.contains("127.0.0.1:1"), "{args:?}: {}", run.err);
    }
    let run = popcell(&["orphans", "--kubeconfig", dead, "--project-kubeconfig", "nowhere.yaml"]).expect(4);
    assert!(run.err.contains("nowhere.yaml"), "{}", run.err);
}

#[test]
fn every_command_has_examples() {
    for command in [
        "new",
        "build",
        "test",
        "interpret",
        "check",
        "register",
        "doctor",
        "orphans",
        "reinterpret",
        "scale",
        "restart",
        "quota",
        "completion",
    ] {
        let run = popcell(&[command, "--help"]).expect(0);
        assert!(run.out.contains("Examples:"), "{command}");
    }
    for command in ["status", "history"] {
        let run = popcell(&["rollout", command, "--help"]).expect(0);
        assert!(run.out.contains("Examples:"), "{command}");
    }
    assert!(popcell(&["--help"]).expect(0).out.contains("130  interrupted"));
}

#[test]
fn completion_is_made_for_four_shells() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(
            popcell(&["completion", shell]).expect(0).out.contains("interpret"),
            "{shell}"
        );
    }
}

#[test]
fn the_reference_is_the_one_in_the_repository() {
    let page = repository().join("docs/reference/cli.md");
    popcell(&["reference", "--check", "--output", page.to_str().unwrap()]).expect(0);
    let old = scratch();
    let old = old.path().join("cli.md");
    std::fs::write(&old, "old").unwrap();
    let run = popcell(&["reference", "--check", "--output", old.to_str().unwrap()]).expect(1);
    assert!(run.err.contains("popcell reference --output"), "{}", run.err);
}

/// `popcell completion bash | head -0`.
#[test]
fn a_reader_that_leaves_is_no_crash() {
    let mut child = command()
        .args(["completion", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
        (Some(4), "")
    );
}
