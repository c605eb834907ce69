//! Modules whose two builds answer differently, or of which one does not answer at all.

use std::path::{Path, PathBuf};

use crate::program::{Run, command, finish, repository, scratch};

/// A new module in `folder`, with other sources.
fn module(folder: &Path, name: &str, source: &str) -> PathBuf {
    let sdk = repository().join("interpreter-wasm/sdk");
    let new = ["new", name, "--sdk", sdk.to_str().unwrap()];
    finish(command().current_dir(folder).args(new)).expect(0);
    let package = folder.join(name);
    std::fs::write(package.join("src/lib.rs"), source).unwrap();
    package
}

/// The target folder of the hello world's test: the SDK and the standard library are compiled once for all.
fn test(folder: &Path, args: &[&str]) -> Run {
    finish(
        command()
            .arg("test")
            .args(args)
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello")),
    )
}

fn health(body: &str) -> String {
    format!(
        "use popcell_sdk::prelude::*;\nstruct Widget;\n#[interpreter(api_version = \"example.io/v1\", kind = \"Widget\")]\n\
         impl Interpreter for Widget {{\n    fn health(widget: &Object) -> Result<bool> {{\n        {body}\n    }}\n}}\n"
    )
}

fn document(name: &str) -> String {
    format!(
        "name: {name}\noperation: InterpretHealth\nobservedObj: {{apiVersion: example.io/v1, kind: Widget, metadata: {{name: {name}}}}}\n\
         output: {{healthy: true}}\n"
    )
}

/// The case holds in WebAssembly, so what fails is the difference alone.
#[test]
fn native_and_webassembly_that_differ_fail() {
    let folder = scratch();
    let source = health("let _ = widget; Ok(cfg!(target_family = \"wasm\"))");
    let package = module(folder.path(), "gadget-interpreter", &source);
    let run = test(&package, &["-k", "health.yaml::ready"]).expect(1);
    assert!(
        run.out.contains("native code and WebAssembly differ")
            && run.out.contains(r#""healthy":true"#)
            && run.out.contains(r#""healthy":false"#),
        "{}",
        run.out
    );
}

/// Every case holds in WebAssembly. Native code answers the first one, and does not survive the second.
#[test]
fn a_document_that_native_code_does_not_answer_fails() {
    let folder = scratch();
    let source = health(
        "if cfg!(not(target_family = \"wasm\")) && widget.name() == \"fatal\" { std::process::abort() }\n        Ok(true)",
    );
    let package = module(folder.path(), "fragile-interpreter", &source);
    let text = ["fine", "fatal", "behind"].map(document).join("---\n");
    std::fs::write(package.join("tests/health.yaml"), text).unwrap();
    // A folder of its own: native code has to read what WebAssembly reads.
    let elsewhere = package.join("more");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(package.join("tests/health.yaml"), elsewhere.join("health.yaml")).unwrap();
    let run = test(&package, &["more", "-k", "health.yaml"]).expect(1);
    assert!(run.out.contains("ok    health.yaml::fine"), "{}", run.out);
    for (name, line) in [("fatal", 6), ("behind", 11)] {
        assert!(
            run.out.contains(&format!(
                "FAIL  health.yaml::{name}\n      more/health.yaml:{line}: native code gave no answer"
            )),
            "{}",
            run.out
        );
    }
    assert!(run.out.contains("SIGABRT"), "{}", run.out);
}

#[test]
fn of_several_modules_a_broken_one_does_not_hide_the_others() {
    let folder = scratch();
    module(folder.path(), "broken-interpreter", "fn broken( {}");
    let untested = module(
        folder.path(),
        "untested-interpreter",
        &health("let _ = widget; Ok(true)"),
    );
    std::fs::remove_dir_all(untested.join("tests")).unwrap();
    module(folder.path(), "fine-interpreter", &health("let _ = widget; Ok(true)"));
    let run = test(folder.path(), &["./...", "-k", "interpreter::"]).expect(1);
    assert!(
        run.out.contains("FAIL  broken-interpreter::module\n") && run.err.contains("src/lib.rs"),
        "{}\n{}",
        run.out,
        run.err
    );
    assert!(
        run.out
            .contains("FAIL  untested-interpreter::module\n      no test found"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("ok    fine-interpreter::health.yaml::ready")
            && run.out.contains("ok    fine-interpreter::laws::"),
        "{}",
        run.out
    );
}
