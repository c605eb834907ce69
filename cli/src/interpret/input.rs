//! The files of the command line, as a question.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use popcell_protocol::Operation;
use popcell_sdk::{
    Object,
    module::Input,
    test::{
        cases,
        yaml::{self, Node, Value},
    },
    types::Gvk,
};

use crate::{args::module::Interpret, console::Console, exit::Failure};

/// Reads what the operation needs, and refuses what it does not understand.
pub(super) fn read(args: &Interpret, console: &mut Console) -> Result<Input, Failure> {
    let Interpret {
        operation,
        desired_file,
        observed_file,
        status_file,
        desired_replica,
        ..
    } = args;
    let stdin = [desired_file, observed_file, status_file]
        .into_iter()
        .flatten()
        .filter(|file| file.as_os_str() == "-")
        .count();
    if stdin > 1 {
        return Err(usage("standard input (-) can be read once only"));
    }
    let desired = desired_file.as_deref().map(|file| object(file, console)).transpose()?;
    let observed = observed_file.as_deref().map(|file| object(file, console)).transpose()?;
    if status_file.is_some() && *operation != Operation::AggregateStatus {
        return Err(usage(format!(
            "--status-file belongs to AggregateStatus, not to {operation}"
        )));
    }
    match (operation, desired_replica) {
        (Operation::ReviseReplica, None) => return Err(usage("ReviseReplica needs --desired-replica")),
        (Operation::ReviseReplica, Some(count)) if *count < 0 => {
            return Err(usage("--desired-replica must not be negative"));
        }
        (Operation::ReviseReplica, Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            return Err(usage(format!(
                "--desired-replica belongs to ReviseReplica, not to {operation}"
            )));
        }
    }
    let (object, observed) = match (operation, desired, observed) {
        (Operation::Retain, Some(desired), Some(observed)) => (desired, Some(observed)),
        (Operation::Retain, ..) => return Err(usage("Retain needs --desired-file and --observed-file")),
        (_, Some(_), Some(_)) => {
            return Err(usage(format!(
                "{operation} takes one object: --desired-file or --observed-file"
            )));
        }
        (_, Some(object), None) | (_, None, Some(object)) => (object, None),
        (_, None, None) => {
            return Err(usage(format!(
                "{operation} needs an object: --desired-file (-f) or --observed-file"
            )));
        }
    };
    let items = status_file
        .as_deref()
        .map(|file| items(file, &object, console))
        .transpose()?
        .unwrap_or_default();
    Ok(Input {
        kind: Gvk::of(object.api_version(), object.kind()),
        object,
        observed,
        replicas: desired_replica.unwrap_or(0),
        items,
    })
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::Usage(message.into())
}

fn text(file: &Path, console: &mut Console) -> Result<String, Failure> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        console
            .stdin
            .read_to_string(&mut text)
            .map_err(|error| Failure::file("read", &PathBuf::from("standard input"), &error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))
}

fn documents(file: &Path, console: &mut Console) -> Result<Vec<Node>, Failure> {
    let text = text(file, console)?;
    let shown = file.display();
    let documents =
        yaml::documents(&text).map_err(|error| usage(format!("{shown}:{}: {}", error.at.line, error.message)))?;
    let documents: Vec<_> = documents.into_iter().filter(|document| !document.is_null()).collect();
    if documents.is_empty() {
        Err(usage(format!("{shown}: it holds no object")))
    } else {
        Ok(documents)
    }
}

/// The one Kubernetes object of a file.
pub(crate) fn object(file: &Path, console: &mut Console) -> Result<Object, Failure> {
    let shown = file.display();
    let mut documents = documents(file, console)?;
    if documents.len() > 1 {
        return Err(usage(format!(
            "{shown}: it holds {} documents; one object is expected",
            documents.len()
        )));
    }
    let Some(node) = documents.pop() else {
        return Err(usage(format!("{shown}: it holds no object")));
    };
    for key in ["apiVersion", "kind"] {
        if node.field(key).and_then(Node::text).is_none_or(str::is_empty) {
            return Err(usage(format!("{shown}:{}: the object has no {key}", node.at.line)));
        }
    }
    Object::parse(node.to_json()).map_err(|error| usage(format!("{shown}: {error}")))
}

/// Status items, read by the reader of test files: one document per item, or one list of them.
fn items(file: &Path, object: &Object, console: &mut Console) -> Result<Vec<popcell_sdk::StatusItem>, Failure> {
    let mut items = Vec::new();
    for document in documents(file, console)? {
        match document.value {
            Value::Items(list) => items.extend(list),
            _ => items.push(document),
        }
    }
    let case = Node::made_fields([
        ("name", Node::made_text("status items")),
        ("operation", Node::made_text("AggregateStatus")),
        ("desiredObj", Node::of(object)),
        ("statusItems", Node::made(Value::Items(items))),
    ]);
    match cases::read(file, &case.to_json()).pop() {
        Some(Ok(case)) => Ok(case.input.items),
        Some(Err(error)) => Err(usage(format!("{}: {}", file.display(), error.message))),
        None => Ok(Vec::new()),
    }
}
