//! `popcell interpret`: one operation on one object, printed as `karmadactl interpret` prints it. Better than there: an
//! error ends with a code that is not zero, and an empty file is a usage error.

use std::{
    io::{Read as _, Write},
    path::Path,
};

use popcell_protocol::Operation;
use popcell_sdk::{
    Object,
    module::Input,
    test::{
        cases::{self, Answer},
        yaml::{self, Node, Value, to_yaml},
    },
    types::Gvk,
};

use crate::{
    args::{DataFormat, module::Interpret},
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::{Interpreter, Unanswered},
};

/// Runs the command.
pub fn run(args: &Interpret, console: &mut Console) -> Outcome {
    // A mistake on the command line is reported before anything is loaded or called.
    let input = read(args, console)?;
    let interpreter = Interpreter::open(&args.source)?;
    let failed = |reason: &dyn std::fmt::Display| format!("failed to execute {}: {reason}", args.operation);
    let output = interpreter.ask(args.operation, &input).map_err(|why| match why {
        Unanswered::Said(error) => Failure::Failed(failed(&error)),
        Unanswered::Broken { message, frames } if args.verbose => Failure::Module(
            frames
                .iter()
                .fold(failed(&message), |text, frame| format!("{text}\n  in {frame}")),
        ),
        Unanswered::Broken { message, .. } => Failure::Module(failed(&message)),
        Unanswered::Unreached(message) => Failure::Environment(failed(&message)),
    })?;
    let answer = cases::answer(args.operation, &input, &output).map_err(|message| Failure::Module(failed(&message)))?;
    print(&answer, args.output, &mut console.out)?;
    Ok(Exit::Success)
}

/// As `karmadactl interpret` does (its pkg/karmadactl/interpret/execute.go): for each part `---`, `# [1/2] replica:` and its YAML.
fn print(answer: &Answer, format: DataFormat, out: &mut dyn Write) -> std::io::Result<()> {
    if format == DataFormat::Json {
        return writeln!(out, "{}", answer.to_node().to_json());
    }
    let mut parts = answer.shown();
    // karmadactl says it when there are no requirements.
    if parts.first().is_some_and(|(name, _)| *name == "replica") && parts.len() == 1 {
        parts.push(("requires", Node::made(Value::Null)));
    }
    let count = parts.len();
    for (index, (name, part)) in parts.iter().enumerate() {
        write!(out, "---\n# [{}/{count}] {name}:\n{}", index + 1, to_yaml(part))?;
    }
    Ok(())
}

/// Reads what the operation needs, and refuses what it does not understand.
fn read(args: &Interpret, console: &mut Console) -> Result<Input, Failure> {
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
    let belongs = |flag: &str, other: Operation| Err(usage(format!("{flag} belongs to {other}, not to {operation}")));
    if status_file.is_some() && *operation != Operation::AggregateStatus {
        return belongs("--status-file", Operation::AggregateStatus);
    }
    match (operation, desired_replica) {
        (Operation::ReviseReplica, None) => return Err(usage("ReviseReplica needs --desired-replica")),
        (Operation::ReviseReplica, Some(..0)) => return Err(usage("--desired-replica must not be negative")),
        (Operation::ReviseReplica, Some(_)) | (_, None) => {}
        (_, Some(_)) => return belongs("--desired-replica", Operation::ReviseReplica),
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
        let read = console.stdin.read_to_string(&mut text);
        read.map_err(|error| Failure::file("read", Path::new("standard input"), &error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| Failure::file("read", file, &error))
}

/// The YAML documents of a file, or of standard input; at least one.
pub(crate) fn documents(file: &Path, console: &mut Console) -> Result<Vec<Node>, Failure> {
    let text = text(file, console)?;
    let shown = file.display();
    let documents =
        yaml::documents(&text).map_err(|error| usage(format!("{shown}:{}: {}", error.at.line, error.message)))?;
    let documents: Vec<_> = documents.into_iter().filter(|document| !document.is_null()).collect();
    if documents.is_empty() {
        return Err(usage(format!("{shown}: it holds no object")));
    }
    Ok(documents)
}

/// The one Kubernetes object of a file.
pub(crate) fn object(file: &Path, console: &mut Console) -> Result<Object, Failure> {
    let shown = file.display();
    let documents = documents(file, console)?;
    let [node] = documents.as_slice() else {
        return Err(usage(format!(
            "{shown}: it holds {} documents; one object is expected",
            documents.len()
        )));
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
