//! The same cases in the crate's own test target. Its lines (popcell_sdk::test::runner) are compared with those of the
//! WebAssembly module, text by text.

use std::{
    collections::HashMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use popcell_sdk::test::runner::JSON_VARIABLE;
use serde::Deserialize;

use crate::{console::Console, exit::Failure};

/// One line per case, by file (canonical path) and document.
pub(super) type Answers = HashMap<(PathBuf, usize), String>;

/// The test target that `popcell new` makes.
const TARGET: &str = "cases";

/// Runs the test target; `None` when the crate has none.
pub(super) fn answers(package: &Path, console: &mut Console) -> Result<Option<Answers>, Failure> {
    let manifest = package.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| Failure::file("read", &manifest, &error))?;
    let has_target =
        package.join("tests/cases.rs").is_file() && text.contains("[[test]]") && text.contains("\"cases\"");
    if !has_target {
        writeln!(
            console.err,
            "not compared with native code: {} has no test target `{TARGET}`",
            manifest.display()
        )?;
        return Ok(None);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--quiet", "--test", TARGET, "--manifest-path"])
        .arg(&manifest)
        .env(JSON_VARIABLE, "1")
        .output()
        .map_err(|error| {
            Failure::Environment(format!(
                "failed to run cargo: {error}; install Rust (https://rustup.rs)"
            ))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Failed(format!(
            "failed to run the native tests of {}:\n{}",
            manifest.display(),
            said.trim()
        )));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(Some(read(package, &lines)?))
}

fn read(package: &Path, lines: &str) -> Result<Answers, Failure> {
    #[derive(Deserialize)]
    struct Line {
        file: PathBuf,
        document: Option<usize>,
    }
    let mut answers = Answers::new();
    for text in lines.lines().filter(|line| line.starts_with('{')) {
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Failure::Failed(format!("failed to understand the native tests: {error}: {text}")))?;
        // A document that is no test has no number, and fails in WebAssembly in the same words.
        if let Some(document) = line.document {
            answers.insert((canonical(&package.join(line.file)), document), without_file(text));
        }
    }
    Ok(answers)
}

/// A path that is the same from wherever it was written.
pub(super) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The line from `"document"` on: files are shown in two ways, and the rest has to be equal.
pub(super) fn without_file(line: &str) -> String {
    line.split_once("\"document\"")
        .map_or(line, |(_, rest)| rest)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_file_and_document() {
        let lines = "noise\n{\"file\":\"tests/a.yaml\",\"document\":2,\"name\":\"x\",\"ok\":true,\"answer\":{\"big\":9007199254740993}}\n\
                     {\"file\":\"tests/b.yaml\",\"ok\":false,\"error\":{}}\n";
        let answers = read(Path::new("/nowhere"), lines).unwrap();
        assert_eq!(answers.len(), 1);
        assert_eq!(
            answers[&(PathBuf::from("/nowhere/tests/a.yaml"), 2)],
            ":2,\"name\":\"x\",\"ok\":true,\"answer\":{\"big\":9007199254740993}}"
        );
    }
}
