//! `popcell check`.

use crate::program::{module, popcell, scratch};

#[test]
fn check_shows_the_operations_of_a_module_and_what_is_off() {
    let run = popcell(&["check", module(), "--calls", "20", "--sample", "workload.yaml"]).expect(0);
    for part in [
        "karmada-example-interpreter@0.1.0",
        "popcell:interpreter@0.1.0",
        "imports    none",
        "sha256 ",
        "workload.example.io/v1alpha1 Workload",
        "InterpretHealth      registered",
        "p50",
        "p99",
        "KiB",
    ] {
        assert!(run.out.contains(part), "{part}\n{}", run.out);
    }
}

#[test]
fn a_module_is_given_by_its_place_or_by_the_flag_of_the_other_commands() {
    let bare = popcell(&["check", module(), "--calls", "0"]).expect(0);
    let flag = popcell(&["check", "--module", module(), "--calls", "0"]).expect(0);
    assert_eq!(bare.out, flag.out);
    popcell(&["check", module(), "--module", module()]).expect(2);
    popcell(&[
        "check",
        "--module",
        module(),
        "--url",
        "https://127.0.0.1:1/",
        "--kind",
        "a/v1/A",
    ])
    .expect(2);
}

#[test]
fn check_is_data_for_programs() {
    let run = popcell(&["check", module(), "--calls", "3", "-o", "json"]).expect(0);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let target = &report[0]["targets"][0];
    assert_eq!(target["kind"], "Workload");
    let operations = target["operations"].as_array().unwrap();
    let off = target["off"].as_array().unwrap();
    assert_eq!(operations.len() + off.len(), 8, "{report:#}");
    assert!(
        operations
            .iter()
            .all(|operation| operation["sample"]["peakMemoryBytes"].as_u64().unwrap() > 0),
        "{report:#}"
    );
    assert_eq!(report[0]["module"]["imports"], serde_json::json!([]));
}

#[test]
fn a_damaged_module_beside_a_good_one_is_named() {
    let folder = scratch();
    let good = std::fs::read(module()).unwrap();
    std::fs::write(folder.path().join("good.wasm"), &good).unwrap();
    std::fs::write(folder.path().join("other.wasm"), &good[..good.len() / 2]).unwrap();
    let run = popcell(&["check", folder.path().to_str().unwrap(), "--calls", "0"]).expect(3);
    assert!(run.err.contains("other.wasm"), "{}", run.err);
    assert!(run.out.contains("good.wasm"), "{}", run.out);
}

#[test]
fn two_modules_for_one_kind_are_refused() {
    let folder = scratch();
    for name in ["a.wasm", "b.wasm"] {
        std::fs::copy(module(), folder.path().join(name)).unwrap();
    }
    let run = popcell(&["check", folder.path().to_str().unwrap(), "--calls", "0"]).expect(3);
    assert!(run.err.contains("a.wasm") && run.err.contains("b.wasm"), "{}", run.err);
}

/// Code 4, as the webhook ends: no module was refused, there is none (a volume that is not mounted).
#[test]
fn a_folder_without_modules_is_a_matter_of_the_environment() {
    let folder = scratch();
    // The webhook passes over hidden files.
    std::fs::copy(module(), folder.path().join(".hidden.wasm")).unwrap();
    let empty = folder.path().to_str().unwrap();
    let absent = folder.path().join("absent");
    for (folder, reason) in [(empty, "no *.wasm file"), (absent.to_str().unwrap(), "absent")] {
        for args in [
            &["register", "--url", "https://127.0.0.1:1/", "--module-dir", folder][..],
            &["doctor", "--kubeconfig", "kubeconfig-dead.yaml", "--module-dir", folder],
            &["check", folder],
        ] {
            let run = popcell(args).expect(4);
            assert!(run.err.contains(reason), "{args:?}: {}", run.err);
        }
    }
}

#[test]
fn register_refuses_what_the_webhook_would_refuse() {
    let folder = scratch();
    std::fs::write(folder.path().join("other.wasm"), b"\0asm").unwrap();
    let run = popcell(&[
        "register",
        "--module-dir",
        folder.path().to_str().unwrap(),
        "--url",
        "https://127.0.0.1:1/",
    ])
    .expect(3);
    assert!(run.err.contains("other.wasm"), "{}", run.err);
}
