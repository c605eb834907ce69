//! What each law asks. A rule gets one question and answers `Err` with what happened instead.
//!
//! An answer is valid as Karmada takes it, and the host before it (webhook protocol; pkg/util/interpreter/validation).

use std::collections::BTreeSet;

use crate::module::{Change, Input, Output, Run};
use crate::test::cases::{Answer, answer};
use crate::types::PatchOp;
use crate::{Component, Dependency, Error, Json, Object, Operation};

/// A law's rule and what it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    /// The operations that a kind needs; the first one is asked.
    pub(super) needs: &'static [Operation],
    pub(super) holds: fn(&dyn Run, Operation, &Input) -> Result<(), String>,
}

macro_rules! rules {
    ($($name:literal, [$($needs:ident),+], $holds:path, $says:literal;)+) => {
        /// Every law.
        pub(super) const ALL: &[Rule] = &[$(Rule {
            name: $name,
            says: $says,
            needs: &[$(Operation::$needs),+],
            holds: $holds,
        }),+];
    };
}

rules! {
    "replicas_total", [InterpretReplica], total, "an answer or an error for every object, and always the same";
    "components_total", [InterpretComponent], total, "an answer or an error for every object, and always the same";
    "revise_total", [ReviseReplica], total, "an answer or an error for every object, and always the same";
    "retain_total", [Retain], total, "an answer or an error for every object, and always the same";
    "aggregate_total", [AggregateStatus], total, "an answer or an error for every object, and always the same";
    "status_total", [InterpretStatus], total, "an answer or an error for every object, and always the same";
    "health_total", [InterpretHealth], total, "an answer or an error for every object, and always the same";
    "dependencies_total", [InterpretDependency], total, "an answer or an error for every object, and always the same";
    "replicas_valid", [InterpretReplica], valid, "Karmada can take the answer";
    "components_valid", [InterpretComponent], valid, "Karmada can take the answer";
    "dependencies_valid", [InterpretDependency], valid, "Karmada can take the answer";
    "status_is_an_object", [InterpretStatus], valid, "a status is a JSON object";
    "revise_allowed", [ReviseReplica], allowed, "the answer touches only what the host lets through";
    "retain_allowed", [Retain], allowed, "the answer touches only what the host lets through";
    "aggregate_allowed", [AggregateStatus], allowed, "the answer touches only /status";
    "revise_then_replicas", [ReviseReplica, InterpretReplica], revise_then_replicas,
        "after ReviseReplica(n), InterpretReplica answers n";
    "retain_idempotent", [Retain], idempotent, "a second Retain changes nothing";
    "retain_identity", [Retain], retain_identity, "Retain of equal objects changes nothing";
    "aggregate_idempotent", [AggregateStatus], idempotent, "the same items cause no second write";
    "aggregate_any_order", [AggregateStatus], aggregate_any_order, "the order of the items does not matter";
}

/// The answer in the words of a test file; `None` where the module answers with an error.
fn asked(module: &dyn Run, operation: Operation, input: &Input) -> Result<Option<Answer>, String> {
    module
        .run(operation, input)
        .ok()
        .map(|output| answer(operation, input, &output))
        .transpose()
}

/// The object after an answer that changes it.
fn object_after(answer: &Answer) -> Result<Object, String> {
    let text = answer.parts.first().map(|(_, part)| part.to_json()).unwrap_or_default();
    Object::parse(text).map_err(|error| format!("the changed object cannot be read: {error}"))
}

fn total(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    let first = module.run(operation, input);
    if first == Err(Error::Unsupported) {
        return Err(format!(
            "{operation} is described, but answers that it is not implemented"
        ));
    }
    let second = module.run(operation, input);
    if first == second {
        Ok(())
    } else {
        Err(format!("first {first:?}, then {second:?}"))
    }
}

fn allowed(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    let answered = module.run(operation, input);
    let Some(Change::Patch(steps)) = answered.as_ref().ok().and_then(Output::change) else {
        return Ok(());
    };
    match steps.iter().map(PatchOp::path).find(|path| !may_touch(operation, path)) {
        None => Ok(()),
        Some(path) => Err(format!("{operation} touches {path}")),
    }
}

