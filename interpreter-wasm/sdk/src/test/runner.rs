//! The main function behind [`test_main!`](crate::test_main): one test per document, one per law.
//!
//! With `POPCELL_CASES_JSON=1` in the environment it runs no tests but prints, for each document, one JSON line:
//!
//! ```json
//! {"file":"tests/health.yaml","document":1,"name":"ready","operation":"InterpretHealth","ok":true,"answer":{"healthy":true}}
//! {"file":"tests/health.yaml","document":2,"name":"odd","operation":"InterpretHealth","ok":true,"error":{"message":"expected an integer, found \"two\"","path":"/spec/replicas","type":"invalid-object"}}
//! ```
//!
//! `ok` says whether the document's expectation is met; `answer` or `error` is what came back, in canonical order, so
//! that two runs agree exactly when their lines do. The types of `error` are `invalid-object` (with `path`),
//! `undecided`, `unsupported`, `failed`, and `unreadable` for a document that is not a test (it has no `operation`). An
//! operation that may change its object also says `unchanged`. The exit code is 0 when every line was printed.
//! `POPCELL_CASES_PATH` names another folder, or one file, to read in place of the module's own folder of tests.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use super::cases::{self, Case, CaseError, CaseFile};
use super::{jsonl, laws, report};
use crate::module::Run;

/// The variable that asks for JSON lines.
pub const JSON_VARIABLE: &str = "POPCELL_CASES_JSON";

/// The variable that names what is read for JSON lines: an absolute path of a folder or a file.
pub const PATH_VARIABLE: &str = "POPCELL_CASES_PATH";

/// Runs the tests of the folder `folder` below `package` as the program's arguments say (those of `cargo test`).
pub fn main<M: Run + Send + Sync + 'static>(module: M, package: &Path, folder: &str) -> ExitCode {
    let lines_wanted = std::env::var_os(JSON_VARIABLE).is_some_and(|value| value == "1");
    let elsewhere = std::env::var_os(PATH_VARIABLE).filter(|_| lines_wanted);
    let read = match &elsewhere {
        Some(path) => cases::read_folder(Path::new(path), Path::new(path)),
        None => cases::read_folder(&package.join(folder), Path::new(folder)),
    };
    let files = match read {
        Ok(files) => files,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if lines_wanted {
        return print_lines(&module, &files);
    }
    libtest_mimic::run(&Arguments::from_args(), trials(&Arc::new(module), files)).exit_code()
}

/// The names of the documents' tests, in order: `file::name`, with `#2` and so on where one comes again.
pub fn names(files: &[CaseFile]) -> Vec<Vec<String>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut unique = |name: String| {
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}#{times}") }
    };
    let of_document = |file: &CaseFile, index: usize, document: &Result<Case, CaseError>| {
        let name = match document {
            Ok(case) => Some(case.name.clone()),
            Err(error) => error.name.clone(),
        };
        let name = name.unwrap_or_else(|| format!("document {}", index + 1));
        format!(
            "{}::{}",
            file.name,
            name.split_whitespace().collect::<Vec<_>>().join(" ")
        )
    };
    let of_file = |file: &CaseFile| {
        let documents = file.cases.iter().enumerate();
        documents
            .map(|(index, document)| unique(of_document(file, index, document)))
            .collect()
    };
    files.iter().map(of_file).collect()
}

fn trials<M: Run + Send + Sync + 'static>(module: &Arc<M>, files: Vec<CaseFile>) -> Vec<Trial> {
    let seen = Arc::new(laws::Seen::of(
        files.iter().flat_map(|file| file.cases.iter().flatten()),
    ));
    let laws = laws::of(&module.describe());
    let mut trials = Vec::new();
    let names = names(&files);
    for (file, names) in files.into_iter().zip(names) {
        let text: Arc<str> = file.text.into();
        for (document, name) in file.cases.into_iter().zip(names) {
            let (module, text) = (Arc::clone(module), Arc::clone(&text));
            trials.push(Trial::test(name, move || {
                run(&*module, &document, &text).map_err(Failed::from)
            }));
        }
    }
    for law in laws {
        let (module, seen) = (Arc::clone(module), Arc::clone(&seen));
        trials.push(Trial::test(format!("laws::{}", law.name), move || {
            law.check(&*module, &seen)
                .map_err(|broken| Failed::from(broken.to_string()))
        }));
    }
    trials
}

/// The verdict over one document, with the text that its author sees.
fn run(module: &dyn Run, document: &Result<Case, CaseError>, text: &str) -> Result<(), String> {
    match document {
        Ok(case) => cases::check(case, module)
            .1
            .map_err(|failure| report::failure(case, &failure, text)),
        Err(error) => Err(report::unreadable(error, text)),
    }
}

fn print_lines(module: &dyn Run, files: &[CaseFile]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    for document in files.iter().flat_map(|file| &file.cases) {
        let line = match document {
            Ok(case) => {
                let (outcome, verdict) = cases::check(case, module);
                jsonl::line(case, &outcome, verdict.is_ok())
            }
            Err(error) => jsonl::unreadable(error),
        };
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
