//! Asks a module what a case asks, and judges the answer. When it is the expected one is said by Karmada's rules (`deepEqual`
//! in thirdparty_test.go).

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::answer::{Answer, answer};
use super::{Case, Expected};
use crate::module::Run;
use crate::test::yaml::{Field, Node, Position, Value, to_yaml};
use crate::{Error, Quantity};

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
                    format!("leftOut: expected {expected} parts of the statuses to be dropped, got {got}"),
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

/// The value that leaves a field out of the comparison.
const EXCLUDE: &str = "{{EXCLUDE}}";

/// The expected part and the answer's, both in canonical order and without what is not compared; `None` when they are
/// equal.
fn difference(key: &str, expected: &Node, got: &Node) -> Option<(Node, Node)> {
    let (mut expected, mut got) = (expected.clone(), got.clone());
    match key {
        "requires" => align_requirements(&mut expected, &mut got),
        "components" => {
            sort_items(&mut expected, &["name"]);
            sort_items(&mut got, &["name"]);
            if let (Value::Items(expected), Value::Items(got)) = (&mut expected.value, &mut got.value) {
                expected
                    .iter_mut()
                    .zip(got)
                    .for_each(|(expected, got)| align_component(expected, got));
            }
        }
        "dependencies" => {
            for side in [&mut expected, &mut got] {
                without_empty(side);
                sort_items(side, &["apiVersion", "kind", "namespace", "name"]);
            }
        }
        _ => leave_out_excluded(&mut expected, &mut got),
    }
    let (expected, got) = (expected.sorted(), got.sorted());
    if same(&expected, &got) {
        None
    } else {
        Some((expected, got))
    }
}

/// Equal in JSON's types; floats by value, integers by digits (`2` is not `2.0`: Karmada refuses the second).
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => {
            let float = |digits: &str| digits.contains(['.', 'e', 'E']);
            one == other || (float(one) && float(other) && one.parse::<f64>() == other.parse::<f64>())
        }
        (Value::Items(one), Value::Items(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Fields(one), Value::Fields(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| one.key == other.key && same(&one.value, &other.value))
        }
        _ => false,
    }
}

/// Takes the fields that are written as `{{EXCLUDE}}` out of both sides.
fn leave_out_excluded(expected: &mut Node, got: &mut Node) {
    match (&mut expected.value, &mut got.value) {
        (Value::Fields(expected), Value::Fields(got)) => {
            let excluded = |field: &Field| field.value.text() == Some(EXCLUDE);
            got.retain(|got| !expected.iter().any(|field| field.key == got.key && excluded(field)));
            expected.retain(|field| !excluded(field));
            for field in expected {
                if let Some(other) = got.iter_mut().find(|other| other.key == field.key) {
                    leave_out_excluded(&mut field.value, &mut other.value);
                }
            }
        }
        (Value::Items(expected), Value::Items(got)) => {
            expected
                .iter_mut()
                .zip(got)
                .for_each(|(expected, got)| leave_out_excluded(expected, got));
        }
        _ => {}
    }
}

fn align_component(expected: &mut Node, got: &mut Node) {
    let requirements = |side| field_mut(side, "replicaRequirements");
    if let (Some(expected), Some(got)) = (requirements(expected), requirements(got)) {
        align_requirements(expected, got);
    }
    without_empty(expected);
    without_empty(got);
}

fn field_mut<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Value::Fields(fields) = &mut node.value else {
        return None;
    };
    let field = fields.iter_mut().find(|field| field.key == key)?;
    Some(&mut field.value)
}

/// Leaves out what is empty, and writes equal amounts in the words of the expectation.
fn align_requirements(expected: &mut Node, got: &mut Node) {
    without_empty(expected);
    without_empty(got);
    let (Some(expected), Some(got)) = (expected.field("resourceRequest"), field_mut(got, "resourceRequest")) else {
        return;
    };
    let Value::Fields(amounts) = &mut got.value else {
        return;
    };
    for amount in amounts {
        if let Some(expected) = expected.field(&amount.key)
            && quantity(expected).is_some_and(|expected| Some(expected) == quantity(&amount.value))
        {
            amount.value = expected.clone();
        }
    }
}

