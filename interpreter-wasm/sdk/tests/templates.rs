//! The templates of `popcell new` compile, pass their own cases and keep the laws.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test")]

use std::fs;
use std::path::{Path, PathBuf};

use popcell_sdk::ModuleDef;
use popcell_sdk::module::Run;
use popcell_sdk::test::{cases, laws, report};

#[path = "../../templates/aggregate/src/lib.rs"]
mod aggregate;
#[path = "../../templates/full/src/lib.rs"]
mod full;
#[path = "../../templates/health/src/lib.rs"]
mod health;
#[path = "../../templates/replicas/src/lib.rs"]
mod replicas;

fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates").join(name)
}

fn passes(name: &str, module: ModuleDef) {
    let files = cases::read_folder(&template(name).join("tests"), Path::new("tests")).unwrap();
    for file in &files {
        for case in &file.cases {
            let case = case.as_ref().unwrap();
            if let Err(failure) = cases::check(case, &module).1 {
                panic!("{}", report::failure(case, &failure, &file.text));
            }
        }
    }
    let seen = laws::Seen::of(files.iter().flat_map(|file| file.cases.iter().flatten()));
    for law in laws::of(&module.describe()) {
        law.check(&module, &seen)
            .unwrap_or_else(|broken| panic!("{}: {broken}", law.name));
    }
}

#[test]
fn health_passes() {
    passes("health", health::module());
}

#[test]
fn replicas_passes() {
    passes("replicas", replicas::module());
}

#[test]
fn aggregate_passes() {
    passes("aggregate", aggregate::module());
}

#[test]
fn full_passes() {
    passes("full", full::module());
}

/// The bar of the hello world: 4 files, at most 35 lines.
#[test]
fn the_hello_world_stays_small() {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    files(&template("health"), &mut found);
    let lines: usize = found
        .iter()
        .map(|path| fs::read_to_string(path).unwrap().lines().count())
        .sum();
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(lines <= 35, "{lines} lines");
}
