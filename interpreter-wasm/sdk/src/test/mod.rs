//! Tests for interpreter modules: YAML files in Karmada's format, and the laws that every module has to keep.
//!
//! A module's `tests/cases.rs` is one line:
//!
//! ```ignore
//! popcell_sdk::test_main!(widget_interpreter, "tests");
//! ```
//!
//! `cargo test` then runs every document of every `.yaml` and `.yml` file below `tests/` as a test of its own
//! (`health.yaml::ready`), and the laws (`laws::retain_idempotent`) on every object that the files mention. The files
//! are read when the tests run: a new or edited file needs no rebuild.
//!
//! The same parts serve the command line, which runs a WebAssembly module through [`Run`](crate::module::Run).

pub mod cases;
pub mod laws;
pub mod runner;
pub mod yaml;

pub mod jsonl;
pub mod report;

/// The main function of a module's `tests/cases.rs` (a target with `harness = false`).
///
/// `test_main!(crate_name, "folder")`: the folder is relative to the package. A folder without any test fails.
/// With `POPCELL_CASES_JSON=1` in the environment it prints one JSON line per document instead; see [`runner`].
#[macro_export]
macro_rules! test_main {
    ($module:ident, $folder:literal) => {
        fn main() -> ::std::process::ExitCode {
            $crate::test::runner::main(
                $module::module(),
                ::std::path::Path::new(env!("CARGO_MANIFEST_DIR")),
                $folder,
            )
        }
    };
}
