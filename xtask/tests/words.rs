//! Docs and texts that people read use the field's terms: subject, verb, object, and the word that Kubernetes has.
//!
//! The table has words that popcell does not use, each with the word to use. It is held against the pages in `docs`, the
//! README, the changelog, comments of manifests, the help of programs, the heads of all modules (`//!`), and string literals
//! of the programs that reach people: conditions, messages, logs, metrics. A line that quotes another program's text has
//! [`QUOTED`] beside it, or its text stands in [`ALLOWED`].
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Words that are not used, in lower case, and what to use instead. A trailing `*` stands for any ending of the word.
const WORDS: &[(&str, &str)] = &[
    ("nobody", "name the actor: no client, no replica, no server"),
    ("somebody", "name the actor: a user, another client"),
    ("anybody", "name the actor: any client, another replica"),
    ("whom", "name the actor"),
    ("anew", "again; recreated, restarted, relisted"),
    ("for ever", "forever"),
    ("told", "reported, gets an Event; distinguished"),
    ("tells", "reports; distinguishes"),
    ("woken", "enqueued"),
    ("woke", "enqueued"),
    ("wakes", "enqueues"),
    ("brake*", "deletion guard"),
    ("a pass", "a reconcile"),
    ("the pass", "the reconcile"),
    ("each pass", "each reconcile"),
    ("passes of", "reconciles of"),
    ("long passes", "duration of reconciles"),
    ("world", "cluster state; all planes"),
    ("astray", "misplaced"),
    ("strays", "unexpected Instances"),
    ("remed*", "fix"),
    ("stands still", "is not updated"),
    ("stand still", "are not updated"),
    ("stands behind", "owns; serves; orphaned"),
    ("goes along", "is deleted with"),
    ("is away", "is unreachable"),
    ("are away", "are unreachable"),
    ("was away", "was unreachable"),
    ("were away", "were unreachable"),
    ("left alone", "kept"),
    ("left out", "skipped; dropped"),
    ("looks again", "is requeued; is retried"),
    ("not looked at", "not checked"),
    ("shut out", "rejected"),
    ("goes on running", "keeps running"),
    ("go on running", "keep running"),
    ("what runs goes on", "running workloads are unaffected"),
    ("rests on", "depends on"),
    ("rest on", "depend on"),
    ("at the word of", "because of an answer of"),
    ("on the word of", "because of an answer of"),
    ("figure", "value; metric"),
    ("figures", "values; metrics"),
    ("popcell_passes_total", "popcell_reconciles_total"),
    ("popcell_brake_held", "popcell_deletion_guard_held"),
    ("popcell_planes_unknown", "popcell_planes_not_synced"),
];

/// Texts of others, and places where a word has its plain meaning.
const ALLOWED: &[&str] = &["figure out", "pass through", "hello world", "tests/lab/testdata"];

/// Beside a string that quotes another program.
const QUOTED: &str = "words: quoted";

/// Folders whose string literals reach people.
const PROGRAMS: [&str; 13] = [
    "cli/src",
    "controller/api/src",
    "controller/client/src",
    "controller/core/src",
    "controller/runtime/src",
    "interpreter-wasm/sdk/src",
    "provider/pod/src",
    "webhook/contract/src",
    "webhook/engine/src",
    "webhook/https/src",
    "webhook/protocol/src",
    "webhook/server/src",
    "xtask/src",
];

/// Folders whose modules say at their head what they are for.
const SOURCES: [&str; 8] = [
    "cli",
    "controller",
    "fuzz",
    "interpreter-wasm",
    "provider",
    "tests",
    "webhook",
    "xtask",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // What cargo builds has heads of others.
                folders.extend((!path.ends_with("target")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The words of the table that a text has, without parts of longer words.
fn rejected(text: &str) -> Vec<&'static (&'static str, &'static str)> {
    let mut text = text.to_lowercase();
    for allowed in ALLOWED {
        text = text.replace(allowed, "");
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let has = |(word, _): &&(&str, &str)| {
        let (stem, any_ending) = word.strip_suffix('*').map_or((*word, false), |stem| (stem, true));
        text.match_indices(stem).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + stem.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_part) && (any_ending || !after.is_some_and(is_part))
        })
    };
    WORDS.iter().filter(has).collect()
}

/// One line for each word: where it is, and what to use.
fn complaints(place: &str, number: usize, text: &str) -> impl Iterator<Item = String> {
    let found = rejected(text);
    let shown = text.trim().chars().take(100).collect::<String>();
    let place = format!("{place}:{number}");
    found
        .into_iter()
        .map(move |(word, instead)| format!("{place}: \"{word}\", use \"{instead}\": {shown}"))
}

/// Lines of a page, without names of tests and code in backticks and without blocks of code.
fn prose(page: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_code = false;
    let lines = page.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        let plain: Vec<&str> = line.split('`').step_by(2).collect();
        (!in_code).then(|| (number + 1, plain.join(" ")))
    });
    lines.collect::<Vec<_>>().into_iter()
}

