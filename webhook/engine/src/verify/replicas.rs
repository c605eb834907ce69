//! Replicas, what one of them needs, and components.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use popcell_protocol::{Answer, Component, NodeClaim, Replicas, Requirements};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Violation, json, names};
use crate::compiled_module::wit;

/// Parts of one list in an answer.
pub(super) const MAX_LIST: usize = 1000;
/// The largest JSON part of a requirement, in bytes.
const MAX_PART: usize = 64 << 10;

pub(super) fn check(answer: wit::Replicas) -> Result<Answer, Violation> {
    Ok(Answer::Replicas(Replicas {
        replicas: in_range("/replicas", answer.replicas)?,
        requirements: requirements("", answer.requirements)?,
    }))
}

pub(super) fn check_components(answer: Vec<wit::Component>) -> Result<Answer, Violation> {
    bounded("/components", answer.len())?;
    let mut names = HashSet::new();
    let components = answer.into_iter().enumerate().map(|(index, component)| {
        let path = format_args!("/components/{index}");
        if component.name.is_empty() || component.name.chars().count() > 32 {
            return Err(Violation::new(
                format_args!("{path}/name"),
                "must have 1 to 32 characters",
            ));
        }
        if !names.insert(component.name.clone()) {
            let message = format!("{:?} is there twice", component.name);
            return Err(Violation::new(format_args!("{path}/name"), message));
        }
        Ok(Component {
            replicas: in_range(format_args!("{path}/replicas"), component.replicas)?,
            requirements: requirements(path, component.requirements)?,
            name: component.name,
        })
    });
    components.collect::<Result<_, _>>().map(Answer::Components)
}

pub(super) fn bounded(path: impl fmt::Display, length: usize) -> Result<(), Violation> {
    if length > MAX_LIST {
        let message = format!("has {length} entries, more than the limit of {MAX_LIST}");
        return Err(Violation::new(path, message));
    }
    Ok(())
}

fn in_range(path: impl fmt::Display, replicas: i64) -> Result<i64, Violation> {
    if (0..=i64::from(i32::MAX)).contains(&replicas) {
        Ok(replicas)
    } else {
        Err(Violation::new(
            path,
            format!("must be 0 to {}, is {replicas}", i32::MAX),
        ))
    }
}

/// The `replicaRequirements` of what is at `parent`.
fn requirements(
    parent: impl fmt::Display + Copy,
    found: Option<wit::Requirements>,
) -> Result<Option<Requirements>, Violation> {
    let Some(found) = found else { return Ok(None) };
    let path = format_args!("{parent}/replicaRequirements");
    let at = format_args!("{path}/resourceRequest");
    let resource_request = map(at, found.resource_request)?;
    for (name, amount) in &resource_request {
        if !names::is_qualified_name(name) {
            return Err(Violation::new(at, format!("{name:?} is no name of a resource")));
        }
        if let Some(objection) = names::quantity_objection(amount) {
            let name = name.replace('/', "~1");
            return Err(Violation::new(
                format_args!("{at}/{name}"),
                format!("{amount:?} {objection}"),
            ));
        }
    }
    let name = |field: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        if value.as_deref().is_none_or(names::is_dns_subdomain) {
            Ok(value)
        } else {
            Err(Violation::new(
                format_args!("{path}/{field}"),
                "is no name of an object",
            ))
        }
    };
    Ok(Some(Requirements {
        namespace: name("namespace", found.namespace)?,
        priority_class_name: name("priorityClassName", found.priority_class_name)?,
        node_claim: found
            .node_claim
            .map(|claim| node_claim(format_args!("{path}/nodeClaim"), claim))
            .transpose()?,
        resource_request,
    }))
}

fn node_claim(path: fmt::Arguments<'_>, found: wit::NodeClaim) -> Result<NodeClaim, Violation> {
    let affinity = |bytes| part::<NodeSelector>(format_args!("{path}/hardNodeAffinity"), bytes);
    let toleration = |(index, bytes)| part::<Toleration>(format_args!("{path}/tolerations/{index}"), bytes);
    bounded(format_args!("{path}/tolerations"), found.tolerations.len())?;
    let at = format_args!("{path}/nodeSelector");
    let node_selector = map(at, found.node_selector)?;
    let mut labels = node_selector.iter();
    if let Some((key, _)) = labels.find(|(key, value)| !names::is_qualified_name(key) || !names::is_label_value(value))
    {
        return Err(Violation::new(at, format!("{key:?} or its value is no valid label")));
    }
    let tolerations = found.tolerations.into_iter().enumerate().map(toleration);
    Ok(NodeClaim {
        hard_node_affinity: found.hard_node_affinity.map(affinity).transpose()?,
        node_selector,
        tolerations: tolerations.collect::<Result<_, _>>()?,
    })
}

/// A JSON object that Karmada will decode into the Go type that `T` mirrors.
fn part<T: DeserializeOwned>(path: fmt::Arguments<'_>, bytes: Vec<u8>) -> Result<Box<RawValue>, Violation> {
    let value = json::object(path, bytes, MAX_PART)?;
    json::typed::<T>(path, &value)?;
    Ok(value)
}

