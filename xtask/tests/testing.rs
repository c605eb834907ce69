//! docs/testing.md names tests that exist, one or more for each bug. Whether a test shows what its row claims is for review.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Short names of test modules, and what stands around the module's name in the path.
const MODULES: [(&str, &str); 5] = [
    ("cli", "cli/tests/cli"),
    ("engine", "webhook/engine/tests/engine"),
    ("https", "webhook/https/tests"),
    ("server", "webhook/server/tests/webhook"),
    ("verify", "webhook/engine/src/verify"),
];

struct Repository {
    root: PathBuf,
    /// Files and folders, relative to the root.
    paths: Vec<PathBuf>,
    /// Every name of a test in a suite stands here, in quotes.
    suites: String,
}

impl Repository {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
        let mut paths = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with("target") || path.ends_with(".git") {
                    continue;
                }
                paths.push(path.strip_prefix(&root).unwrap().to_path_buf());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        let suites = [
            "cell",
            "conformance",
            "e2e",
            "management",
            "projects",
            "provider",
            "restores",
        ]
        .map(|suite| {
            let main = root.join("tests/suites").join(suite).join("main.rs");
            fs::read_to_string(main).unwrap()
        });
        Self {
            root,
            paths,
            suites: suites.concat(),
        }
    }

    /// What ends so, whole names only.
    fn find(&self, end: &str) -> Vec<&Path> {
        let found = self.paths.iter().filter(|path| path.ends_with(end));
        found.map(PathBuf::as_path).collect()
    }

    /// What is wrong with the rows of a page.
    fn complaints(&self, page: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        for row in page.lines().filter(|line| line.starts_with("| ")) {
            let mut file = None;
            for word in row.split('`').skip(1).step_by(2) {
                if let Err(complaint) = self.judge(word, &mut file) {
                    complaints.push(format!("{complaint}: {row}"));
                }
            }
        }
        complaints
    }

    /// `file` is the one that functions of this row belong to, as a path relative to the root.
    fn judge(&self, word: &str, file: &mut Option<PathBuf>) -> Result<(), String> {
        if let Some((left, right)) = word.split_once("::") {
            if let Some((_, folder)) = MODULES.iter().find(|(name, _)| *name == left) {
                let path = Path::new(folder).join(format!("{right}.rs"));
                let found = self.paths.contains(&path);
                *file = Some(path);
                return found.then_some(()).ok_or_else(|| format!("there is no module {word}"));
            }
            let quoted = match word.strip_suffix('*') {
                Some(begin) => format!("\"{begin}"),
                None => format!("\"{word}\""),
            };
            let found = self.suites.contains(&quoted);
            return found.then_some(()).ok_or_else(|| format!("no suite has {word}"));
        }
        if is_path(word) {
            let found = self.find(word.trim_end_matches('/'));
            let extension = Path::new(word).extension();
            let code = extension.is_some_and(|extension| extension == "rs" || extension == "go");
            return match found.as_slice() {
                [] => Err(format!("there is no {word}")),
                [one] if code => {
                    *file = Some(one.to_path_buf());
                    Ok(())
                }
                [_, _, ..] if code => Err(format!("{word} may be any of {found:?}")),
                _ => Ok(()),
            };
        }
        if !is_function(word) {
            return Ok(());
        }
        let Some(file) = file else {
            return Err(format!("no file is named before {word}"));
        };
        let text = fs::read_to_string(self.root.join(&*file)).unwrap_or_default();
        let declared = match word.strip_suffix('*') {
            Some(begin) => format!(" {begin}"),
            None => format!(" {word}("),
        };
        let found = ["fn", "func"]
            .iter()
            .any(|keyword| text.contains(&format!("{keyword}{declared}")));
        found
            .then_some(())
            .ok_or_else(|| format!("{} has no {word}", file.display()))
    }
}

fn is_path(word: &str) -> bool {
    let endings = [".rs", ".go", ".mod", ".yaml", ".toml", ".md"];
    let named = endings.iter().any(|ending| word.ends_with(ending)) || word.contains('/');
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    named && !word.starts_with('/') && word.chars().all(plain)
}

