//! A module that misbehaves: who is to blame is seen in the exit code and in the message.

use std::{path::Path, sync::OnceLock};

use crate::program::{popcell, popcell_with, repository};

/// The module of the engine's tests.
fn misbehaving() -> &'static str {
    static MODULE: OnceLock<String> = OnceLock::new();
    MODULE.get_or_init(|| {
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("misbehaving-{}.wasm", std::process::id()));
        let output = output.to_str().unwrap().to_owned();
        let crate_folder = repository().join("tests/fixtures-guest");
        popcell(&["build", crate_folder.to_str().unwrap(), "-o", &output]).expect(0);
        output
    })
}

fn object(behaviour: &str) -> String {
    format!(
        r#"{{"apiVersion":"tests.popcell.dev/v1","kind":"Misbehaving","metadata":{{"name":"a","annotations":{{"tests.popcell.dev/behaviour":"{behaviour}"}}}}}}"#
    )
}

#[test]
fn each_fault_of_a_module_has_its_reason_and_exit_code_3() {
    for (behaviour, reason) in [
        ("trap", "trapped in"),
        ("loop", "ran longer than its deadline"),
        ("allocate", "wanted more memory"),
        ("recurse", "stack overflow"),
        ("lie-scalar", "refused answer"),
    ] {
        let run = popcell_with(
            &[
                "interpret",
                "--module",
                misbehaving(),
                "--operation",
                "InterpretStatus",
                "-f",
                "-",
                "--timeout",
                "1s",
            ],
            &object(behaviour),
        );
        assert_eq!(run.code, Some(3), "{behaviour}: {}", run.err);
        assert!(run.err.contains(reason), "{behaviour}: {}", run.err);
    }
}

#[test]
fn the_whole_call_stack_of_a_trap_is_shown_where_it_is_asked_for() {
    let trapped = |more: &[&str]| {
        let args = [
            &[
                "interpret",
                "--module",
                misbehaving(),
                "--operation",
                "InterpretStatus",
                "-f",
                "-",
            ],
            more,
        ];
        popcell_with(&args.concat(), &object("trap")).expect(3).err
    };
    assert_eq!(trapped(&[]).lines().count(), 1);
    let stack = trapped(&["-v"]);
    let frames: Vec<_> = stack.lines().filter(|line| line.starts_with("  in ")).collect();
    assert!(
        frames.len() > 2 && frames.iter().any(|frame| frame.contains("misbehaving_interpreter::")),
        "{stack}"
    );
}

#[test]
fn an_error_that_a_module_returns_for_an_object_has_exit_code_1() {
    for (behaviour, reason) in [
        ("invalid", "/spec/replicas: expected an integer"),
        ("undecided", "undecided: "),
        ("failed", "no such size"),
    ] {
        let run = popcell_with(
            &[
                "interpret",
                "--module",
                misbehaving(),
                "--operation",
                "InterpretHealth",
                "-f",
                "-",
            ],
            &object(behaviour),
        );
        assert_eq!(run.code, Some(1), "{behaviour}: {}", run.err);
        assert!(run.err.contains(reason), "{behaviour}: {}", run.err);
    }
}
