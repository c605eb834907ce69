//! Replicas, what one of them needs, and components.

use std::collections::{BTreeMap, HashSet};

use popcell_protocol::{Answer, Component, NodeClaim, Replicas, Requirements};
use serde::Deserialize;

use super::{Violation, json, names, quantity};
use crate::bindings::wit;

/// Parts of one list in an answer.
pub(super) const MAX_LIST: usize = 1000;
/// The largest JSON part of a requirement, in bytes.
const MAX_PART: usize = 64 << 10;

pub(super) fn check(answer: wit::Replicas) -> Result<Answer, Violation> {
    Ok(Answer::Replicas(Replicas {
        replicas: in_range("/replicas", answer.replicas)?,
        requirements: answer
            .requirements
            .map(|all| requirements("/replicaRequirements", all))
            .transpose()?,
    }))
}

pub(super) fn check_components(answer: Vec<wit::Component>) -> Result<Answer, Violation> {
    bounded("/components", answer.len())?;
    let mut names = HashSet::new();
    let components = answer.into_iter().enumerate().map(|(index, component)| {
        let path = format!("/components/{index}");
        if component.name.is_empty() || component.name.chars().count() > 32 {
            return Err(Violation::new(format!("{path}/name"), "must have 1 to 32 characters"));
        }
        if !names.insert(component.name.clone()) {
            return Err(Violation::new(
                format!("{path}/name"),
                format!("{:?} is there twice", component.name),
            ));
        }
        Ok(Component {
            replicas: in_range(&format!("{path}/replicas"), component.replicas)?,
            requirements: component
                .requirements
                .map(|all| requirements(&format!("{path}/replicaRequirements"), all))
                .transpose()?,
            name: component.name,
        })
    });
    components.collect::<Result<_, _>>().map(Answer::Components)
}

pub(super) fn bounded(path: &str, length: usize) -> Result<(), Violation> {
    if length > MAX_LIST {
        return Err(Violation::new(
            path,
            format!("has {length} entries, more than the limit of {MAX_LIST}"),
        ));
    }
    Ok(())
}

fn in_range(path: &str, replicas: i64) -> Result<i64, Violation> {
    if (0..=i64::from(i32::MAX)).contains(&replicas) {
        Ok(replicas)
    } else {
        Err(Violation::new(
            path,
            format!("must be 0 to {}, is {replicas}", i32::MAX),
        ))
    }
}

fn requirements(path: &str, found: wit::Requirements) -> Result<Requirements, Violation> {
    let at = format!("{path}/resourceRequest");
    let resource_request = map(&at, found.resource_request)?;
    for (name, amount) in &resource_request {
        if !names::is_qualified_name(name) {
            return Err(Violation::new(&at, format!("{name:?} is no name of a resource")));
        }
        if let Some(objection) = quantity::objection(amount) {
            return Err(Violation::new(
                format!("{at}/{}", name.replace('/', "~1")),
                format!("{amount:?} {objection}"),
            ));
        }
    }
    for (field, value) in [
        ("namespace", &found.namespace),
        ("priorityClassName", &found.priority_class_name),
    ] {
        if value
            .as_deref()
            .is_some_and(|value| !value.is_empty() && !names::is_subdomain(value))
        {
            return Err(Violation::new(format!("{path}/{field}"), "is no name of an object"));
        }
    }
    Ok(Requirements {
        node_claim: found
            .node_claim
            .map(|claim| node_claim(&format!("{path}/nodeClaim"), claim))
            .transpose()?,
        resource_request,
        namespace: found.namespace.filter(|value| !value.is_empty()),
        priority_class_name: found.priority_class_name.filter(|value| !value.is_empty()),
    })
}

fn node_claim(path: &str, found: wit::NodeClaim) -> Result<NodeClaim, Violation> {
    let affinity = |bytes| {
        let path = format!("{path}/hardNodeAffinity");
        let value = json::object(&path, bytes, MAX_PART)?;
        json::typed::<NodeSelector>(&path, &value)?;
        Ok(value)
    };
    let toleration = |(index, bytes)| {
        let path = format!("{path}/tolerations/{index}");
        let value = json::object(&path, bytes, MAX_PART)?;
        json::typed::<Toleration>(&path, &value)?;
        Ok(value)
    };
    bounded(&format!("{path}/tolerations"), found.tolerations.len())?;
    let node_selector = map(&format!("{path}/nodeSelector"), found.node_selector)?;
    if let Some((key, _)) = node_selector
        .iter()
        .find(|(key, value)| !names::is_qualified_name(key) || !names::is_label_value(value))
    {
        return Err(Violation::new(
            format!("{path}/nodeSelector"),
            format!("{key:?} or its value is no valid label"),
        ));
    }
    Ok(NodeClaim {
        hard_node_affinity: found.hard_node_affinity.map(affinity).transpose()?,
        node_selector,
        tolerations: found
            .tolerations
            .into_iter()
            .enumerate()
            .map(toleration)
            .collect::<Result<_, _>>()?,
    })
}

fn map(path: &str, pairs: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Violation> {
    bounded(path, pairs.len())?;
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        let shown = key.clone();
        if map.insert(key, value).is_some() {
            return Err(Violation::new(path, format!("{shown:?} is there twice")));
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
