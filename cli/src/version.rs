//! `popcell version`: what this program is and speaks, for bug reports and for scripts.

use std::{collections::BTreeMap, io::Write as _};

use popcell_engine::INTERFACE_VERSION;
use serde_json::json;

use crate::{
    args::ListFormat,
    console::Console,
    exit::{Exit, Outcome},
};

/// The commit that a release was built from; `None` in any other build.
const COMMIT: Option<&str> = option_env!("POPCELL_COMMIT");
/// As Cargo.lock has it.
pub const WASMTIME: &str = "48.0.8";
/// The Karmada of the lab, on which all suites run.
pub const KARMADA: &str = "1.18.2";

/// Runs the command.
pub fn run(output: ListFormat, console: &mut Console) -> Outcome {
    let rows = [
        ("version", "version", Some(env!("CARGO_PKG_VERSION"))),
        ("commit", "commit", COMMIT),
        ("interface of modules", "interfaceVersion", Some(INTERFACE_VERSION)),
        ("wasmtime", "wasmtime", Some(WASMTIME)),
        ("tested with Karmada", "karmadaTested", Some(KARMADA)),
    ];
    match output {
        ListFormat::Text => {
            for (name, value) in rows.iter().filter_map(|(name, _, value)| Some((name, (*value)?))) {
                writeln!(console.out, "{name:<21} {value}")?;
            }
        }
        ListFormat::Json => {
            let all = BTreeMap::from(rows.map(|(_, name, value)| (name, value)));
            writeln!(console.out, "{:#}", json!(all))?;
        }
    }
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_of_others_is_what_it_is_built_and_tested_with() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let read = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let locked = format!("name = \"wasmtime\"\nversion = \"{WASMTIME}\"\n");
        assert!(read("Cargo.lock").contains(&locked));
        let tested = format!("github.com/karmada-io/karmada v{KARMADA}\n");
        assert!(read("tests/lab/go.mod").contains(&tested));
    }
}
