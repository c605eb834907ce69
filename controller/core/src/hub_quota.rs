//! `hub-quota`: one ResourceQuota in each hub namespace of ours, so that no client with the identity of a cell makes
//! Instances there without end.
//!
//! - Ours is the one of our name that carries our marker. Whoever takes the marker off has it from then on, and what has
//!   another name is never looked at.
//! - It stays as long as its namespace, whether that is the current one of the project or not: cells may write into every
//!   namespace that carries the labels of a project.
//! - Only the count of Instances is ours: other counts that are added to it are removed, and its scopes stay, which the
//!   API makes immutable.

use std::time::Duration;

use popcell_api::labels;
use popcell_api::names::HUB_QUOTA;
use popcell_contract::quantity;
use serde_json::{Value, json};

use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::object::{Fields, Object};
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, RESOURCE_QUOTA, Target};

#[cfg(test)]
mod tests;

/// What is limited.
pub const COUNTED: &str = "count/instances.compute.datumapis.com";

/// How soon a name that another client holds is looked at again: what is not ours is not watched.
const FOREIGN_AGAIN: Duration = Duration::from_mins(10);

/// What a reconcile over one hub namespace looks at. The hub is this reconciler's own plane and known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The project that the namespace names, which is engaged.
    pub project: Project<'a>,
    /// The hub Namespace.
    pub namespace: &'a Object,
    /// The ResourceQuota of our name in it.
    pub quota: Option<&'a Object>,
    /// How many Instances may be there; 0 = any number, without a quota of ours.
    pub instances: u32,
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let namespace = seen.namespace;
    if !namespace.marked() || namespace.deleting() {
        return Plan::dropped("the namespace is not ours, or going");
    }
    if !identity::is_of(namespace, seen.project) {
        // Another installation may have this hub too, with another number.
        return Plan::dropped("the namespace is of another project or server");
    }
    let mut plan = Plan::default();
    match (seen.quota, seen.instances) {
        (None, 0) => {}
        (None, instances) => plan.actions.push(create(namespace, instances)),
        (Some(quota), _) if quota.deleting() => plan.notes.push(Note::WaitsFor(target(quota))),
        (Some(quota), 0) if quota.marked() => {
            // The number is an operator's word, and whose it is this plane says itself: nothing else has to be proven.
            let delete = Action::delete(&Plane::Hub, RESOURCE_QUOTA, quota, Vec::new(), DeletionGuard::Exempt);
            plan.actions.push(delete);
        }
        (Some(_), 0) => {}
        (Some(quota), instances) if quota.marked() => plan.actions.extend(heal(quota, instances)),
        (Some(quota), _) => {
            plan.notes.push(Note::Foreign(target(quota)));
            plan.requeue_within(FOREIGN_AGAIN);
        }
    }
    plan
}

fn target(quota: &Object) -> Target {
    Target::of(&Plane::Hub, RESOURCE_QUOTA, quota)
}

fn hard(instances: u32) -> Value {
    json!({ COUNTED: instances.to_string() })
}

fn create(namespace: &Object, instances: u32) -> Action {
    let mut object = Object::new(HUB_QUOTA, &RESOURCE_QUOTA.resource())
        .within(namespace.name())
        .data(json!({ "spec": { "hard": hard(instances) } }));
    object.metadata.labels = Some([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_POPCELL.to_owned())].into());
    Action::create(&Plane::Hub, RESOURCE_QUOTA, object)
}

fn heal(quota: &Object, instances: u32) -> Option<Action> {
    if limits_to(quota, instances) {
        return None;
    }
    let mut spec = quota
        .at("/spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    spec.insert("hard".to_owned(), hard(instances));
    Edit::of(&Plane::Hub, RESOURCE_QUOTA, quota)
        .spec(&Value::Object(spec))
        .action()
}

/// Whether it says this number and nothing else. Servers write `20000` as `20k`.
fn limits_to(quota: &Object, instances: u32) -> bool {
    let hard = quota.at("/spec/hard").and_then(Value::as_object);
    hard.is_some_and(|hard| {
        let said = hard.get(COUNTED).and_then(Value::as_str).and_then(quantity::nano);
        hard.len() == 1 && said == Some(i128::from(instances) * quantity::ONE)
    })
}
