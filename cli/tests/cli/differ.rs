//! A module whose two builds answer differently.

use std::path::Path;

use crate::program::{command, finish, repository, scratch};

const MODULE: &str = r#"use popcell_sdk::prelude::*;
struct Widget;
#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn health(_: &Object) -> Result<bool> {
        Ok(cfg!(target_family = "wasm"))
    }
}
"#;

/// The case holds in WebAssembly, so what fails is the difference alone.
#[test]
fn native_and_webassembly_that_differ_fail() {
    let folder = scratch();
    let sdk = repository().join("interpreter-wasm/sdk");
    let new = ["new", "gadget-interpreter", "--sdk", sdk.to_str().unwrap()];
    finish(command().current_dir(folder.path()).args(new)).expect(0);
    let package = folder.path().join("gadget-interpreter");
    std::fs::write(package.join("src/lib.rs"), MODULE).unwrap();
    // The folder of the hello world's test: the SDK and the standard library are compiled once for both.
    let run = finish(
        command()
            .args(["test", "-k", "health.yaml::ready"])
            .current_dir(&package)
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello")),
    )
    .expect(1);
    assert!(
        run.out.contains("native code and WebAssembly differ")
            && run.out.contains(r#""healthy":true"#)
            && run.out.contains(r#""healthy":false"#),
        "{}",
        run.out
    );
}
