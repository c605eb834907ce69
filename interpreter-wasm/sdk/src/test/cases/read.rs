//! The test files of a folder, and from the text of one to its cases. Every error names the line and the document.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

use super::{Case, CaseError, Expected, keys};
use crate::module::Input;
use crate::test::yaml::{self, Field, Node, Position, Value};
use crate::types::Gvk;
use crate::{Health, Json, Object, Operation, StatusItem};

const KEYS: [&str; 8] = [
    "name",
    "description",
    "operation",
    "desiredObj",
    "observedObj",
    "statusItems",
    "inputReplicas",
    "output",
];

/// The cases of a file. `file` is how the file is shown in messages and test names.
pub fn read(file: &Path, text: &str) -> Vec<Result<Case, CaseError>> {
    match yaml::documents(text) {
        Ok(documents) => documents
            .into_iter()
            .enumerate()
            .map(|(index, source)| {
                let name = source.field("name").and_then(Node::text).map(str::to_owned);
                case(file, index + 1, source).map_err(|Wrong { at, message }| CaseError {
                    file: file.to_owned(),
                    at,
                    name,
                    message,
                })
            })
            .collect(),
        Err(error) => {
            vec![Err(CaseError {
                file: file.to_owned(),
                at: error.at,
                name: None,
                message: error.message,
            })]
        }
    }
}

/// What is wrong, before the file and the document are known.
struct Wrong {
    at: Position,
    message: String,
}

fn wrong<T>(at: Position, message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        at,
        message: message.into(),
    })
}

fn case(file: &Path, document: usize, source: Node) -> Result<Case, Wrong> {
    let Some(fields) = source.fields() else {
        return wrong(
            source.at,
            format!("a test is a mapping with the keys {}; found {source}", KEYS.join(", ")),
        );
    };
    if let Some(unknown) = fields.iter().find(|field| !KEYS.contains(&field.key.as_str())) {
        return wrong(
            unknown.at,
            format!("unknown key {:?}: expected one of {}", unknown.key, KEYS.join(", ")),
        );
    }
    let name = text(&source, "name")?.unwrap_or_default();
    if name.trim().is_empty() {
        return wrong(source.at, "a test needs a name");
    }
    let operation = operation(&source)?;
    let input = input(&source, operation)?;
    Ok(Case {
        file: file.to_owned(),
        document,
        at: source.at,
        name: name.to_owned(),
        description: text(&source, "description")?.unwrap_or_default().to_owned(),
        operation,
        input,
        expected: expected(&source, operation)?,
        source,
    })
}

fn operation(source: &Node) -> Result<Operation, Wrong> {
    let Some(name) = text(source, "operation")? else {
        return wrong(source.at, "a test needs an operation");
    };
    name.parse()
        .or_else(|error| wrong(place(source, "operation"), format!("{error}")))
}

fn input(source: &Node, operation: Operation) -> Result<Input, Wrong> {
    let desired = given(source, "desiredObj");
    let observed = given(source, "observedObj");
    let (object, observed) = match (operation, desired, observed) {
        (Operation::Retain, Some(desired), Some(observed)) => (desired, Some(self::object(observed)?)),
        (Operation::Retain, ..) => return wrong(source.at, "Retain needs both desiredObj and observedObj"),
        (_, Some(object), None) | (_, None, Some(object)) => (object, None),
        (_, Some(_), Some(second)) => {
            return wrong(
                second.at,
                format!("{operation} takes one object: either desiredObj or observedObj"),
            );
        }
        (_, None, None) => return wrong(source.at, format!("{operation} needs desiredObj or observedObj")),
    };
    let object = self::object(object)?;
    Ok(Input {
        kind: Gvk::of(object.api_version(), object.kind()),
        object,
        observed,
        replicas: replicas(source)?,
        items: items(source)?,
    })
}

/// The question that a document asks; `None` when it is none.
pub(in crate::test) fn input_of(source: &Node, operation: Operation) -> Option<Input> {
    input(source, operation).ok()
}

fn object(node: &Node) -> Result<Object, Wrong> {
    for key in ["apiVersion", "kind"] {
        if node.field(key).and_then(Node::text).is_none_or(str::is_empty) {
            return wrong(node.at, format!("the object has no {key}"));
        }
    }
    Object::parse(node.to_json()).or_else(|error| wrong(node.at, error.to_string()))
}

fn replicas(source: &Node) -> Result<i32, Wrong> {
    given(source, "inputReplicas").map_or(Ok(0), |node| {
        integer(node, "inputReplicas: expected an integer of 32 bits")
    })
}

fn integer<T: FromStr>(node: &Node, expected: &str) -> Result<T, Wrong> {
    let number = match &node.value {
        Value::Number(digits) => digits.parse().ok(),
        _ => None,
    };
    number.map_or_else(|| wrong(node.at, format!("{expected}, found {node}")), Ok)
}

fn items(source: &Node) -> Result<Vec<StatusItem>, Wrong> {
    let Some(node) = given(source, "statusItems") else {
        return Ok(Vec::new());
    };
    let Value::Items(items) = &node.value else {
        return wrong(node.at, format!("statusItems: expected a list, found {node}"));
    };
    items.iter().map(item).collect()
}

