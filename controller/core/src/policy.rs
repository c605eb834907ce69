//! `policy`: one PropagationPolicy for each hub namespace and city.
//!
//! Key = (hub namespace, policy name). It is wanted while a WorkloadDeployment of the project, even one that is
//! finalising, or one of the hub names the city. Never owned: Karmada's `permanent-id` label and its finalizer.
//!
//! Why: `docs/decisions/03-policy-per-city.md`.

use popcell_api::karmada::{CONFLICT_RESOLUTION_ABORT, SPREAD_BY_CLUSTER};
use popcell_api::{API_VERSION, kind, labels};
use serde_json::{Map, Value, json};

use crate::edit::Edit;
use crate::names;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Proof, Target};

#[cfg(test)]
mod tests;

/// Fields that Karmada's webhook or its CRD fills in, with the value that means "not said".
const DEFAULTS: [(&str, &str); 3] = [
    ("preemption", "Never"),
    ("schedulerName", "default-scheduler"),
    ("activationPreference", ""),
];

/// What a reconcile looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The hub Namespace; `None` when there is none.
    pub namespace: Option<&'a Object>,
    /// Name of the hub namespace.
    pub namespace_name: &'a str,
    /// Name of the policy: `city-<code>`.
    pub name: &'a str,
    /// The policy of that name.
    pub policy: Option<&'a Object>,
    /// All WorkloadDeployments of the hub namespace.
    pub hub_deployments: &'a [&'a Object],
    /// All WorkloadDeployments of the project's namespace; none where the hub namespace is not the current one of it.
    /// Unknown while the project is not engaged.
    pub project_deployments: Observed<&'a [&'a Object]>,
}

/// Decides one reconcile. The hub is this reconciler's own plane: the runtime does not call while it is unknown.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let mut plan = Plan::default();
    let in_project = seen.project_deployments.known().unwrap_or_default();
    let all = in_project.iter().chain(seen.hub_deployments).copied();
    let city = spelling(seen.name, seen.policy, all);
    let target = Target::namespaced(&Plane::Hub, kind::PROPAGATION_POLICY, seen.namespace_name, seen.name);
    match (city, seen.policy) {
        (None, None) => {}
        (_, Some(policy)) if policy.deleting() => plan.notes.push(Note::WaitsFor(target)),
        (Some(city), None) => {
            if seen.namespace.is_some_and(|namespace| !namespace.deleting()) {
                plan.actions.push(create(seen, city));
            }
        }
        (Some(city), Some(policy)) => {
            if policy.marked() || is_a_citys(policy, seen.name) {
                plan.actions.extend(heal(policy, city));
            } else {
                plan.notes.push(Note::Foreign(target));
            }
        }
        (None, Some(policy)) => match seen.project_deployments {
            Observed::Known(_) if policy.marked() => plan.actions.push(delete(policy, seen)),
            Observed::Known(_) => plan.notes.push(Note::Foreign(target)),
            Observed::Unknown => {}
        },
    }
    plan
}

/// The spelling of a city that holds a policy name: the policy's own while it is used, else the oldest user's.
/// `None` when no WorkloadDeployment names the city.
pub fn spelling<'a>(
    name: &str,
    policy: Option<&'a Object>,
    deployments: impl Iterator<Item = &'a Object>,
) -> Option<&'a str> {
    let mut users: Vec<(&Object, &str)> = deployments
        .filter_map(|one| Some((one, one.text("/spec/cityCode")?)))
        .filter(|(_, city)| names::check_city(city).is_ok() && names::city_policy(city) == name)
        .collect();
    let held = policy.filter(|policy| !policy.deleting()).and_then(selected_city);
    if let Some((_, city)) = users.iter().find(|(_, city)| Some(*city) == held) {
        return Some(city);
    }
    users.sort_by(|(left, _), (right, _)| {
        let key = |one: &Object| (one.created(), one.name().to_owned());
        key(left).cmp(&key(right))
    });
    users.first().map(|(_, city)| *city)
}

