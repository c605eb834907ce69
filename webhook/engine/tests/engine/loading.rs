//! What is loaded, and what is refused with which words.

use std::fs;
use std::os::unix::fs::symlink;

use popcell_engine::{LoadError, Modules, Settings};
use popcell_protocol::Operation;

use crate::fixture::{KIND, engine, kind, load, settings, wasm};

fn refusal(variant: &str) -> String {
    load(variant).expect_err(variant).to_string()
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

#[test]
fn a_module_is_described() {
    let module = load("misbehaving").unwrap();
    assert_eq!(module.label(), "misbehaving@0.1.0");
    assert_eq!(module.origin(), "misbehaving.wasm");
    assert_eq!(module.digest().len(), 64);
    assert_eq!(module.size(), wasm("misbehaving").len());
    assert!(module.implements(&kind(KIND), Operation::Retain));
    assert!(!module.implements(&kind("Other"), Operation::Retain));
}

#[test]
fn a_truncated_file_is_named() {
    let wasm = wasm("misbehaving");
    let error = engine(&settings())
        .load("dir/other.wasm", &wasm[..wasm.len() / 2])
        .unwrap_err();
    says(&error.to_string(), &["dir/other.wasm", "damaged or cut off"]);
    let error = engine(&settings())
        .load("dir/other.wasm", b"apiVersion: v1")
        .unwrap_err();
    says(&error.to_string(), &["dir/other.wasm", "not a WebAssembly file"]);
}

#[test]
fn a_directory_with_one_bad_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("compute.wasm"), wasm("misbehaving")).unwrap();
    fs::write(directory.path().join("other.wasm"), &wasm("other")[..5000]).unwrap();
    let error = engine(&settings()).load_dir(directory.path()).unwrap_err();
    says(&error.to_string(), &["other.wasm", "cut off"]);
}

#[test]
fn every_bad_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, wasm: &[u8]| fs::write(directory.path().join(name), wasm).unwrap();
    put("a.wasm", b"apiVersion: v1");
    put("b.wasm", &wasm("misbehaving"));
    put("c.wasm", &wasm("other")[..5000]);
    put("d.wasm", &wasm("rival"));
    let error = engine(&settings()).load_dir(directory.path()).unwrap_err();
    assert!(error.refuses_module());
    let message = error.to_string();
    says(
        &message,
        &["3 errors: failed to load", "a.wasm: it is not a WebAssembly file"],
    );
    says(
        &message,
        &["c.wasm: it is damaged or cut off", "rival@0.1.0", "misbehaving@0.1.0"],
    );
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn a_config_map_volume_is_read_through_its_links() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("..2026_01_01");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("b.wasm"), wasm("misbehaving")).unwrap();
    fs::write(data.join("a.wasm"), wasm("other")).unwrap();
    symlink("..2026_01_01", directory.path().join("..data")).unwrap();
    for file in ["a.wasm", "b.wasm"] {
        symlink(format!("..data/{file}"), directory.path().join(file)).unwrap();
    }
    fs::write(directory.path().join(".hidden.wasm"), "no module").unwrap();
    fs::write(directory.path().join("README"), "no module").unwrap();
    let modules = engine(&settings()).load_dir(directory.path()).unwrap();
    let labels: Vec<_> = modules.iter().map(|module| module.label().to_owned()).collect();
    assert_eq!(labels, ["other@0.1.0", "misbehaving@0.1.0"]);
    assert_eq!(
        modules.find(&kind("Other"), Operation::Retain).unwrap().label(),
        "other@0.1.0"
    );
    assert!(modules.find(&kind("Third"), Operation::Retain).is_none());
}

#[test]
fn an_empty_or_absent_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&settings());
    says(
        &engine.load_dir(directory.path()).unwrap_err().to_string(),
        &["no *.wasm", directory.path().to_str().unwrap()],
    );
    let absent = directory.path().join("absent");
    assert!(matches!(engine.load_dir(&absent), Err(LoadError::Directory { .. })));
}

#[test]
fn two_modules_for_one_operation_are_both_named() {
    let engine = engine(&settings());
    let modules =
        ["misbehaving", "rival"].map(|variant| engine.load(&format!("{variant}.wasm"), &wasm(variant)).unwrap());
    let error = Modules::new(modules).unwrap_err().to_string();
    says(
        &error,
        &[
            "misbehaving@0.1.0 (misbehaving.wasm)",
            "rival@0.1.0 (rival.wasm)",
            "InterpretHealth",
            KIND,
        ],
    );
}