/// One `AggregatedStatusItem` (Karmada's work/v1alpha2); unknown keys are not changed, as Karmada leaves them.
fn item(node: &Node) -> Result<StatusItem, Wrong> {
    if node.fields().is_none() {
        return wrong(node.at, format!("a status item is a mapping, found {node}"));
    }
    let applied = match given(node, "applied").map(|node| (&node.value, node.at)) {
        None => false,
        Some((Value::Bool(applied), _)) => *applied,
        Some((_, at)) => return wrong(at, "applied: expected true or false"),
    };
    let health = match text(node, "health")? {
        None => None,
        Some(text) => match Health::from_wire(text) {
            None => return wrong(place(node, "health"), "health: expected Healthy, Unhealthy or Unknown"),
            known => known,
        },
    };
    let status = match given(node, "status") {
        None => None,
        Some(status) => Some(Json::parse(status.to_json()).or_else(|error| wrong(status.at, error.to_string()))?),
    };
    Ok(StatusItem {
        cluster_name: text(node, "clusterName")?.unwrap_or_default().to_owned(),
        status,
        applied,
        applied_message: text(node, "appliedMessage")?.unwrap_or_default().to_owned(),
        health,
    })
}

fn expected(source: &Node, operation: Operation) -> Result<Expected, Wrong> {
    let Some(output) = given(source, "output") else {
        return Ok(Expected::Answer {
            parts: Vec::new(),
            unchanged: None,
            left_out: None,
        });
    };
    let Some(fields) = output.fields() else {
        return wrong(output.at, format!("output: expected a mapping, found {output}"));
    };
    let mut parts = Vec::new();
    let mut unchanged = None;
    let mut left_out = None;
    for field in fields {
        match field.key.as_str() {
            "error" | "undecided" if fields.len() > 1 => {
                return wrong(field.at, format!("{}: there is no other output then", field.key));
            }
            "error" => return fragment(field).map(Expected::Error),
            "undecided" => return fragment(field).map(Expected::Undecided),
            "unchanged" if patches(operation) => unchanged = Some(flag(field)?),
            "leftOut" if operation == Operation::AggregateStatus => {
                left_out = Some(integer(&field.value, "leftOut: expected a number of parts")?);
            }
            key if keys(operation).contains(&key) => parts.push(field.clone()),
            key => {
                let known = keys(operation).join(", ");
                let also = match operation {
                    Operation::AggregateStatus => ", error, undecided, unchanged, leftOut",
                    operation if patches(operation) => ", error, undecided, unchanged",
                    _ => ", error, undecided",
                };
                return wrong(
                    field.at,
                    format!("{operation} has no output {key:?}: expected one of {known}{also}"),
                );
            }
        }
    }
    Ok(Expected::Answer {
        parts,
        unchanged,
        left_out,
    })
}

/// Whether the answer is a change of the object.
fn patches(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus
    )
}

fn fragment(field: &Field) -> Result<String, Wrong> {
    match &field.value.value {
        Value::Bool(true) => Ok(String::new()),
        Value::Text(text) if !text.is_empty() => Ok(text.clone()),
        _ => wrong(
            field.value.at,
            format!("{}: expected true or a part of the message", field.key),
        ),
    }
}

fn flag(field: &Field) -> Result<bool, Wrong> {
    match field.value.value {
        Value::Bool(value) => Ok(value),
        _ => wrong(
            field.value.at,
            format!("{}: expected true or false, found {}", field.key, field.value),
        ),
    }
}

/// A value that is written and not null.
fn given<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    node.field(key).filter(|node| !node.is_null())
}

fn text<'a>(node: &'a Node, key: &str) -> Result<Option<&'a str>, Wrong> {
    match given(node, key) {
        None => Ok(None),
        Some(found) => match found.text() {
            Some(text) => Ok(Some(text)),
            None if matches!(found.value, Value::Bool(_) | Value::Number(_)) => wrong(
                found.at,
                format!("{key}: expected text, found {found}: put it into quotes"),
            ),
            None => wrong(found.at, format!("{key}: expected text, found {found}")),
        },
    }
}

fn place(node: &Node, key: &str) -> Position {
    node.field(key).map_or(node.at, |node| node.at)
}

/// One test file with its cases, and the documents that are none.
#[derive(Debug, Clone)]
pub struct CaseFile {
    /// The file below the folder, with `/` between its parts.
    pub name: String,
    /// Its text, for showing lines of it.
    pub text: String,
    /// Its documents.
    pub cases: Vec<Result<Case, CaseError>>,
}

/// Why a folder holds no tests.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder or a file in it cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// There is nothing to run; a test run that tests nothing must not pass.
    #[error("no test in {}: expected at least one .yaml or .yml file with a document in it", folder.display())]
    Empty {
        /// Where tests were looked for.
        folder: PathBuf,
    },
}

/// Reads every `.yaml` and `.yml` file below `folder`, in the order of their names. `shown` is how the folder is shown
/// in messages (`tests`). A single file is taken as well.
///
/// # Errors
/// When something cannot be read, and when there is no document at all.
pub fn read_folder(folder: &Path, shown: &Path) -> Result<Vec<CaseFile>, FolderError> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        let below = path.strip_prefix(folder).unwrap_or(&path);
        let (below, shown) = match below.file_name() {
            Some(_) => (below, shown.join(below)),
            None => (path.as_path(), shown.to_owned()),
        };
        let name = below
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/");
        files.push(CaseFile {
            name,
            cases: read(&shown, &text),
            text,
        });
    }
    if files.iter().all(|file| file.cases.is_empty()) {
        return Err(FolderError::Empty {
            folder: folder.to_owned(),
        });
    }
    Ok(files)
}

fn collect(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), FolderError> {
    if !path.is_dir() {
        fs::metadata(path).map_err(|source| unreadable(path, source))?;
        paths.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|source| unreadable(path, source))? {
        let path = entry.map_err(|source| unreadable(path, source))?.path();
        let yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if path.is_dir() || yaml {
            collect(&path, paths)?;
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> FolderError {
    FolderError::Unreadable {
        path: path.to_owned(),
        source,
    }
}
