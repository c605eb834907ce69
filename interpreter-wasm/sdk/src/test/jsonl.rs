//! Results as JSON lines, for a program that compares two runs of one file (native and WebAssembly).

use super::cases::{Answer, Case, CaseError};
use super::yaml::{Node, Value};
use crate::Error;

/// What came back, as one JSON object in canonical order: `{"answer": {...}}`, with `"unchanged"` where it applies, or
/// `{"error": {"type": ..., "message": ..., "path": ...}}`.
pub fn answered(answered: &Result<Answer, Error>) -> Node {
    match answered {
        Ok(answer) => {
            let mut fields = vec![("answer", answer.to_node())];
            fields.extend(
                answer
                    .unchanged
                    .map(|unchanged| ("unchanged", Node::made(Value::Bool(unchanged)))),
            );
            Node::made_fields(fields)
        }
        Err(error) => Node::made_fields([("error", self::error(error))]),
    }
    .sorted()
}

fn error(error: &Error) -> Node {
    let fields =
        |kind: &str, message: &str| vec![("type", Node::made_text(kind)), ("message", Node::made_text(message))];
    Node::made_fields(match error {
        Error::InvalidObject { path, message } => {
            let mut fields = fields("invalid-object", message);
            fields.push(("path", Node::made_text(path)));
            fields
        }
        Error::Undecided(reason) => fields("undecided", reason),
        Error::Unsupported => fields("unsupported", &error.to_string()),
        Error::Failed(message) => fields("failed", message),
    })
}

/// One line for a case: `file`, `document` (from 1), `name`, `operation`, `ok` (as expected) and what came back.
pub fn line(case: &Case, outcome: &Result<Answer, Error>, ok: bool) -> String {
    let mut fields = vec![
        ("file".to_owned(), Node::made_text(case.file.display().to_string())),
        (
            "document".to_owned(),
            Node::made(Value::Number(case.document.to_string())),
        ),
        ("name".to_owned(), Node::made_text(&case.name)),
        ("operation".to_owned(), Node::made_text(case.operation.as_str())),
        ("ok".to_owned(), Node::made(Value::Bool(ok))),
    ];
    if let Value::Fields(came) = answered(outcome).value {
        fields.extend(came.into_iter().map(|field| (field.key, field.value)));
    }
    Node::made_fields(fields).to_json()
}

/// One line for a document that is not a test.
pub fn unreadable(error: &CaseError) -> String {
    let came = [
        ("type", Node::made_text("unreadable")),
        ("message", Node::made_text(error.to_string())),
    ];
    Node::made_fields([
        ("file", Node::made_text(error.file.display().to_string())),
        ("ok", Node::made(Value::Bool(false))),
        ("error", Node::made_fields(came)),
    ])
    .to_json()
}
