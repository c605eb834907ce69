//! `--bless`: writes the answers got into the test files as the expected ones. Only the lines of `output` change: comments
//! and everything else stay as their author wrote them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use popcell_sdk::{
    Error,
    test::{
        cases::{Answer, Case, Expected},
        yaml::{Field, Node, Value, to_yaml},
    },
};

use super::Tested;
use crate::exit::Failure;

/// Writes the answer of every failed case that has one. Gives the files that were written.
pub(super) fn bless(tests: &[Tested]) -> Result<Vec<PathBuf>, Failure> {
    let mut by_file: BTreeMap<&Path, Vec<(&Case, Node)>> = BTreeMap::new();
    for test in tests.iter().filter(|test| test.result.failure.is_some()) {
        if let Some((case, outcome)) = &test.case
            && let Some(output) = wanted(case, outcome)
        {
            by_file.entry(&case.file).or_default().push((case, output));
        }
    }
    let mut written = Vec::new();
    for (file, mut changes) in by_file {
        let mut text = std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))?;
        // From the end, so that the places of the earlier ones stay true.
        changes.sort_by_key(|(case, _)| std::cmp::Reverse(case.at.line));
        for (case, output) in &changes {
            text = rewritten(&text, case, output).map_err(|reason| {
                Failure::Usage(format!(
                    "{}:{}: {}: failed to bless: {reason}",
                    file.display(),
                    case.at.line,
                    case.name
                ))
            })?;
        }
        write(file, &text)?;
        written.push(file.to_owned());
    }
    Ok(written)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = path.with_extension(format!("yaml.{}", std::process::id()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| Failure::file("write", path, &error))
}

/// The new value of `output`; `None` where an answer must not become an expectation: a crash, or a missing operation.
fn wanted(case: &Case, outcome: &Result<Answer, Error>) -> Option<Node> {
    let text = |key: &str, text: &str| Node::made_fields([(key, Node::made_text(text))]);
    let answer = match outcome {
        Ok(answer) => answer,
        Err(Error::InvalidObject { path, message }) => return Some(text("error", &format!("{path}: {message}"))),
        Err(Error::Undecided(reason)) => return Some(text("undecided", reason)),
        Err(Error::Unsupported | Error::Failed(_)) => return None,
    };
    let Expected::Answer {
        parts,
        unchanged,
        left_out,
    } = &case.expected
    else {
        return Some(answer.to_node());
    };
    let mut fields: Vec<(&str, Node)> = Vec::new();
    for (key, got) in &answer.parts {
        match parts.iter().find(|part| part.key == *key) {
            Some(part) => fields.push((key, keep_excluded(&part.value, got))),
            // What the author left out on purpose stays out.
            None if parts.is_empty() && unchanged.is_none() => fields.push((key, got.clone())),
            None => {}
        }
    }
    if let (Some(_), Some(got)) = (unchanged, answer.unchanged) {
        fields.push(("unchanged", Node::made(Value::Bool(got))));
    }
    if let (Some(_), Some(got)) = (left_out, answer.left_out) {
        fields.push(("leftOut", Node::made(Value::Number(got.to_string()))));
    }
    Some(Node::made_fields(fields))
}

/// The answer, with `{{EXCLUDE}}` where the old expectation has it.
fn keep_excluded(old: &Node, got: &Node) -> Node {
    if old.text() == Some("{{EXCLUDE}}") {
        return old.clone();
    }
    let value = match (&old.value, &got.value) {
        (Value::Fields(old), Value::Fields(got)) => {
            let old_of = |key: &str| old.iter().find(|field| field.key == key).map(|field| &field.value);
            let kept = got.iter().map(|field| match old_of(&field.key) {
                Some(old) => Field {
                    value: keep_excluded(old, &field.value),
                    ..field.clone()
                },
                None => field.clone(),
            });
            Value::Fields(kept.collect())
        }
        (Value::Items(old), Value::Items(got)) => {
            let kept = got.iter().enumerate().map(|(index, item)| {
                old.get(index)
                    .map_or_else(|| item.clone(), |old| keep_excluded(old, item))
            });
            Value::Items(kept.collect())
        }
        (_, got) => got.clone(),
    };
    Node { value, at: got.at }
}

/// The text of the file with another `output` in the document of the case.
fn rewritten(text: &str, case: &Case, output: &Node) -> Result<String, &'static str> {
    let fields = case.source.fields().unwrap_or_default();
    let place = |key: &str| fields.iter().find(|field| field.key == key);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let indented = || {
        to_yaml(output)
            .lines()
            .fold(String::new(), |text, line| format!("{text}  {line}\n"))
    };
    let block = if output.fields().is_some_and(<[_]>::is_empty) {
        "output: {}\n".to_owned()
    } else {
        format!("output:\n{}", indented())
    };
    let (start, end) = match (place("output"), place("operation")) {
        (Some(old), _) if old.at.column == 1 => {
            let start = old.at.line.saturating_sub(1);
            (start, end_of(&lines, start))
        }
        (None, Some(operation)) if operation.at.column == 1 => (operation.at.line, operation.at.line),
        _ => return Err("its keys do not begin their lines; write the document in block style, or change it by hand"),
    };
    let part = |lines: Option<&[&str]>| lines.map(<[&str]>::concat).unwrap_or_default();
    Ok(format!("{}{block}{}", part(lines.get(..start)), part(lines.get(end..))))
}

/// The line after the value of a key in the first column. Remarks and empty lines behind it belong to what follows.
fn end_of(lines: &[&str], start: usize) -> usize {
    let mut end = start + 1;
    for (index, line) in lines.iter().enumerate().skip(start + 1) {
        let part_of_value = line.starts_with([' ', '\t', '}', ']']) && !line.trim().is_empty();
        let between = line.trim().is_empty() || line.starts_with('#');
        match (part_of_value, between) {
            (true, _) => end = index + 1,
            (false, true) => {}
            (false, false) => break,
        }
    }
    end
}

#[cfg(test)]
#[path = "bless_tests.rs"]
mod tests;
