//! The hello world: `popcell new`, `cargo test`, `popcell test`, in an empty folder.

use std::{path::Path, process::Command};

use crate::program::{command, finish, repository, scratch};

#[test]
fn a_new_module_passes_its_tests_natively_and_in_webassembly() {
    let folder = scratch();
    let sdk = repository().join("interpreter-wasm/sdk");
    let new = ["new", "widget-interpreter", "--sdk", sdk.to_str().unwrap()];
    let run = finish(command().current_dir(folder.path()).args(new)).expect(0);
    assert!(run.out.contains("cd widget-interpreter\n  cargo test"), "{}", run.out);
    let again = finish(command().current_dir(folder.path()).args(new)).expect(2);
    assert!(again.err.contains("is there already"), "{}", again.err);

    let package = folder.path().join("widget-interpreter");
    // One target folder for all runs of this test: only the first one compiles the SDK.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello");
    let cargo = std::env::var_os("CARGO").unwrap();
    let natively = || {
        finish(
            Command::new(&cargo)
                .arg("test")
                .current_dir(&package)
                .env("CARGO_TARGET_DIR", &target),
        )
        .expect(0)
    };
    let native = natively();
    assert!(native.out.contains("health.yaml::ready"), "{}", native.out);
    std::fs::copy(package.join("tests/health.yaml"), package.join("tests/more.yaml")).unwrap();
    let more = natively();
    assert!(more.out.contains("more.yaml::ready"), "{}", more.out);
    assert!(
        !more.err.contains("Compiling"),
        "a new file of tests needs no rebuild: {}",
        more.err
    );
    let wasm = finish(
        command()
            .arg("test")
            .current_dir(&package)
            .env("CARGO_TARGET_DIR", &target),
    )
    .expect(0);
    assert!(
        wasm.out.contains("ok    health.yaml::ready") && wasm.out.contains("WebAssembly and native"),
        "{}",
        wasm.out
    );
}

/// By rustfmt's own settings: an author has not ours.
#[test]
fn every_template_is_formatted() {
    let folder = scratch();
    std::fs::write(folder.path().join("rustfmt.toml"), "").unwrap();
    let sdk = repository();
    for template in ["health", "replicas", "aggregate", "full"] {
        let new = ["new", template, "--template", template, "--sdk", sdk.to_str().unwrap()];
        finish(command().current_dir(folder.path()).args(new)).expect(0);
        let sources = ["src/lib.rs", "tests/cases.rs"].map(|file| folder.path().join(template).join(file));
        finish(
            Command::new("rustfmt")
                .args(["--check", "--edition", "2024"])
                .args(&sources),
        )
        .expect(0);
    }
}

#[test]
fn names_that_cargo_would_not_take_are_refused() {
    let folder = scratch();
    for name in ["Widget", "1st", "a/b", "..", "test"] {
        let run =
            finish(
                command()
                    .current_dir(folder.path())
                    .args(["new", name, "--sdk", "https://example.org/popcell"]),
            );
        assert_eq!(run.code, Some(2), "{name}: {}", run.err);
    }
    let run = finish(command().current_dir(folder.path()).args(["new", "fine", "--sdk", "."])).expect(2);
    assert!(run.err.contains("not the folder of popcell-sdk"), "{}", run.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
