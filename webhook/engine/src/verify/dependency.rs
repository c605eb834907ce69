//! Dependencies, by the rules of Karmada's pkg/util/interpreter/validation/validation.go.

use std::collections::BTreeMap;
use std::fmt;

use popcell_protocol::{Answer, Dependency};
use serde::Deserialize;

use super::replicas::bounded;
use super::{Violation, json, names};
use crate::compiled_module::wit;

/// The largest selector, in bytes.
const MAX_SELECTOR: usize = 64 << 10;
/// The longest name of an object, in bytes (apimachinery, api/validation/path: what fits one step of a URL).
const MAX_NAME: usize = 253;

pub(super) fn check(answer: Vec<wit::Dependency>) -> Result<Answer, Violation> {
    bounded("/dependencies", answer.len())?;
    let each = answer
        .into_iter()
        .enumerate()
        .map(|(index, found)| one(format_args!("/dependencies/{index}"), found));
    each.collect::<Result<_, _>>().map(Answer::Dependencies)
}

fn one(path: fmt::Arguments<'_>, found: wit::Dependency) -> Result<Dependency, Violation> {
    let wrong = |field: &str, message: String| Err(Violation::new(format_args!("{path}/{field}"), message));
    for (field, value) in [("apiVersion", &found.api_version), ("kind", &found.kind)] {
        if value.is_empty() {
            return wrong(field, "is empty".to_owned());
        }
    }
    let is_version = match found.api_version.split_once('/') {
        Some((group, version)) => names::is_dns_subdomain(group) && names::is_dns_label(version),
        None => names::is_dns_label(&found.api_version),
    };
    if !is_version {
        return wrong("apiVersion", format!("{:?} is no group/version", found.api_version));
    }
    if !names::is_dns_label(&found.kind.to_ascii_lowercase()) {
        return wrong("kind", format!("{:?} is no kind", found.kind));
    }
    let name = found.name.filter(|name| !name.is_empty());
    let is_name = |name: &String| name.len() <= MAX_NAME && !name.contains(['/', '%']);
    if !name.as_ref().is_none_or(is_name) {
        return wrong("name", "is no name of an object".to_owned());
    }
    if name.is_none() && found.label_selector.is_none() {
        return Err(Violation::new(path, "has neither name nor labelSelector"));
    }
    let namespace = found.namespace.filter(|namespace| !namespace.is_empty());
    if !namespace.as_deref().is_none_or(names::is_dns_label) {
        return wrong("namespace", "is no name of a namespace".to_owned());
    }
    let selector = |bytes| {
        let path = format_args!("{path}/labelSelector");
        let value = json::object(path, bytes, MAX_SELECTOR)?;
        let selector: LabelSelector = json::typed(path, &value)?;
        match selector.objection() {
            Some(message) => Err(Violation::new(path, message)),
            None => Ok(value),
        }
    };
    let label_selector = found.label_selector.map(selector).transpose()?;
    Ok(Dependency {
        api_version: found.api_version,
        kind: found.kind,
        namespace,
        name,
        label_selector,
    })
}

/// meta/v1 LabelSelector.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Requirement>>,
}

#[derive(Deserialize)]
struct Requirement {
    #[serde(default)]
    key: String,
    #[serde(default)]
    operator: String,
    values: Option<Vec<String>>,
}

impl LabelSelector {
    fn objection(&self) -> Option<String> {
        let labels = self
            .match_labels
            .iter()
            .flatten()
            .map(|(key, value)| (key, std::slice::from_ref(value)));
        let requirements = self.match_expressions.iter().flatten();
        let listed = requirements
            .clone()
            .map(|requirement| (&requirement.key, requirement.values.as_deref().unwrap_or_default()));
        for (key, values) in labels.chain(listed) {
            if !names::is_qualified_name(key) {
                return Some(format!("{key:?} is no label key"));
            }
            if let Some(value) = values.iter().find(|value| !names::is_label_value(value)) {
                return Some(format!("{value:?} is no label value"));
            }
        }
        requirements.clone().find_map(Requirement::objection)
    }
}

impl Requirement {
    fn objection(&self) -> Option<String> {
        let is_empty = self.values.as_ref().is_none_or(Vec::is_empty);
        match self.operator.as_str() {
            "In" | "NotIn" if is_empty => Some(format!("{} of {:?} needs values", self.operator, self.key)),
            "Exists" | "DoesNotExist" if !is_empty => {
                Some(format!("{} of {:?} has no values", self.operator, self.key))
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
            other => Some(format!("{other:?} is no operator")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(change: impl FnOnce(&mut wit::Dependency)) -> Result<(), String> {
        let mut dependency = wit::Dependency {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("ns".into()),
            name: Some("a".into()),
            label_selector: None,
        };
        change(&mut dependency);
        check(vec![dependency])
            .map(drop)
            .map_err(|violation| format!("{}: {}", violation.path, violation.message))
    }

    fn selected(json: &str) -> Result<(), String> {
        checked(|dependency| dependency.label_selector = Some(json.into()))
    }

    #[test]
    fn as_karmada_validates() {
        assert_eq!(checked(|_| ()), Ok(()));
        assert_eq!(
            checked(|d| d.kind.clear()).unwrap_err(),
            "/dependencies/0/kind: is empty"
        );
        assert_eq!(
            checked(|d| d.api_version.clear()).unwrap_err(),
            "/dependencies/0/apiVersion: is empty"
        );
        assert!(checked(|d| d.api_version = "a/b/c".into()).is_err());
        assert!(
            checked(|d| d.name = None)
                .unwrap_err()
                .contains("neither name nor labelSelector")
        );
        assert!(checked(|d| d.name = Some(String::new())).is_err());
        assert!(checked(|d| d.namespace = Some("A b".into())).is_err());
        assert!(
            checked(|d| d.kind = "Config Map".into())
                .unwrap_err()
                .contains("is no kind")
        );
        for name in ["a/b".to_owned(), "a".repeat(MAX_NAME + 1)] {
            assert!(
                checked(|d| d.name = Some(name))
                    .unwrap_err()
                    .contains("no name of an object")
            );
        }
        assert_eq!(checked(|d| d.name = Some("system:node".into())), Ok(()));
    }

    #[test]
    fn selectors_are_valid() {
        assert_eq!(selected(r#"{"matchLabels":{"a":"b"}}"#), Ok(()));
        assert_eq!(
            selected(r#"{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#),
            Ok(())
        );
        assert_eq!(selected("{}"), Ok(()));
        for wrong in [
            "[]",
            r#"{"matchLabels":{"a":1}}"#,
            r#"{"matchLabels":{"a b":"c"}}"#,
            r#"{"matchLabels":{"a":"b c"}}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}"#,
            r#"{"matchExpressions":[{"key":"a","operator":"Near"}]}"#,
        ] {
            assert!(selected(wrong).is_err(), "{wrong}");
        }
    }
}