#[test]
fn two_modules_may_share_a_kind() {
    let engine = engine(&settings());
    let modules = ["no-health", "rival"].map(|variant| engine.load(variant, &wasm(variant)).unwrap());
    let modules = Modules::new(modules).unwrap();
    assert_eq!(
        modules.find(&kind(KIND), Operation::InterpretHealth).unwrap().label(),
        "rival@0.1.0"
    );
    assert_eq!(
        modules.find(&kind(KIND), Operation::InterpretStatus).unwrap().label(),
        "no-health@0.1.0"
    );
}

#[test]
fn an_import_is_refused_by_name() {
    let wasm = wat::parse_str(r#"(component (import "wasi:clocks/wall-clock@0.2.3" (instance)))"#).unwrap();
    let error = engine(&settings()).load("clock.wasm", &wasm).unwrap_err();
    says(
        &error.to_string(),
        &["clock.wasm", "wasi:clocks/wall-clock@0.2.3", "may import nothing"],
    );
}

#[test]
fn another_interface_version_is_refused_with_both_versions() {
    let text = r#"(component (instance) (export "popcell:interpreter/operations@0.2.0" (instance 0)))"#;
    let error = engine(&settings())
        .load("new.wasm", &wat::parse_str(text).unwrap())
        .unwrap_err();
    says(&error.to_string(), &["new.wasm", "popcell:interpreter@0.2.0", "0.1.0"]);
}

#[test]
fn the_right_version_of_another_shape_is_refused() {
    let text = r#"(component (instance) (export "popcell:interpreter/operations@0.1.0" (instance 0)))"#;
    let error = engine(&settings())
        .load("odd.wasm", &wat::parse_str(text).unwrap())
        .unwrap_err();
    says(&error.to_string(), &["odd.wasm", "describe"]);
}

#[test]
fn core_kinds_need_consent() {
    says(
        &refusal("core"),
        &["core.wasm", "apps/v1 Deployment", "--allow-core-kinds"],
    );
    let settings = Settings {
        allow_core_kinds: true,
        ..settings()
    };
    assert!(engine(&settings).load("core.wasm", &wasm("core")).is_ok());
}

#[test]
fn wrong_descriptions_are_refused() {
    says(&refusal("nameless"), &["nameless.wasm", "name \"\""]);
    says(&refusal("crowd"), &["crowd.wasm", "65 kinds"]);
    says(&refusal("twice"), &["twice.wasm", "twice"]);
}

#[test]
fn describing_runs_under_the_limits() {
    says(&refusal("trap"), &["trap.wasm", "describe", "trapped"]);
    says(&refusal("huge"), &["huge.wasm", "describe"]);
    let settings = Settings {
        call_timeout: Settings::CALL_TIMEOUT.0,
        ..settings()
    };
    let error = engine(&settings).load("loop.wasm", &wasm("loop")).unwrap_err();
    says(&error.to_string(), &["loop.wasm", "describe", "deadline of 100ms"]);
}

#[test]
fn a_start_function_is_named_as_such() {
    let settings = Settings {
        call_timeout: Settings::CALL_TIMEOUT.0,
        ..settings()
    };
    for (variant, cause) in [("start-loop", "deadline of 100ms"), ("start-trap", "trapped in")] {
        let wasm = wasm(variant);
        let message = engine(&settings).load("start.wasm", &wasm).unwrap_err().to_string();
        says(&message, &["start.wasm", "its start function", cause]);
        assert!(!message.contains("describe"), "{message}");
    }
}

#[test]
fn a_crash_on_a_minimal_object_is_refused() {
    says(
        &refusal("crash"),
        &["crash.wasm", "crash@0.1.0 Retain Crash", "trapped in", "give_up"],
    );
}

#[test]
fn a_module_with_too_large_a_memory_is_refused_naming_the_flag() {
    let settings = Settings {
        max_memory: 1 << 20,
        ..settings()
    };
    let error = engine(&settings)
        .load("misbehaving.wasm", &wasm("misbehaving"))
        .unwrap_err();
    says(&error.to_string(), &["misbehaving.wasm", "--max-memory"]);
}