/// String literals outside of comments and tests, each with the number of its line, as one line.
fn literals(source: &str) -> Vec<(usize, String)> {
    let source = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    let mut line = 1;
    // Takes so many bytes.
    let mut take = |rest: &mut &str, length: usize| -> (usize, String) {
        let (taken, after) = rest.split_at(length);
        let at = line;
        line += taken.matches('\n').count();
        *rest = after;
        (at, taken.to_owned())
    };
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            take(&mut rest, end);
        } else if rest.starts_with("r#\"") {
            let end = rest
                .get(3..)
                .and_then(|text| text.find("\"#"))
                .map_or(rest.len(), |end| end + 5);
            found.push(take(&mut rest, end));
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            let end = rest
                .get(1..)
                .and_then(|text| text.find('\''))
                .map_or(rest.len(), |end| end + 2);
            take(&mut rest, end);
        } else if first == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, character)| {
                let ends = *character == '"' && !escaped;
                escaped = *character == '\\' && !escaped;
                ends
            });
            let end = end.map_or(rest.len(), |(at, _)| at + 1);
            found.push(take(&mut rest, end));
        } else {
            take(&mut rest, first.len_utf8());
        }
    }
    let joined = |text: &str| {
        text.replace("\\\n", " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    found.into_iter().map(|(line, text)| (line, joined(&text))).collect()
}

fn assert_none(complaints: &[String]) {
    assert!(
        complaints.is_empty(),
        "{} words that popcell does not use (the table is in xtask/tests/words.rs):\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

#[test]
fn pages_use_the_words_of_the_field() {
    let root = root();
    let mut pages = files(&root.join("docs"), "md");
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/lab/README.md"];
    pages.extend(others.map(|page| root.join(page)));
    let mut found = Vec::new();
    for path in pages {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        for (number, line) in prose(&fs::read_to_string(&path).unwrap()) {
            found.extend(complaints(&name, number, &line));
        }
    }
    assert_none(&found);
}

#[test]
fn messages_use_the_words_of_the_field() {
    let root = root();
    let mut found = Vec::new();
    for folder in PROGRAMS {
        for path in files(&root.join(folder), "rs") {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let is_test = ["/tests/", "/tests.rs", "testing", "_tests.rs", "/laws", "properties.rs"];
            if is_test.iter().any(|part| name.contains(part)) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (number, literal) in literals(&text) {
                let beside = number.saturating_sub(2)..=number.saturating_sub(1);
                let quoted = beside.filter_map(|at| lines.get(at)).any(|line| line.contains(QUOTED));
                // One word alone is a key, a label or a name that a program compares.
                if !quoted && literal.contains(' ') {
                    found.extend(complaints(&name, number, &literal));
                }
            }
        }
    }
    assert_none(&found);
}

#[test]
fn heads_of_modules_use_the_words_of_the_field() {
    let root = root();
    let mut found = Vec::new();
    for path in SOURCES.iter().flat_map(|folder| files(&root.join(folder), "rs")) {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        for (number, line) in prose(&head.join("\n")) {
            found.extend(complaints(&name, number, &line));
        }
    }
    assert_none(&found);
}

#[test]
fn comments_of_manifests_use_the_words_of_the_field() {
    let root = root();
    let manifests = files(&root.join("manifests"), "yaml");
    assert!(!manifests.is_empty());
    let mut found = Vec::new();
    for path in manifests {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let comment = line.trim_start().strip_prefix('#');
            if let Some(comment) = comment.or_else(|| line.split_once(" # ").map(|(_, comment)| comment)) {
                found.extend(complaints(&name, number + 1, comment));
            }
        }
    }
    assert_none(&found);
}

/// Help is made from doc comments of arguments.
#[test]
fn help_of_programs_uses_the_words_of_the_field() {
    let root = root();
    let mut found = Vec::new();
    let mut sources = files(&root.join("cli/src/args"), "rs");
    let others = [
        "controller/runtime/src/flags.rs",
        "provider/pod/src/lib.rs",
        "webhook/server/src/flags.rs",
        "xtask/src/install.rs",
        "xtask/src/main.rs",
        "xtask/src/test.rs",
    ];
    sources.extend(others.map(|file| root.join(file)));
    for path in &sources {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(path).unwrap();
        let help = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim_start().starts_with("/// "));
        for (number, line) in help {
            found.extend(complaints(&name, number + 1, line));
        }
    }
    assert_none(&found);
}

#[test]
fn a_rejected_word_is_found_with_its_place_and_the_word_to_use() {
    let found: Vec<String> = complaints("docs/page", 3, "Nobody is told of brakes.").collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].starts_with("docs/page:3: \"nobody\", use \"name the actor"),
        "{found:?}"
    );
    assert!(rejected("the compass is figured out; a brakeless bypass").len() == 1);
    assert!(rejected("surpassed").is_empty());
    let page = "a `for ever` b\n```\nnobody\n```\nc";
    assert_eq!(
        prose(page).collect::<Vec<_>>(),
        [(1, "a   b".to_owned()), (5, "c".to_owned())]
    );
    let source =
        "// \"no\"\nlet a = \"one\\n \\\"two\\\"\";\nlet b = r#\"th\"ree\"#;\nlet c = '\"';\nlet d = \"four\";";
    let texts: Vec<(usize, String)> = literals(source);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert_eq!(texts[2], (5, "\"four\"".to_owned()));
}
