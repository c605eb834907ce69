//! Asks a module what a case asks, and judges the answer.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::answer::{Answer, answer};
use super::compare::difference;
use super::{Case, Expected};
use crate::Error;
use crate::module::Run;
use crate::test::yaml::{Node, Position, to_yaml};

/// Why a case does not pass.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The place in the file that it is about.
    pub at: Position,
    /// One line.
    pub message: String,
    /// The expected text and the one that came, both YAML in canonical order.
    pub difference: Option<(String, String)>,
}

/// Runs a case. The first part is what came back, also when it is not what was expected.
pub fn check(case: &Case, module: &dyn Run) -> (Result<Answer, Error>, Result<(), Failure>) {
    let output = match guarded(|| module.run(case.operation, &case.input)) {
        Ok(output) => output,
        Err(message) => return (Err(Error::failed(message.clone())), fail(case.at, message)),
    };
    let answered = match output {
        Ok(output) => match answer(case.operation, &case.input, &output) {
            Ok(answer) => Ok(answer),
            Err(message) => return (Err(Error::failed(message.clone())), fail(case.at, message)),
        },
        Err(error) => Err(error),
    };
    let verdict = judge(case, &answered);
    (answered, verdict)
}

fn judge(case: &Case, answered: &Result<Answer, Error>) -> Result<(), Failure> {
    match (&case.expected, answered) {
        (
            Expected::Answer {
                parts,
                unchanged,
                left_out,
            },
            Ok(answer),
        ) => {
            if let (Some(expected), Some(got)) = (unchanged, answer.unchanged)
                && *expected != got
            {
                return changed(case, answer, got);
            }
            if let (Some(expected), Some(got)) = (left_out, answer.left_out)
                && *expected != got
            {
                return fail(
                    output(case),
                    format!("leftOut: expected {expected} parts of the statuses to be left out, got {got}"),
                );
            }
            parts.iter().try_for_each(|part| match answer.part(&part.key) {
                None => fail(part.at, format!("{}: expected, but the answer has none", part.key)),
                Some(got) => match difference(&part.key, &part.value, got) {
                    None => Ok(()),
                    Some((expected, got)) => Err(Failure {
                        at: part.at,
                        message: format!("{}: expected another answer", part.key),
                        difference: Some((to_yaml(&expected), to_yaml(&got))),
                    }),
                },
            })
        }
        (Expected::Error(part), Err(Error::Undecided(reason))) => fail(
            output(case),
            format!("expected an error with {part:?}, got undecided: {reason}"),
        ),
        (Expected::Error(part), Err(error)) => {
            let text = error.to_string();
            if text.contains(part) {
                Ok(())
            } else {
                fail(output(case), format!("expected an error with {part:?}, got: {text}"))
            }
        }
        (Expected::Undecided(part), Err(Error::Undecided(reason))) if reason.contains(part) => Ok(()),
        (Expected::Undecided(part), Err(error)) => {
            fail(output(case), format!("expected undecided with {part:?}, got: {error}"))
        }
        (Expected::Answer { .. }, Err(error)) => fail(place_of(case, error), reported(case, error)),
        (Expected::Error(_) | Expected::Undecided(_), Ok(answer)) => Err(Failure {
            at: output(case),
            message: "expected no answer, got one".to_owned(),
            difference: Some((to_yaml(output_node(case)), to_yaml(&answer.to_node().sorted()))),
        }),
    }
}

fn changed(case: &Case, answer: &Answer, unchanged: bool) -> Result<(), Failure> {
    if unchanged {
        return fail(output(case), "expected a changed object, got the one that was given");
    }
    let before = Node::of(&case.input.object).sorted();
    let after = answer
        .parts
        .first()
        .map(|(_, part)| to_yaml(&part.sorted()))
        .unwrap_or_default();
    Err(Failure {
        at: output(case),
        message: "expected the object unchanged".to_owned(),
        difference: Some((to_yaml(&before), after)),
    })
}

fn reported(case: &Case, error: &Error) -> String {
    match error {
        Error::Unsupported => {
            let kind = &case.input.kind;
            format!(
                "the module does not implement {} for {}/{}",
                case.operation,
                kind.api_version(),
                kind.kind
            )
        }
        other => other.to_string(),
    }
}

/// The place in the file that an error's path names: the deepest value on it that is written.
pub fn place_of(case: &Case, error: &Error) -> Position {
    let Error::InvalidObject { path, .. } = error else {
        return case.at;
    };
    let observed = case.source.field("observedObj").filter(|node| !node.is_null());
    let desired = case.source.field("desiredObj").filter(|node| !node.is_null());
    let (root, path) = if let Some(rest) = path.strip_prefix("/aggregatedStatus") {
        (case.source.field("statusItems"), rest)
    } else if let Some(rest) = path.strip_prefix("/observedObject") {
        (observed, rest)
    } else {
        (desired.or(observed), path.as_str())
    };
    root.map_or(case.at, |root| root.nearest(path).at)
}

fn output_node(case: &Case) -> &Node {
    case.source.field("output").unwrap_or(&case.source)
}

fn output(case: &Case) -> Position {
    output_node(case).at
}

fn fail<T>(at: Position, message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        at,
        message: message.into(),
        difference: None,
    })
}

thread_local! {
    /// What the last guarded panic said; `Some` while this thread is inside [`guarded`].
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Calls `call`; a panic in it becomes a message that says what it said and where. In WebAssembly it would be a trap: the
/// module's fault, and no reason to stop the other tests or to fill the screen.
pub(in crate::test) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let taken = LAST.with_borrow_mut(|last| last.as_mut().map(|last| *last = panic_message(info)).is_some());
            if !taken {
                previous(info);
            }
        }));
    });
    LAST.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let said = LAST.take().unwrap_or_default();
    result.map_err(|_| format!("panicked ({said}); in WebAssembly this is a trap"))
}

fn panic_message(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("without a message");
    match info.location() {
        Some(place) => format!("{message} at {}:{}", place.file(), place.line()),
        None => message.to_owned(),
    }
}
