//! Objects of its own namespace that a WorkloadDeployment's template names, and that have to be in the city where it runs.
//!
//! Only the own namespace counts: below the hub the namespaces of all projects are side by side, and a name of another one
//! may be another tenant's.
//!
//! Why: `docs/decisions/30-networks-in-cells.md`.

use std::collections::BTreeSet;
use std::fmt;

use popcell_api::annotations;
use popcell_api::kind::{Kind, NETWORK};
use popcell_contract::previous_references;
use serde_json::Value;

use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{CONFIG_MAP, SECRET};

/// Kinds that are carried with a WorkloadDeployment, and watched.
pub const CARRIED: [Kind; 1] = [NETWORK];
/// Kinds that are carried with a WorkloadDeployment, and read by name only.
pub const DATA: [Kind; 2] = [CONFIG_MAP, SECRET];

/// The most that are kept of earlier templates: an annotation is small.
const MOST_PREVIOUS: usize = 256;

const INTERFACES: &str = "/spec/template/spec/networkInterfaces";

/// An object that a template names, in the namespace of the object that has the template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Its kind, one of [`CARRIED`] or [`DATA`].
    pub kind: Kind,
    /// Its name, as it is in the template: it may be no name at all.
    pub name: String,
}

impl Reference {
    /// The one that a key says.
    pub fn of_key(key: &str) -> Option<Self> {
        let (plural, name) = key.split_once('/')?;
        Self::of_plural(plural, name)
    }