fn quantity(node: &Node) -> Option<Quantity> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => text.parse().ok(),
        _ => None,
    }
}

/// Takes out what Go's `omitempty` would not write: nothing, empty text, empty lists and mappings.
fn without_empty(node: &mut Node) {
    match &mut node.value {
        Value::Fields(fields) => {
            for field in fields.iter_mut() {
                without_empty(&mut field.value);
            }
            fields.retain(|field| match &field.value.value {
                Value::Null => false,
                Value::Text(text) => !text.is_empty(),
                Value::Items(items) => !items.is_empty(),
                Value::Fields(fields) => !fields.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            });
        }
        Value::Items(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// Orders a list by the text of these fields, and by all of it where they are equal.
fn sort_items(node: &mut Node, keys: &[&str]) {
    let Value::Items(items) = &mut node.value else { return };
    items.sort_by_cached_key(|item| {
        let text = |key: &&str| item.field(key).and_then(Node::text).unwrap_or_default().to_owned();
        (keys.iter().map(text).collect::<Vec<_>>(), item.sorted().to_json())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::yaml::documents;

    fn differs(key: &str, expected: &str, got: &str) -> bool {
        let node = |text: &str| documents(text).unwrap().remove(0);
        difference(key, &node(expected), &node(got)).is_some()
    }

    #[test]
    fn quantities_compare_by_amount() {
        assert!(!differs(
            "requires",
            "{resourceRequest: {cpu: 0.5, memory: 1Gi}}",
            "{resourceRequest: {cpu: 500m, memory: '1073741824'}, nodeClaim: {}}"
        ));
        assert!(differs(
            "requires",
            "{resourceRequest: {cpu: 0.5}}",
            "{resourceRequest: {cpu: 501m}}"
        ));
        assert!(differs(
            "requires",
            "{resourceRequest: {cpu: 1}}",
            "{resourceRequest: {cpu: 1, memory: 1}}"
        ));
        assert!(!differs(
            "components",
            "[{name: b, replicas: 1}, {name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: '1'}}}]",
            "[{name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 1000m}}}, {name: b, replicas: 1}]"
        ));
    }

    #[test]
    fn dependencies_compare_in_any_order() {
        assert!(!differs(
            "dependencies",
            "[{apiVersion: v1, kind: Secret, name: a}, {apiVersion: v1, kind: ConfigMap, name: z}]",
            "[{apiVersion: v1, kind: ConfigMap, name: z}, {apiVersion: v1, kind: Secret, name: a, namespace: ''}]"
        ));
        assert!(differs(
            "dependencies",
            "[{apiVersion: v1, kind: Secret, name: a}]",
            "[]"
        ));
    }

    #[test]
    fn excluded_fields_are_skipped_by_path() {
        assert!(!differs(
            "revised",
            "{a: '{{EXCLUDE}}', b: [{c: '{{EXCLUDE}}', d: 1}]}",
            "{a: 5, b: [{c: 7, d: 1}]}"
        ));
        assert!(!differs("revised", "{a: '{{EXCLUDE}}', b: 1}", "{b: 1}"));
        assert!(differs("revised", "{x: {a: '{{EXCLUDE}}'}, a: 1}", "{x: {a: 2}, a: 2}"));
    }

    #[test]
    fn other_values_compare_as_json() {
        assert!(!differs("status", "{a: 1, b: 1.50}", "{b: 1.5, a: 1}"));
        assert!(differs("status", "{a: 2}", "{a: 2.0}"));
        assert!(differs("status", "{a: 9007199254740993}", "{a: 9007199254740992}"));
        assert!(differs("status", "{a: '1'}", "{a: 1}"));
        assert!(differs("status", "{a: []}", "{}"));
    }
}