fn revise_then_replicas(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    let old = match module.run(Operation::InterpretReplica, input) {
        Ok(Output::Replicas(found)) => i32::try_from(found.replicas).ok(),
        _ => None,
    };
    for wanted in [0, 1, 2, 1000, i32::MAX].into_iter().chain(old) {
        let question = Input {
            replicas: wanted,
            ..input.clone()
        };
        let Ok(output) = module.run(operation, &question) else {
            continue;
        };
        let after = Input {
            object: object_after(&answer(operation, &question, &output)?)?,
            ..input.clone()
        };
        match module.run(Operation::InterpretReplica, &after) {
            Ok(Output::Replicas(found)) if found.replicas == i64::from(wanted) => {}
            Ok(Output::Replicas(found)) => {
                return Err(format!(
                    "after ReviseReplica({wanted}), InterpretReplica answers {}",
                    found.replicas
                ));
            }
            Ok(other) => return Err(format!("InterpretReplica answers {other:?}")),
            Err(Error::InvalidObject { path, .. }) if !touches(&output, &path) => {}
            Err(error) => {
                return Err(format!(
                    "after ReviseReplica({wanted}), InterpretReplica fails: {error}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether the answer wrote at, above or below this path. What it did not write was odd before.
fn touches(output: &Output, path: &str) -> bool {
    let Some(Change::Patch(steps)) = output.change() else {
        return false;
    };
    let within = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    steps
        .iter()
        .any(|step| within(path, step.path()) || within(step.path(), path))
}

/// The answer, given back as the object, changes nothing.
fn idempotent(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    let Some(first) = asked(module, operation, input)? else {
        return Ok(());
    };
    let again = Input {
        object: object_after(&first)?,
        ..input.clone()
    };
    let second = module
        .run(operation, &again)
        .map_err(|error| format!("the second {operation} fails: {error}"))?;
    match second.change() {
        Some(Change::Unchanged) => Ok(()),
        Some(Change::Patch(steps)) => {
            let paths: Vec<&str> = steps.iter().map(PatchOp::path).collect();
            Err(format!("the second {operation} still changes {}", paths.join(", ")))
        }
        None => Err(format!("the second {operation} answers {second:?}")),
    }
}

fn retain_identity(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    let equal = Input {
        observed: Some(input.object.clone()),
        ..input.clone()
    };
    match module.run(operation, &equal) {
        Ok(Output::Change(Change::Patch(steps))) => {
            let paths: Vec<&str> = steps.iter().map(PatchOp::path).collect();
            Err(format!("Retain of equal objects changes {}", paths.join(", ")))
        }
        _ => Ok(()),
    }
}

fn aggregate_any_order(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    if input.items.len() < 2 {
        return Ok(());
    }
    let meaning = |input: &Input| -> Result<Option<Json>, String> {
        asked(module, operation, input)?
            .map(|answer| object_after(&answer).map(Object::into_json))
            .transpose()
    };
    let expected = meaning(input)?;
    for turned in 1..=input.items.len() {
        let mut items = input.items.clone();
        if turned == items.len() {
            items.reverse();
        } else {
            items.rotate_left(turned);
        }
        let names: Vec<String> = items.iter().map(|item| item.cluster_name.clone()).collect();
        let got = meaning(&Input { items, ..input.clone() })?;
        if got != expected {
            let show = |answer: &Option<Json>| answer.as_ref().map_or("an error".to_owned(), Json::to_text);
            let (expected, got) = (show(&expected), show(&got));
            return Err(format!(
                "with the items in the order {}: {got}; as given: {expected}",
                names.join(", ")
            ));
        }
    }
    Ok(())
}

/// The answer, if there is one, is one that Karmada takes.
fn valid(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
    match module.run(operation, input) {
        Ok(Output::Replicas(found)) => replicas(found.replicas),
        Ok(Output::Components(found)) => components(&found),
        Ok(Output::Dependencies(found)) => found.iter().try_for_each(dependency),
        Ok(Output::Status(status)) if !status.is_object() => {
            Err(format!("the status is no JSON object: {}", status.to_text()))
        }
        _ => Ok(()),
    }
}

/// Whether an answer of the operation may touch this path.
pub(super) fn may_touch(operation: Operation, path: &str) -> bool {
    let below = |root: &str| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    if operation == Operation::AggregateStatus {
        return below("/status");
    }
    if below("/metadata") {
        let ours = |key: &str| key.split_once("~1").is_some_and(|(prefix, _)| is_karmada(prefix));
        let entry = |root| path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        let entry = entry("/metadata/labels").or_else(|| entry("/metadata/annotations"));
        return matches!(path, "/metadata/labels" | "/metadata/annotations") || entry.is_some_and(|key| !ours(key));
    }
    !path.is_empty() && !below("/apiVersion") && !below("/kind") && !below("/status")
}

fn is_karmada(prefix: &str) -> bool {
    prefix == "karmada.io" || prefix.ends_with(".karmada.io")
}

fn replicas(number: i64) -> Result<(), String> {
    match i32::try_from(number) {
        Ok(0..) => Ok(()),
        _ => Err(format!("{number} replicas: expected 0 to {}", i32::MAX)),
    }
}

fn components(found: &[Component]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for component in found {
        replicas(component.replicas).map_err(|message| format!("component {:?}: {message}", component.name))?;
        if component.name.is_empty() || component.name.chars().count() > 32 {
            return Err(format!(
                "component name {:?}: expected 1 to 32 characters",
                component.name
            ));
        }
        if !names.insert(&component.name) {
            return Err(format!("two components are named {:?}", component.name));
        }
    }
    Ok(())
}

fn dependency(found: &Dependency) -> Result<(), String> {
    let wrong = |message: &str| Err(format!("dependency {} {}: {message}", found.api_version, found.kind));
    if found.api_version.is_empty() || found.kind.is_empty() {
        return wrong("apiVersion and kind have to be there");
    }
    let unnamed = found.name.as_deref().is_none_or(str::is_empty);
    match &found.label_selector {
        None if unnamed => wrong("neither name nor labelSelector"),
        Some(selector) if unnamed && !is_selector(selector) => wrong("labelSelector is not a LabelSelector"),
        _ => Ok(()),
    }
}

/// meta/v1 LabelSelector: texts in matchLabels, key and operator in every expression.
fn is_selector(selector: &Json) -> bool {
    let labels = selector.fields("/matchLabels").map(|labels| {
        labels
            .into_iter()
            .flatten()
            .all(|(key, value)| !key.is_empty() && matches!(value.text(""), Ok(Some(_))))
    });
    let expressions = selector.items("/matchExpressions").map(|expressions| {
        expressions.unwrap_or_default().iter().all(|expression| {
            let values = expression
                .items("/values")
                .ok()
                .flatten()
                .is_some_and(|values| !values.is_empty());
            match (expression.text("/key"), expression.text("/operator")) {
                (Ok(Some(_)), Ok(Some("In" | "NotIn"))) => values,
                (Ok(Some(_)), Ok(Some("Exists" | "DoesNotExist"))) => !values,
                _ => false,
            }
        })
    });
    selector.is_object() && labels == Ok(true) && expressions == Ok(true)
}
