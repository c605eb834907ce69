//! The same cases in the crate's own test target. Its lines (popcell_sdk::test::runner) are compared with those of the
//! WebAssembly module, text by text.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use popcell_sdk::test::{
    cases::Case,
    runner::{JSON_VARIABLE, PATH_VARIABLE},
};
use serde::Deserialize;

use super::find::Suite;
use crate::{
    build::{self, no_cargo},
    console::Console,
    exit::Failure,
};

/// The test target that `popcell new` makes.
const TARGET: &str = "cases";

/// What native code answered. A document that it should have answered and did not is a difference.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// One line per case, by file (canonical path) and document.
    lines: HashMap<(PathBuf, usize), String>,
    /// Why the test target ended too early.
    broke_off: Option<String>,
}

/// Builds and runs the test target on the files of the suite; `None` when the crate has none.
pub(super) fn answers(package: &Path, suite: &Suite, console: &mut Console) -> Result<Option<Answers>, Failure> {
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
    compile(&manifest, console)?;
    let files = std::path::absolute(&suite.shown).map_err(|error| Failure::file("find", &suite.shown, &error))?;
    let output = cargo(&manifest)
        .arg("--quiet")
        .env(JSON_VARIABLE, "1")
        .env(PATH_VARIABLE, &files)
        .output()
        .map_err(no_cargo)?;
    let mut answers = Answers {
        lines: read(package, &String::from_utf8_lossy(&output.stdout)),
        broke_off: None,
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        writeln!(console.err, "{}", said.trim_end())?;
        answers.broke_off = Some(reason(&said));
    }
    Ok(Some(answers))
}

fn cargo(manifest: &Path) -> Command {
    let mut command = build::cargo();
    command
        .args(["test", "--test", TARGET, "--manifest-path"])
        .arg(manifest)
        .stdin(Stdio::null());
    command
}

/// A step of its own, so that a test target which does not compile is distinguished from one that crashes.
fn compile(manifest: &Path, console: &mut Console) -> Result<(), Failure> {
    let mut child = cargo(manifest)
        .arg("--no-run")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(no_cargo)?;
    let lines = child
        .stderr
        .take()
        .into_iter()
        .flat_map(|stderr| BufReader::new(stderr).lines());
    for line in lines.map_while(Result::ok) {
        // Where the executable lies is of no use to anybody. A terminal that is gone is no reason to stop.
        if !line.trim_start().starts_with("Executable") {
            let _ = writeln!(console.err, "{line}");
        }
    }
    if child.wait().map_err(no_cargo)?.success() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "failed to compile the native tests of {}",
        manifest.display()
    )))
}

/// How cargo says that a program crashed, else the last thing that was said.
fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let crash = lines().find_map(|line| {
        let (_, how) = line
            .strip_prefix("process didn't exit successfully")?
            .rsplit_once('(')?;
        how.strip_suffix(')').map(str::to_owned)
    });
    crash
        .or_else(|| lines().next_back().map(str::to_owned))
        .unwrap_or_else(|| "it gave no reason".to_owned())
}

/// What is no line of ours (something that the module itself prints) is skipped: the document that it may have been
/// counts as not answered.
fn read(package: &Path, lines: &str) -> HashMap<(PathBuf, usize), String> {
    #[derive(Deserialize)]
    struct Line {
        file: PathBuf,
        document: Option<usize>,
    }
    lines
        .lines()
        .filter_map(|text| {
            let line: Line = serde_json::from_str(text).ok()?;
            // A document that is no test has no number, and fails in WebAssembly in the same words.
            let document = line.document?;
            Some(((canonical(&package.join(line.file)), document), without_file(text)))
        })
        .collect()
}

