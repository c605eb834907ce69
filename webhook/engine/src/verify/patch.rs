//! Patches: they apply, and they touch nothing that is not the operation's. Of the metadata that is labels and
//! annotations, never Karmada's own.

use std::collections::BTreeMap;
use std::time::Instant;

use popcell_protocol::{MAX_DEPTH, Operation, PatchOp, kind_name, within_levels};

use super::document::{Failure, Node, Step, Work};
use super::{Objection, Violation, json, names};
use crate::compiled_module::wit;

/// Steps of one patch.
const MAX_STEPS: usize = 10_000;

/// Checks a patch of `object`; `max` is the largest one in bytes, and `deadline` the end of the call.
pub(super) fn check(
    operation: Operation,
    object: &[u8],
    steps: Vec<wit::PatchOp>,
    max: usize,
    deadline: Option<Instant>,
) -> Result<Vec<PatchOp>, Objection> {
    if steps.len() > MAX_STEPS {
        let message = format!(
            "the patch has {} steps, more than the limit of {MAX_STEPS}",
            steps.len()
        );
        return Err(Violation::new("", message).into());
    }
    let mut room = max;
    let steps = steps
        .into_iter()
        .map(|step| read(step, &mut room))
        .collect::<Result<Vec<_>, _>>()?;
    check_steps(operation, object, &steps, max - room, deadline)?;
    Ok(steps)
}

/// As [`check`], of steps that were read; `size` is their size in bytes.
pub(super) fn check_steps(
    operation: Operation,
    object: &[u8],
    steps: &[PatchOp],
    size: usize,
    deadline: Option<Instant>,
) -> Result<(), Objection> {
    let object = std::str::from_utf8(object).map_err(|_| Violation::new("", "the object is not UTF-8"))?;
    let mut document = Node::Raw(object);
    let mut work = Work::new(object.len() + size, deadline);
    for step in steps {
        check_step(operation, &mut document, step, &mut work)?;
    }
    Ok(())
}

fn read(step: wit::PatchOp, room: &mut usize) -> Result<PatchOp, Violation> {
    let mut value = |path: &str, value: Vec<u8>| {
        pay(path, path.len() + value.len(), room)?;
        json::value(path, value, usize::MAX)
    };
    Ok(match step {
        wit::PatchOp::Add(add) => PatchOp::Add {
            value: value(&add.path, add.value)?,
            path: add.path,
        },
        wit::PatchOp::Replace(replace) => PatchOp::Replace {
            value: value(&replace.path, replace.value)?,
            path: replace.path,
        },
        wit::PatchOp::Remove(path) => {
            pay(&path, path.len(), room)?;
            PatchOp::Remove { path }
        }
    })
}

fn pay(path: &str, size: usize, room: &mut usize) -> Result<(), Violation> {
    *room = room
        .checked_sub(size)
        .ok_or_else(|| Violation::new(path, "the patch is larger than the limit"))?;
    Ok(())
}

fn check_step<'a>(
    operation: Operation,
    document: &mut Node<'a>,
    step: &'a PatchOp,
    work: &mut Work,
) -> Result<(), Objection> {
    let failed = |failure| match failure {
        Failure::Refused(reason) => Violation::new(step.path(), format!("the patch does not apply: {reason}")).into(),
        Failure::TooMuchWork => Violation::new(
            step.path(),
            "the patch takes too much work to apply: its steps read too much text or move too many items of arrays",
        )
        .into(),
        Failure::Deadline => Objection::Deadline,
    };
    let path = json::pointer_steps(step.path())?;
    let action = match step {
        PatchOp::Add { value, .. } => Step::Add(value.get()),
        PatchOp::Replace { value, .. } => Step::Replace(value.get()),
        PatchOp::Remove { .. } => Step::Remove,
    };
    let objection = match operation {
        Operation::AggregateStatus => outside_status(&path, &action),
        _ => outside_template(document, &path, &action, work).map_err(failed)?,
    };
    if let Some(message) = objection {
        let message = format!("{operation} may not touch it: {message}");
        return Err(Violation::new(step.path(), message).into());
    }
    if let Step::Add(value) | Step::Replace(value) = action
        && !within_levels(value.as_bytes(), MAX_DEPTH.saturating_sub(path.len()))
    {
        let message = format!("with this value the object nests deeper than {MAX_DEPTH} levels");
        return Err(Violation::new(step.path(), message).into());
    }
    document.apply(&path, &action, work).map_err(failed)
}

fn outside_status(path: &[String], action: &Step<'_>) -> Option<String> {
    match (path, action) {
        ([first], Step::Add(value) | Step::Replace(value)) if first == "status" => match kind_name(value) {
            "an object" => None,
            found => Some(format!("a status must be a JSON object, is {found}")),
        },
        ([first, ..], _) if first == "status" => None,
        _ => Some("only /status is its own".to_owned()),
    }
}