    fn of_plural(plural: &str, name: &str) -> Option<Self> {
        let mut kinds = CARRIED.into_iter().chain(DATA);
        let kind = kinds.find(|kind| kind.plural == plural)?;
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

/// The Networks that a WorkloadDeployment names in its own namespace, each once and in order.
pub fn of(deployment: &Object) -> Vec<Reference> {
    named(NETWORK, own_networks(deployment))
}

/// The ConfigMaps and Secrets that a WorkloadDeployment's template names: in `env`, `envFrom`, volumes and `imagePullSecrets`; each
/// once and in order, the ConfigMaps first.
pub fn data(deployment: &Object) -> Vec<Reference> {
    let found: Vec<(Kind, &str)> = uses(deployment).map(|one| (one.kind, one.name)).collect();
    let of_kind = |kind: Kind| {
        let found = found.iter().filter(move |(one, _)| *one == kind);
        named(kind, found.map(|(_, name)| *name))
    };
    DATA.into_iter().flat_map(of_kind).collect()
}

/// What an earlier template of a WorkloadDeployment of the hub named, and what its city still has to have: Instances of that template
/// may restart before their turn comes.
pub fn previous(deployment: &Object) -> impl Iterator<Item = Reference> {
    let text = deployment
        .annotation(annotations::PREVIOUS_REFERENCES)
        .unwrap_or_default();
    previous_references::parse(text).filter_map(|(plural, name)| Reference::of_plural(plural, name))
}

/// The ConfigMaps and Secrets that a WorkloadDeployment of the hub needs in its city: those of its template, and of the previous one.
pub fn needed_data(deployment: &Object) -> Vec<Reference> {
    let previous = previous(deployment).filter(|one| DATA.contains(&one.kind));
    with(data(deployment), previous)
}

/// The Networks that a WorkloadDeployment of the hub needs in its city, in the same way.
pub fn needed_networks(deployment: &Object) -> Vec<Reference> {
    let previous = previous(deployment).filter(|one| CARRIED.contains(&one.kind));
    with(of(deployment), previous)
}

fn with(mut named: Vec<Reference>, previous: impl Iterator<Item = Reference>) -> Vec<Reference> {
    for one in previous {
        if !named.contains(&one) {
            named.push(one);
        }
    }
    named
}

/// What [`annotations::PREVIOUS_REFERENCES`] of a WorkloadDeployment of the hub is to be, beside the template of one of a project;
/// `changes_template`: it is written now.
pub(crate) fn to_keep(existing: &Object, deployment: &Object, changes_template: bool) -> Option<String> {
    if !changes_template && is_rolled_out(existing) {
        return None;
    }
    let stored = || [of(existing), data(existing)].concat();
    // What is replaced now runs on most Instances, and comes first where not all can be kept.
    let replaced = if changes_template { stored() } else { Vec::new() };
    let named = if changes_template {
        [of(deployment), data(deployment)].concat()
    } else {
        stored()
    };
    let mut kept: Vec<Reference> = Vec::new();
    for one in replaced.into_iter().chain(previous(existing)) {
        if kept.len() < MOST_PREVIOUS && !named.contains(&one) && !kept.contains(&one) {
            kept.push(one);
        }
    }
    let kept: BTreeSet<String> = kept.iter().map(Reference::to_string).collect();
    (!kept.is_empty()).then(|| kept.into_iter().collect::<Vec<_>>().join(","))
}

/// Whether all Instances of its city are of the template that is written.
fn is_rolled_out(existing: &Object) -> bool {
    let replicas = existing.int("/status/replicas");
    existing.int("/status/observedGeneration") == existing.generation()
        && replicas.is_some()
        && existing.int("/status/updatedReplicas") == replicas
}

fn named<'a>(kind: Kind, found: impl Iterator<Item = &'a str>) -> Vec<Reference> {
    let names: BTreeSet<&str> = found.collect();
    let references = names.into_iter().map(|name| Reference {
        kind,
        name: name.to_owned(),
    });
    references.collect()
}

/// Whether any of some WorkloadDeployments names an object, or did before and is not rolled out. Of one that exceeds a limit, and whose
/// template may not be there, nothing is known but what can be read.
pub fn is_named<'a>(deployments: impl IntoIterator<Item = &'a Object>, reference: &Reference) -> Observed<bool> {
    let mut is_whole = true;
    for one in deployments {
        // What is decoded to look at one goes with this copy.
        let one = one.clone();
        let data = uses(&one).map(|one| (one.kind, one.name));
        let mut found = own_networks(&one).map(|name| (NETWORK, name)).chain(data);
        let is_named = found.any(|(kind, name)| kind == reference.kind && name == reference.name);
        if is_named || previous(&one).any(|one| one == *reference) {
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

/// A place of a template that names a ConfigMap or a Secret, as users see it below `spec.template.spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A variable of a container, by their indexes.
    Variable(usize, usize, &'static str),
    /// A source of variables of a container.
    Source(usize, usize, &'static str),
    /// A volume, and the field with the name.
    Volume(usize, &'static str),
    /// A pull secret.
    Pull(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SANDBOX: &str = "runtime.sandbox";
        match self {
            Self::Variable(container, index, field) => {
                write!(
                    f,
                    "{SANDBOX}.containers[{container}].env[{index}].valueFrom.{field}.name"
                )
            }
            Self::Source(container, index, field) => {
                write!(f, "{SANDBOX}.containers[{container}].envFrom[{index}].{field}.name")
            }
            Self::Volume(index, field) => write!(f, "volumes[{index}].{field}"),
            Self::Pull(index) => write!(f, "{SANDBOX}.imagePullSecrets[{index}].name"),
        }
    }
}

/// One place of a template that names a ConfigMap or a Secret.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// Where.
    pub place: Place,
    /// Which of the two kinds.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// Whether an Instance starts without it.
    pub optional: bool,
}

/// Each place of a template that names a ConfigMap or a Secret.
pub fn uses(object: &Object) -> impl Iterator<Item = Use<'_>> {
    let containers = object.items("/spec/template/spec/runtime/sandbox/containers");
    let containers = containers.iter().enumerate();
    let variables = containers.clone().flat_map(|(container, one)| {
        let variables = list(one, "env").iter().enumerate();
        variables.flat_map(move |(index, one)| {
            let from = one.get("valueFrom");
            [("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)].map(|(field, kind)| {
                used(
                    Place::Variable(container, index, field),
                    kind,
                    from?.get(field)?,
                    "name",
                )
            })
        })
    });
    let sources = containers.flat_map(|(container, one)| {
        let sources = list(one, "envFrom").iter().enumerate();
        sources.flat_map(move |(index, one)| {
            [("configMapRef", CONFIG_MAP), ("secretRef", SECRET)]
                .map(|(field, kind)| used(Place::Source(container, index, field), kind, one.get(field)?, "name"))
        })
    });
    let volumes = object.items("/spec/template/spec/volumes").iter().enumerate();
    let volumes = volumes.flat_map(|(index, one)| {
        [
            ("configMap", CONFIG_MAP, "name", "configMap.name"),
            ("secret", SECRET, "secretName", "secret.secretName"),
        ]
        .map(|(field, kind, name, path)| used(Place::Volume(index, path), kind, one.get(field)?, name))
    });
    let pulls = object.items("/spec/template/spec/runtime/sandbox/imagePullSecrets");
    let pulls = pulls.iter().enumerate();
    let pulls = pulls.map(|(index, one)| used(Place::Pull(index), SECRET, one, "name"));
    variables.chain(sources).chain(volumes).chain(pulls).flatten()
}

fn used<'a>(place: Place, kind: Kind, value: &'a Value, field: &str) -> Option<Use<'a>> {
    Some(Use {
        place,
        kind,
        name: text(value, field)?,
        optional: value.get("optional").and_then(Value::as_bool) == Some(true),
    })
}

/// Whether an Instance starts without an object: each place that names it says so.
pub fn is_optional(object: &Object, reference: &Reference) -> bool {
    let mut of_it = uses(object).filter(|one| one.kind == reference.kind && one.name == reference.name);
    of_it.all(|one| one.optional)
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let items = value.get(field).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
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
    fn config_maps_and_secrets_are_found_wherever_a_template_names_them() {
        let template = json!({ "spec": {
            "runtime": { "sandbox": {
                "containers": [
                    { "name": "a", "env": [
                        { "name": "A", "valueFrom": { "configMapKeyRef": { "name": "settings", "key": "a" } } },
                        { "name": "B", "valueFrom": { "secretKeyRef": { "name": "password", "key": "b" } } },
                        { "name": "C", "value": "text" },
                        { "name": "D", "valueFrom": { "secretKeyRef": { "name": "", "key": "b" } } },
                    ] },
                    { "name": "b", "envFrom": [
                        { "configMapRef": { "name": "all", "optional": true } },
                        { "secretRef": { "name": "more", "optional": true } },
                        { "secretRef": { "name": "more" } },
                        { "secretRef": { "name": "password" } },
                    ] },
                    "text",
                ],
                "imagePullSecrets": [{ "name": "registry" }, {}, 7],
            } },
            "volumes": [
                { "name": "a", "configMap": { "name": "files" } },
                { "name": "b", "secret": { "secretName": "key", "optional": true } },
                { "name": "c", "disk": {} },
            ],
        } });
        let deployment = object(json!({ "metadata": { "name": "web" }, "spec": { "template": template } }));
        let keys: Vec<String> = data(&deployment).iter().map(Reference::to_string).collect();
        assert_eq!(
            keys,
            [
                "configmaps/all",
                "configmaps/files",
                "configmaps/settings",
                "secrets/key",
                "secrets/more",
                "secrets/password",
                "secrets/registry",
            ]
        );
        for key in keys {
            let reference = Reference::of_key(&key).unwrap();
            assert_eq!(is_named([&deployment], &reference), Observed::Known(true), "{key}");
        }
        let is_optional = |key: &str| super::is_optional(&deployment, &Reference::of_key(key).unwrap());
        // One place that says so is not enough.
        assert!(is_optional("configmaps/all") && is_optional("secrets/key"));
        assert!(!is_optional("secrets/more") && !is_optional("configmaps/settings"));
        // The same name of another kind is another object.
        let other = Reference::of_key("configmaps/password").unwrap();
        assert_eq!(is_named([&deployment], &other), Observed::Known(false));
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        for (kind, name) in [(NETWORK, "default"), (NETWORK, "a/b"), (CONFIG_MAP, "a"), (SECRET, "b")] {
            let reference = Reference {
                kind,
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

    #[test]
    fn a_template_that_is_not_written_yet_takes_no_name_from_what_is_kept() {
        let of = |name: &str, annotations: Value| {
            object(
                json!({ "metadata": { "name": "web", "namespace": "default", "generation": 2, "annotations": annotations },
                "spec": { "template": { "spec": { "networkInterfaces": [{ "network": { "name": name } }] } } } }),
            )
        };
        let existing = of("b", json!({ annotations::PREVIOUS_REFERENCES: "networks/a" }));
        let again = of("a", json!({}));
        assert_eq!(to_keep(&existing, &again, false).as_deref(), Some("networks/a"));
        assert_eq!(to_keep(&existing, &again, true).as_deref(), Some("networks/b"));
    }

    #[test]
    fn of_too_many_the_names_of_the_replaced_template_are_kept() {
        let older: Vec<String> = (0..MOST_PREVIOUS)
            .map(|index| format!("networks/a{index:03}"))
            .collect();
        let mut existing = deployment(json!([{ "network": { "name": "z" } }]));
        let all = existing.metadata.annotations.get_or_insert_default();
        all.insert(annotations::PREVIOUS_REFERENCES.to_owned(), older.join(","));
        let kept = to_keep(&existing, &deployment(json!([])), true).unwrap();
        assert_eq!(kept.split(',').count(), MOST_PREVIOUS);
        assert!(kept.ends_with("networks/a254,networks/z"), "{kept}");
    }
}
