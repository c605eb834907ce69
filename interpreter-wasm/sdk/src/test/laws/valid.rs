//! What Karmada, and the host before it, take as an answer (webhook protocol; pkg/util/interpreter/validation).

use std::collections::BTreeSet;

use crate::module::{Input, Output, Run};
use crate::{Component, Dependency, Json, Operation};

/// The answer, if there is one, is one that Karmada takes.
pub(super) fn answer(module: &dyn Run, operation: Operation, input: &Input) -> Result<(), String> {
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
pub(super) fn path(operation: Operation, path: &str) -> bool {
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