fn outside_template<'a>(
    document: &mut Node<'a>,
    path: &[String],
    action: &Step<'a>,
    work: &mut Work,
) -> Result<Option<String>, Failure> {
    let value = match action {
        Step::Add(value) | Step::Replace(value) => Some(*value),
        Step::Remove => None,
    };
    Ok(match path.split_first() {
        None => Some("a patch may not replace the whole object".to_owned()),
        Some((first, _)) if matches!(first.as_str(), "apiVersion" | "kind" | "status") => {
            Some(format!("/{first} is not its own"))
        }
        Some((first, rest)) if first == "metadata" => {
            let present = if rest.len() == 1 {
                document.find(path, work)?
            } else {
                None
            };
            metadata_objection(rest, value, present)
        }
        Some(_) => None,
    })
}

/// Why a patch may not do this under `/metadata`, if so: `path` are the steps of the pointer after that, `value` is the
/// new JSON text there (`None` takes the place away), `present` what is there now, if anything is.
fn metadata_objection(path: &[String], value: Option<&str>, present: Option<&str>) -> Option<String> {
    let (map, rest) = match path {
        [map, rest @ ..] if map == "labels" || map == "annotations" => (map, rest),
        _ => return Some("only labels and annotations of the metadata may be touched".to_owned()),
    };
    match (rest, value) {
        ([], _) if present.is_some_and(|present| present != "null") => {
            Some(format!("the {map} are there: touch them key by key"))
        }
        ([], Some(value)) => match serde_json::from_str::<BTreeMap<String, String>>(value) {
            Ok(entries) => entries.iter().find_map(|(key, value)| entry(map, key, Some(value))),
            Err(error) => Some(format!("{map} must be an object of strings: {error}")),
        },
        ([], None) => Some(format!("the {map} may not be taken away")),
        ([key], Some(value)) => match serde_json::from_str::<String>(value) {
            Ok(value) => entry(map, key, Some(&value)),
            Err(_) => Some("its value must be a string".to_owned()),
        },
        ([key], None) => entry(map, key, None),
        _ => Some(format!("{map} are strings and have nothing inside")),
    }
}