impl Answers {
    /// What differs between native code and the line of the WebAssembly module.
    pub(super) fn difference(&self, case: &Case, here: &str) -> Option<String> {
        let place = format!("{}:{}", case.file.display(), case.at.line);
        let Some(native) = self.lines.get(&(canonical(&case.file), case.document)) else {
            return Some(match &self.broke_off {
                Some(reason) => format!(
                    "{place}: native code gave no answer: the test target `{TARGET}` ended before it ({reason}); the first document \
                     without an answer is the one that it did not survive\n"
                ),
                None => format!(
                    "{place}: native code gave no answer: the test target `{TARGET}` left this document out; its main function has to be \
                     popcell_sdk::test_main!, of the same version as this program\n"
                ),
            });
        };
        let here = without_file(here);
        (*native != here).then(|| {
            format!(
                "{place}: native code and WebAssembly differ. The module depends on the platform (usize, floats, time), or --module was built \
                 from other sources; if neither, this is a bug of popcell or of the compiler: please report it with this input.\nnative      {{{native}\nWebAssembly {{{here}\n"
            )
        })
    }
}

/// A path that is the same from wherever it was written.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The line from `"document"` on: files are shown in two ways, and the rest has to be equal.
fn without_file(line: &str) -> String {
    line.split_once("\"document\"")
        .map_or(line, |(_, rest)| rest)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use popcell_sdk::test::cases;

    use super::*;

    const LINE: &str = r#"{"file":"tests/a.yaml","document":1,"name":"x","ok":true,"answer":{"healthy":true}}"#;

    fn case() -> Case {
        let text = "name: x\noperation: InterpretHealth\nobservedObj: {apiVersion: v1, kind: A}\n";
        cases::read(Path::new("/nowhere/tests/a.yaml"), text).remove(0).unwrap()
    }

    fn answers(lines: &str, broke_off: Option<&str>) -> Answers {
        Answers {
            lines: read(Path::new("/nowhere"), lines),
            broke_off: broke_off.map(str::to_owned),
        }
    }

    #[test]
    fn lines_are_found_by_file_and_document() {
        let lines = "noise\n{\"file\":\"tests/a.yaml\",\"document\":2,\"name\":\"x\",\"ok\":true,\"answer\":{\"big\":9007199254740993}}\n\
                     {\"file\":\"tests/b.yaml\",\"ok\":false,\"error\":{}}\n{\"file\":\"tests/c.yaml\",\"docu";
        let answers = read(Path::new("/nowhere"), lines);
        assert_eq!(answers.len(), 1);
        assert_eq!(
            answers[&(PathBuf::from("/nowhere/tests/a.yaml"), 2)],
            ":2,\"name\":\"x\",\"ok\":true,\"answer\":{\"big\":9007199254740993}}"
        );
    }

    #[test]
    fn equal_answers_do_not_differ() {
        assert_eq!(answers(LINE, None).difference(&case(), LINE), None);
        let other = LINE.replace("healthy\":true", "healthy\":false");
        let difference = answers(&other, None).difference(&case(), LINE).unwrap();
        assert!(
            difference.contains("native code and WebAssembly differ"),
            "{difference}"
        );
    }

    #[test]
    fn a_document_that_native_code_skipped_differs() {
        let others = LINE.replace("\"document\":1", "\"document\":2");
        for lines in ["", &others] {
            let difference = answers(lines, None).difference(&case(), LINE).unwrap();
            assert!(
                difference.starts_with("/nowhere/tests/a.yaml:1: native code gave no answer")
                    && difference.contains("left"),
                "{difference}"
            );
        }
    }

    #[test]
    fn a_document_behind_a_crash_of_native_code_differs() {
        let difference = answers("", Some("signal: 6")).difference(&case(), LINE).unwrap();
        assert!(
            difference.contains("/nowhere/tests/a.yaml:1") && difference.contains("signal: 6"),
            "{difference}"
        );
        // One that was answered before it does not.
        assert_eq!(answers(LINE, Some("signal: 6")).difference(&case(), LINE), None);
    }

    #[test]
    fn the_reason_of_a_crash_is_cargos() {
        let said = "error: test failed, to rerun pass `--test cases`\n\nCaused by:\n  process didn't exit successfully: \
                    `/t/cases-1 --quiet` (signal: 6, SIGABRT: process abort signal)\n";
        assert_eq!(reason(said), "signal: 6, SIGABRT: process abort signal");
        assert_eq!(reason("error: no test in tests\n\n"), "error: no test in tests");
        assert_eq!(reason(""), "it gave no reason");
    }
}