fn map(path: fmt::Arguments<'_>, pairs: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Violation> {
    bounded(path, pairs.len())?;
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        match map.entry(key) {
            Entry::Vacant(place) => {
                place.insert(value);
            }
            Entry::Occupied(taken) => return Err(Violation::new(path, format!("{:?} is there twice", taken.key()))),
        }
    }
    Ok(map)
}

/// core/v1 NodeSelector, as far as decoding can fail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read only by decoding")]
struct NodeSelector {
    node_selector_terms: Option<Vec<NodeSelectorTerm>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read only by decoding")]
struct NodeSelectorTerm {
    match_expressions: Option<Vec<NodeSelectorRequirement>>,
    match_fields: Option<Vec<NodeSelectorRequirement>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read only by decoding")]
struct NodeSelectorRequirement {
    key: Option<String>,
    operator: Option<String>,
    values: Option<Vec<String>>,
}

/// core/v1 Toleration, as far as decoding can fail.
#[derive(Deserialize)]
#[allow(dead_code, reason = "read only by decoding")]
struct Toleration {
    key: Option<String>,
    operator: Option<String>,
    value: Option<String>,
    effect: Option<String>,
    #[serde(rename = "tolerationSeconds")]
    seconds: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(resource: (&str, &str)) -> wit::Requirements {
        wit::Requirements {
            node_claim: None,
            resource_request: vec![(resource.0.into(), resource.1.into())],
            namespace: Some(String::new()),
            priority_class_name: None,
        }
    }

    fn checked(replicas: i64, requirements: Option<wit::Requirements>) -> Result<(), String> {
        check(wit::Replicas { replicas, requirements })
            .map(drop)
            .map_err(|violation| format!("{}: {}", violation.path, violation.message))
    }

    #[test]
    fn replicas_have_a_range() {
        for replicas in [0, 1, i64::from(i32::MAX)] {
            assert_eq!(checked(replicas, None), Ok(()));
        }
        for replicas in [-1, i64::from(i32::MAX) + 1, i64::MIN] {
            assert!(
                checked(replicas, None)
                    .unwrap_err()
                    .starts_with("/replicas: must be 0 to 2147483647")
            );
        }
    }

    #[test]
    fn quantities_and_names() {
        assert_eq!(checked(1, Some(needs(("cpu", "100m")))), Ok(()));
        assert_eq!(
            checked(1, Some(needs(("cpu", "abc")))).unwrap_err(),
            "/replicaRequirements/resourceRequest/cpu: \"abc\" is no Kubernetes quantity"
        );
        assert!(checked(1, Some(needs(("a b", "1")))).is_err());
        let mut twice = needs(("cpu", "1"));
        twice.resource_request.push(("cpu".into(), "2".into()));
        assert!(checked(1, Some(twice)).unwrap_err().contains("twice"));
        let wrong = wit::Requirements {
            priority_class_name: Some("A b".into()),
            ..needs(("cpu", "1"))
        };
        assert!(checked(1, Some(wrong)).unwrap_err().contains("/priorityClassName"));
    }

    #[test]
    fn node_claims_are_what_karmada_decodes() {
        let claimed = |affinity: &str, toleration: &str, selector: &str| {
            let node_claim = wit::NodeClaim {
                hard_node_affinity: Some(affinity.into()),
                node_selector: vec![("zone".into(), selector.into())],
                tolerations: vec![toleration.into()],
            };
            checked(
                1,
                Some(wit::Requirements {
                    node_claim: Some(node_claim),
                    ..needs(("cpu", "1"))
                }),
            )
        };
        let affinity = r#"{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}]}"#;
        assert_eq!(
            claimed(affinity, r#"{"operator":"Exists","tolerationSeconds":3}"#, "a"),
            Ok(())
        );
        assert!(claimed("[]", "{}", "a").unwrap_err().contains("/hardNodeAffinity"));
        assert!(claimed(r#"{"nodeSelectorTerms":{}}"#, "{}", "a").is_err());
        assert!(
            claimed("{}", r#"{"tolerationSeconds":"3"}"#, "a")
                .unwrap_err()
                .contains("/tolerations/0")
        );
        assert!(
            claimed("{}", "{}", "not a value")
                .unwrap_err()
                .contains("/nodeSelector")
        );
    }

    #[test]
    fn components_have_unique_short_names() {
        let parts = |names: &[&str]| {
            let part = |name: &&str| wit::Component {
                name: (*name).into(),
                replicas: 1,
                requirements: None,
            };
            check_components(names.iter().map(part).collect())
                .map(drop)
                .map_err(|violation| violation.path)
        };
        assert_eq!(parts(&["a", "b"]), Ok(()));
        assert_eq!(parts(&["a", "a"]).unwrap_err(), "/components/1/name");
        assert_eq!(parts(&[""]).unwrap_err(), "/components/0/name");
        assert_eq!(parts(&["a".repeat(33).as_str()]).unwrap_err(), "/components/0/name");
        assert_eq!(parts(&vec!["a"; MAX_LIST + 1]).unwrap_err(), "/components");
    }
}