/// The whole spec for a city; verified on Karmada v1.18.2.
pub fn spec(city: &str) -> Value {
    let by_city = json!({ "matchLabels": { labels::CITY_CODE: city } });
    json!({
        "resourceSelectors": [{
            "apiVersion": API_VERSION,
            "kind": kind::WORKLOAD_DEPLOYMENT.kind,
            "labelSelector": by_city,
        }],
        "conflictResolution": CONFLICT_RESOLUTION_ABORT,
        // What they name goes to the same cluster, and from there with the last that names it.
        "propagateDeps": true,
        "placement": {
            "clusterAffinity": { "labelSelector": by_city },
            // A partition never evicts the only copy.
            "clusterTolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
            // A second cluster with the label never doubles the work.
            "spreadConstraints": [{ "spreadByField": SPREAD_BY_CLUSTER, "minGroups": 1, "maxGroups": 1 }],
        },
    })
}

/// Splits a stored spec into what was said and the defaults that were added.
fn without_defaults(stored: &Value, namespace: &str) -> (Value, Map<String, Value>) {
    let mut said = stored.clone();
    let mut defaults = Map::new();
    if let Some(fields) = said.as_object_mut() {
        fields.retain(|field, value| {
            let added = match field.as_str() {
                "priority" => *value == json!(0),
                "preserveResourcesOnDeletion" => *value == json!(false),
                _ => DEFAULTS.iter().any(|(name, default)| field == name && value == default),
            };
            if added {
                defaults.insert(field.clone(), value.clone());
            }
            !added
        });
    }
    let selectors = said.pointer_mut("/resourceSelectors").and_then(Value::as_array_mut);
    for selector in selectors.into_iter().flatten().filter_map(Value::as_object_mut) {
        if selector.get("namespace").and_then(Value::as_str) == Some(namespace) {
            selector.remove("namespace");
        }
    }
    (said, defaults)
}

fn create(seen: &Observation<'_>, city: &str) -> Action {
    let mut object = Object::new(seen.name, &kind::PROPAGATION_POLICY.resource())
        .within(seen.namespace_name)
        .data(json!({ "spec": spec(city) }));
    object.metadata.labels = Some([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_POPCELL.to_owned())].into());
    Action::create(&Plane::Hub, kind::PROPAGATION_POLICY, object)
}

fn heal(policy: &Object, city: &str) -> Option<Action> {
    let mut edit =
        Edit::of(&Plane::Hub, kind::PROPAGATION_POLICY, policy).label(labels::MANAGED_BY, labels::MANAGED_BY_POPCELL);
    let mut desired = spec(city);
    let (said, defaults) = without_defaults(policy.at("/spec").unwrap_or(&Value::Null), policy.namespace());
    if said != desired {
        if let Some(fields) = desired.as_object_mut() {
            fields.extend(defaults);
        }
        edit = edit.spec(&desired);
    }
    edit.action()
}

fn delete(policy: &Object, seen: &Observation<'_>) -> Action {
    // A selector that was edited by hand to something else proves nothing: then none at all may be left.
    let city = selected_city(policy).filter(|city| names::city_policy(city) == seen.name);
    let selector = city.map_or_else(String::new, |city| format!("{}={city}", labels::CITY_CODE));
    let none_left = Proof::NoneLeft {
        plane: Plane::Hub,
        kind: kind::WORKLOAD_DEPLOYMENT,
        namespace: seen.namespace_name.to_owned(),
        selector,
    };
    let kind = kind::PROPAGATION_POLICY;
    Action::delete(&Plane::Hub, kind, policy, vec![none_left], DeletionGuard::Exempt)
}

fn selected_city(policy: &Object) -> Option<&str> {
    let selectors = policy.items("/spec/resourceSelectors");
    let first = selectors.first()?.get("labelSelector")?.get("matchLabels")?;
    first.get(labels::CITY_CODE)?.as_str()
}

/// A policy that upstream's operator made for the city.
fn is_a_citys(policy: &Object, name: &str) -> bool {
    let [selector] = policy.items("/spec/resourceSelectors") else {
        return false;
    };
    let is = |field: &str, value: &str| selector.get(field).and_then(Value::as_str) == Some(value);
    is("apiVersion", API_VERSION)
        && is("kind", kind::WORKLOAD_DEPLOYMENT.kind)
        && selected_city(policy).is_some_and(|city| names::city_policy(city) == name)
}