fn is_function(word: &str) -> bool {
    let name = word.strip_suffix('*').unwrap_or(word);
    let rust = name.contains('_')
        && name
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_');
    let go = name.starts_with("Test") && name.chars().all(|character| character.is_ascii_alphanumeric());
    rust || go
}

#[test]
fn every_place_exists() {
    let repository = Repository::read();
    let text = fs::read_to_string(repository.root.join("docs/testing.md")).unwrap();
    let complaints = repository.complaints(&text);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Bugs and tests of the regression table.
fn regressions(page: &str) -> Vec<(&str, &str)> {
    let (_, tables) = page.split_once("\n## Regression tests\n").unwrap();
    let rows = tables
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let rows = rows.filter(|line| *line != "| bug | tests |");
    rows.map(|row| row.trim_matches(['|', ' ']).split_once(" | ").unwrap())
        .collect()
}

#[test]
fn every_regression_names_a_test_and_no_commit_or_command() {
    let text = fs::read_to_string(Repository::read().root.join("docs/testing.md")).unwrap();
    let rows = regressions(&text);
    assert!(rows.len() > 100, "{} rows", rows.len());
    for (bug, tests) in rows {
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named: {bug}");
        for word in named {
            let is_commit = word.len() >= 7 && word.chars().all(|character| character.is_ascii_hexdigit());
            assert!(!is_commit && !word.contains(' '), "{word} is no test: {bug}");
        }
    }
}

/// Pages that a text names: words that end so, but for addresses in the web.
fn pages(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !(character.is_ascii_alphanumeric() || "-_./:".contains(character)));
    let words = words.map(|word| word.trim_end_matches(['.', ':', '/']));
    let is_page = |word: &str| Path::new(word).extension().is_some_and(|extension| extension == "md");
    words.filter(move |word| is_page(word) && !word.contains("://"))
}

#[test]
fn every_page_that_is_named_exists() {
    let repository = Repository::read();
    let texts = repository.paths.iter().filter(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["rs", "md", "yaml", "toml", "go"].contains(&extension))
    });
    let mut complaints = Vec::new();
    for path in texts.filter(|path| !path.ends_with("xtask/tests/testing.rs")) {
        let Ok(text) = fs::read_to_string(repository.root.join(path)) else {
            continue;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let exists = |page: &&str| {
            // Some are named from a package's folder.
            let page = page.trim_start_matches("../");
            let mut places = ["", "docs", "docs/reference"]
                .map(Path::new)
                .into_iter()
                .chain([folder]);
            places.any(|place| repository.root.join(place).join(page).exists())
        };
        let absent = pages(&text).filter(|page| !exists(page));
        complaints.extend(absent.map(|page| format!("{}: there is no {page}", path.display())));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn what_does_not_exist_is_named() {
    let repository = Repository::read();
    for (row, expected) in [
        ("| a | `engine::nothing` |", "there is no module engine::nothing"),
        ("| a | `same::nothing` |", "no suite has same::nothing"),
        ("| a | `e2e` `nothing::*` |", "no suite has nothing::*"),
        ("| a | `xtask/src/nothing.rs` |", "there is no xtask/src/nothing.rs"),
        ("| a | `docs/nothing/` |", "there is no docs/nothing/"),
        ("| a | `main.rs` |", "main.rs may be any of"),
        ("| a | `not_a_function` |", "no file is named before not_a_function"),
        (
            "| a | `xtask/src/main.rs` `no_such_function` |",
            "has no no_such_function",
        ),
        ("| a | `xtask/src/main.rs` `no_such_*` |", "has no no_such_*"),
        ("| a | `address_test.go` `TestNothing` |", "has no TestNothing"),
    ] {
        let complaints = repository.complaints(row);
        assert!(
            complaints.len() == 1 && complaints[0].contains(expected),
            "{row}: {complaints:?}"
        );
    }
    let sound = "| `/readyz` | `xtask/src/main.rs` `main`, `engine::calls` `every_operation_is_answered`, `docs/` |";
    assert_eq!(repository.complaints(sound), Vec::<String>::new());
}
