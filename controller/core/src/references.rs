//! Objects of its own namespace that a WorkloadDeployment's template names, and that have to be in the city where it runs.
//!
//! Only the own namespace counts: below the hub the namespaces of all projects are side by side, and a name of another one
//! may be another tenant's.
//!
//! Why: `docs/decisions/30-networks-in-cells.md`.

use std::collections::BTreeSet;
use std::fmt;

use popcell_api::kind::{Kind, NETWORK};
use serde_json::Value;

use crate::object::{Fields, Object};
use crate::observed::Observed;

/// Kinds that are carried with a WorkloadDeployment.
pub const CARRIED: [Kind; 1] = [NETWORK];

const INTERFACES: &str = "/spec/template/spec/networkInterfaces";

/// An object that a template names, in the namespace of the object that has the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its kind, one of [`CARRIED`].
    pub kind: Kind,
    /// Its name, as it is in the template: it may be no name at all.
    pub name: String,
}

impl Reference {
    /// The one that a key says.
    pub fn of_key(key: &str) -> Option<Self> {
        let (plural, name) = key.split_once('/')?;
        let kind = CARRIED.into_iter().find(|kind| kind.plural == plural)?;
        Some(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

/// As a key: `networks/default`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.plural, self.name)
    }
}

/// What a WorkloadDeployment names in its own namespace, each once and in order.
pub fn of(deployment: &Object) -> Vec<Reference> {
    let names: BTreeSet<&str> = own_networks(deployment).collect();
    let networks = names.into_iter().map(|name| Reference {
        kind: NETWORK,
        name: name.to_owned(),
    });
    networks.collect()
}

/// Whether any of some WorkloadDeployments names an object. Of one that exceeds a limit, and whose template may not be
/// there, nothing is known but what can be read.
pub fn is_named<'a>(deployments: impl IntoIterator<Item = &'a Object>, reference: &Reference) -> Observed<bool> {
    let mut is_whole = true;
    for one in deployments {
        // What is decoded to look at one goes with this copy.
        let one = one.clone();
        if own_networks(&one).any(|name| name == reference.name) && reference.kind == NETWORK {
            return Observed::Known(true);
        }
        is_whole &= one.excess().is_none();
    }
    if is_whole {
        Observed::Known(false)
    } else {
        Observed::Unknown
    }
}

fn own_networks(deployment: &Object) -> impl Iterator<Item = &str> {
    let networks = deployment.items(INTERFACES).iter().filter_map(|one| one.get("network"));
    let own = networks.filter(move |network| !is_elsewhere(network, deployment.namespace()));
    own.filter_map(|network| text(network, "name"))
}

/// Whether a reference to a Network is to one of another namespace.
pub(crate) fn is_elsewhere(network: &Value, namespace: &str) -> bool {
    text(network, "namespace").is_some_and(|one| one != namespace)
}

/// Takes the own namespace out of the references of a template: on another plane the namespace has another name, and a
/// reference without one means the own.
pub(crate) fn localise(template: &mut Value, namespace: &str) {
    let interfaces = template.pointer_mut("/spec/networkInterfaces");
    for interface in interfaces.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(network) = interface.get_mut("network").filter(|one| !is_elsewhere(one, namespace)) else {
            continue;
        };
        if let Some(network) = network.as_object_mut() {
            network.remove("namespace");
        }
    }
}

/// A text that is not empty.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    let text = value.get(field).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{enlarged, object};

    fn deployment(networks: Value) -> Object {
        object(json!({ "metadata": { "name": "web", "namespace": "default" },
            "spec": { "template": { "spec": { "networkInterfaces": networks } } } }))
    }

    fn keys(networks: Value) -> Vec<String> {
        of(&deployment(networks)).iter().map(Reference::to_string).collect()
    }

    #[test]
    fn networks_of_the_own_namespace_come_once_and_in_order() {
        let named = json!([
            { "network": { "name": "b" } },
            { "network": { "name": "a", "namespace": "default" } },
            { "network": { "name": "b", "namespace": "" } },
            { "network": { "name": "c", "namespace": "other" } },
            { "network": { "name": "" } },
            { "network": { "name": 7 } },
            { "network": "text" },
            {},
        ]);
        assert_eq!(keys(named), ["networks/a", "networks/b"]);
        for nothing in [json!(null), json!([]), json!({}), json!("text")] {
            assert_eq!(keys(nothing), Vec::<String>::new());
        }
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for name in ["default", "a/b"] {
            let reference = Reference {
                kind: NETWORK,
                name: name.to_owned(),
            };
            assert_eq!(Reference::of_key(&reference.to_string()), Some(reference));
        }
        for other in ["default", "pods/default", "", "/"] {
            assert_eq!(Reference::of_key(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_not_kept_of_a_large_one_may_name_anything() {
        let reference = Reference::of_key("networks/default").unwrap();
        let names = deployment(json!([{ "network": { "name": "default" } }]));
        let other = deployment(json!([{ "network": { "name": "other" } }]));
        let large = enlarged(
            &other,
            popcell_api::kind::WORKLOAD_DEPLOYMENT,
            "spec",
            1 << 20,
            crate::limits::Excess::Bytes {
                bytes: 1 << 20,
                limit: 1,
            },
        );
        for (deployments, expected) in [
            (vec![], Observed::Known(false)),
            (vec![&other], Observed::Known(false)),
            (vec![&other, &names], Observed::Known(true)),
            (vec![&large], Observed::Unknown),
            (vec![&large, &names], Observed::Known(true)),
        ] {
            assert_eq!(is_named(deployments, &reference), expected);
        }
    }

    #[test]
    fn the_own_namespace_is_left_out_of_references_and_nothing_else_is() {
        let mut template = json!({ "metadata": { "labels": {} }, "spec": { "networkInterfaces": [
            { "network": { "name": "a", "namespace": "default", "more": 1 }, "networkPolicy": {} },
            { "network": { "name": "b", "namespace": "other" } },
            { "network": "text" },
            7,
        ], "other": "default" } });
        localise(&mut template, "default");
        assert_eq!(
            template,
            json!({ "metadata": { "labels": {} }, "spec": { "networkInterfaces": [
                { "network": { "name": "a", "more": 1 }, "networkPolicy": {} },
                { "network": { "name": "b", "namespace": "other" } },
                { "network": "text" },
                7,
            ], "other": "default" } })
        );
        for mut nothing in [json!(null), json!({ "spec": { "networkInterfaces": {} } }), json!([])] {
            let before = nothing.clone();
            localise(&mut nothing, "default");
            assert_eq!(nothing, before);
        }
    }
}