fn entry(map: &str, key: &str, value: Option<&str>) -> Option<String> {
    if key
        .split_once('/')
        .is_some_and(|(domain, _)| names::is_karmadas(domain))
    {
        return Some(format!("{key:?} is Karmada's"));
    }
    // Taking a wrong key away is no harm.
    let value = value?;
    if !names::is_qualified_name(&key.to_ascii_lowercase()) {
        return Some(format!("{key:?} is no valid key"));
    }
    (map == "labels" && !names::is_label_value(value)).then(|| format!("the value of {key:?} is no label value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"example.io/v1","kind":"Widget",
        "metadata":{"name":"a","labels":{"app":"x"},"managedFields":[{"a":{"b":{}}}]},
        "spec":{"replicas":1,"list":[1,2],"none":null}}"#;

    fn add(path: &str, value: &str) -> wit::PatchOp {
        wit::PatchOp::Add(wit::PathValue {
            path: path.into(),
            value: value.into(),
        })
    }

    fn replace(path: &str, value: &str) -> wit::PatchOp {
        wit::PatchOp::Replace(wit::PathValue {
            path: path.into(),
            value: value.into(),
        })
    }

    fn remove(path: &str) -> wit::PatchOp {
        wit::PatchOp::Remove(path.into())
    }

    fn checked(operation: Operation, steps: Vec<wit::PatchOp>) -> Result<(), (String, String)> {
        check(operation, OBJECT.as_bytes(), steps, 1000, None)
            .map(drop)
            .map_err(broken)
    }

    fn broken(objection: Objection) -> (String, String) {
        match objection {
            Objection::Violation(violation) => (violation.path, violation.message),
            Objection::Deadline => panic!("there was no deadline"),
        }
    }

    #[track_caller]
    fn refused(operation: Operation, steps: Vec<wit::PatchOp>, path: &str, message: &str) {
        let (found, why) = checked(operation, steps).unwrap_err();
        assert_eq!(found, path);
        assert!(why.contains(message), "{why} does not say {message}");
    }

    #[test]
    fn patches_that_apply() {
        use Operation::{AggregateStatus, Retain, ReviseReplica};
        assert_eq!(checked(ReviseReplica, vec![replace("/spec/replicas", "2")]), Ok(()));
        assert_eq!(checked(ReviseReplica, vec![]), Ok(()));
        assert_eq!(
            checked(
                AggregateStatus,
                vec![add("/status", r#"{"a":1}"#), replace("/status/a", "2")]
            ),
            Ok(())
        );
        let steps = vec![
            add("/spec/new", "{}"),
            add("/spec/new/deep", "[]"),
            add("/spec/new/deep/-", "1"),
            add("/spec/list/2", "3"),
            remove("/spec/list/0"),
            replace("/spec/list/1", "9"),
            remove("/spec/none"),
            add("/metadata/labels/b", r#""c""#),
            add("/metadata/annotations", r#"{"a":"b"}"#),
        ];
        assert_eq!(checked(Retain, steps), Ok(()));
    }

    #[test]
    fn parents_must_be_there() {
        use Operation::{AggregateStatus, ReviseReplica};
        refused(
            AggregateStatus,
            vec![add("/status/a", "1")],
            "/status/a",
            "\"status\", on the way, does not exist",
        );
        refused(
            ReviseReplica,
            vec![replace("/spec/x", "1")],
            "/spec/x",
            "does not exist",
        );
        refused(ReviseReplica, vec![remove("/spec/x")], "/spec/x", "does not exist");
        refused(
            ReviseReplica,
            vec![add("/spec/none/a", "1")],
            "/spec/none/a",
            "its parent is null",
        );
        refused(
            ReviseReplica,
            vec![add("/spec/replicas/a", "1")],
            "/spec/replicas/a",
            "its parent is a number",
        );
        for index in ["3", "01", "-1", "x", ""] {
            let path = format!("/spec/list/{index}");
            refused(ReviseReplica, vec![add(&path, "1")], &path, "no position");
        }
        refused(
            ReviseReplica,
            vec![remove("/spec/list/-")],
            "/spec/list/-",
            "no position",
        );
        refused(
            ReviseReplica,
            vec![remove("/spec/list"), add("/spec/list/0", "1")],
            "/spec/list/0",
            "on the way",
        );
    }

    #[test]
    fn only_what_is_the_operations_own() {
        use Operation::{AggregateStatus, Retain, ReviseReplica};
        for path in ["/spec/replicas", "/metadata/labels/app", ""] {
            refused(AggregateStatus, vec![replace(path, "1")], path, "only /status");
        }
        refused(AggregateStatus, vec![add("/status", "[]")], "/status", "is an array");
        for operation in [Retain, ReviseReplica] {
            for path in ["/apiVersion", "/kind", "/status", "/status/x"] {
                refused(operation, vec![add(path, "1")], path, "not its own");
            }
            for path in ["/metadata", "/metadata/name", "/metadata/finalizers/0"] {
                refused(operation, vec![add(path, "1")], path, "only labels and annotations");
            }
            refused(operation, vec![replace("", "{}")], "", "whole object");
            refused(
                operation,
                vec![add("/metadata/labels", "{}")],
                "/metadata/labels",
                "key by key",
            );
            refused(
                operation,
                vec![add("/metadata/labels/karmada.io~1x", "\"y\"")],
                "/metadata/labels/karmada.io~1x",
                "Karmada's",
            );
        }
    }

    #[test]
    fn sizes_and_values() {
        let large = format!("\"{}\"", "x".repeat(1000));
        refused(
            Operation::Retain,
            vec![add("/spec/a", &large)],
            "/spec/a",
            "larger than the limit",
        );
        refused(Operation::Retain, vec![add("/spec/a", "{")], "/spec/a", "no JSON");
        refused(
            Operation::Retain,
            vec![remove("/spec/replicas"); MAX_STEPS + 1],
            "",
            "10001 steps",
        );
        refused(Operation::Retain, vec![remove("spec")], "spec", "must begin with /");
    }

    #[test]
    fn a_path_below_an_empty_key_leads_elsewhere_in_karmada() {
        for path in ["//metadata/name", "/spec//replicas", "/metadata//labels/karmada.io~1x"] {
            refused(Operation::Retain, vec![add(path, "1")], path, "empty key");
        }
        refused(
            Operation::AggregateStatus,
            vec![remove("/status//a")],
            "/status//a",
            "empty key",
        );
        assert_eq!(checked(Operation::Retain, vec![add("/spec/", "1")]), Ok(()));
    }

    #[test]
    fn an_object_never_becomes_deeper_than_one_that_is_read() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let fits = nested(MAX_DEPTH - 2);
        assert_eq!(checked(Operation::Retain, vec![add("/spec/a", &fits)]), Ok(()));
        let deeper = nested(MAX_DEPTH - 1);
        refused(
            Operation::Retain,
            vec![add("/spec/a", &deeper)],
            "/spec/a",
            "deeper than 64 levels",
        );
        refused(
            Operation::Retain,
            vec![add("/spec/a", &nested(MAX_DEPTH + 1))],
            "/spec/a",
            "deeper than 64 levels",
        );
    }

    /// `steps` inserts at the front of an array of `items`.
    fn inserts(items: usize, steps: usize, deadline: Option<Instant>) -> Result<(), Objection> {
        let object = format!(r#"{{"spec":{{"list":[0{}]}}}}"#, ",0".repeat(items - 1));
        let steps = vec![add("/spec/list/0", "1"); steps];
        check(Operation::Retain, object.as_bytes(), steps, 3 << 20, deadline).map(drop)
    }

    #[test]
    fn work_is_bounded_by_steps_times_moved_items() {
        let (path, message) = broken(inserts(700_000, MAX_STEPS, None).unwrap_err());
        assert_eq!(path, "/spec/list/0");
        assert!(message.contains("too much work"), "{message}");
        // As many steps where little moves, and many items that move once.
        assert!(inserts(1000, 1000, None).is_ok());
        assert!(inserts(700_000, 10, None).is_ok());
    }

    #[test]
    fn texts_that_are_read_again_and_again_are_work_too() {
        // Every step puts a large text back and reads it.
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
        let object = format!(r#"{{"spec":{{"a":{large}}}}}"#);
        let steps = vec![add("/spec/a/b", "1"); 1000];
        assert!(check(Operation::Retain, object.as_bytes(), steps, 3 << 20, None).is_ok());
        let mut deep = large;
        for _ in 0..60 {
            deep = format!(r#"{{"a":{deep}}}"#);
        }
        let object = format!(r#"{{"spec":{deep}}}"#);
        let steps = vec![add(&format!("/spec{}/b", "/a".repeat(60)), "1")];
        let (_, message) = broken(check(Operation::Retain, object.as_bytes(), steps, 3 << 20, None).unwrap_err());
        assert!(message.contains("too much work"), "{message}");
    }

    #[test]
    fn the_deadline_of_the_call_ends_the_check() {
        let over = Instant::now().checked_sub(std::time::Duration::from_secs(1));
        assert!(matches!(inserts(700_000, MAX_STEPS, over), Err(Objection::Deadline)));
        // What takes no time worth mentioning is finished.
        assert!(inserts(10, 10, over).is_ok());
    }

    fn objection_to(path: &[&str], value: Option<&str>, present: Option<&str>) -> Option<String> {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        metadata_objection(&path, value, present)
    }

    #[test]
    fn whole_maps_only_where_there_is_none() {
        let map = Some(r#"{"a":"b"}"#);
        assert_eq!(objection_to(&["labels"], map, None), None);
        assert_eq!(objection_to(&["annotations"], map, Some("null")), None);
        assert!(
            objection_to(&["labels"], map, Some("{}"))
                .unwrap()
                .contains("key by key")
        );
        assert!(
            objection_to(&["labels"], None, Some(r#"{"a":"b"}"#))
                .unwrap()
                .contains("key by key")
        );
        assert!(
            objection_to(&["labels"], Some(r#"{"a":1}"#), None)
                .unwrap()
                .contains("object of strings")
        );
    }

    #[test]
    fn karmadas_keys_are_its_own() {
        for key in [
            "karmada.io/managed",
            "work.karmada.io/name",
            "resourcetemplate.karmada.io/uid",
        ] {
            for value in [Some(r#""x""#), None] {
                assert!(
                    objection_to(&["annotations", key], value, None)
                        .unwrap()
                        .contains("Karmada's")
                );
            }
        }
        let map = r#"{"ok":"1","policy.karmada.io/x":"y"}"#;
        assert!(
            objection_to(&["labels"], Some(map), None)
                .unwrap()
                .contains("Karmada's")
        );
        assert_eq!(objection_to(&["labels", "notkarmada.io/a"], Some(r#""x""#), None), None);
    }

    #[test]
    fn nothing_else() {
        for path in [&[][..], &["name"], &["ownerReferences", "0"], &["labels", "a", "b"]] {
            assert!(objection_to(path, Some(r#""x""#), None).is_some(), "{path:?}");
        }
        assert!(
            objection_to(&["labels", "a"], Some("1"), None)
                .unwrap()
                .contains("string")
        );
        assert!(
            objection_to(&["labels", "a"], Some(r#""b c""#), None)
                .unwrap()
                .contains("label value")
        );
        assert_eq!(objection_to(&["annotations", "a"], Some(r#""b c""#), None), None);
        assert!(
            objection_to(&["annotations", "a b"], Some(r#""x""#), None)
                .unwrap()
                .contains("valid key")
        );
    }
}
