//! What a WorkloadDeployment reports while its Instances are on their way, which is written once for several steps.
//!
//! Progress is what changes nothing for whoever acts on the status: a count that rises, another word for "on its way", the
//! one Instance that a roll lacks, and the memory of slots that were granted. Whatever else turns True or False, blocks, or
//! answers a change of the spec is none.

use std::time::Duration;

use popcell_api::conditions::{self as types, reasons};
use popcell_api::{annotations, kind};
use serde_json::Value;

use crate::conditions::{self, BLOCKING, priority, text};
use crate::object::{Fields, Object};
use crate::plan::{Action, Patch, Plan};

/// How long progress waits for more of it: an Instance among many that start at once takes as long to become Ready.
pub const PROGRESS: Duration = Duration::from_secs(1);

/// Where many objects of a tenant have progress to tell, they tell it one after the other, so far apart.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(20);
/// How long it waits at most, however many there are.
pub const PROGRESS_AT_MOST: Duration = Duration::from_secs(20);

/// Reasons of "on its way".
const ON_ITS_WAY: [&str; 3] = [
    reasons::PROVISIONING_INSTANCES,
    reasons::PROVISIONING_NETWORK,
    reasons::STABLE_INSTANCE_FOUND,
];

/// Whether a plan writes nothing of its WorkloadDeployment but progress, and something of it.
pub fn reports_progress(deployment: &Object, plan: &Plan) -> bool {
    let reported = plan.status.as_ref();
    let remembers = plan.actions.iter().any(|action| is_memory(action, deployment));
    if (reported.is_none() && !remembers) || !plan.events.is_empty() || plan.terminal.is_some() {
        return false;
    }
    reported.is_none_or(|patch| {
        let status = patch.value_at("/status");
        status.is_some_and(|status| is_progress(deployment.at("/status"), status))
    })
}

/// The plan without what it writes of its WorkloadDeployment.
#[must_use]
pub fn without_progress(deployment: &Object, mut plan: Plan) -> Plan {
    plan.status = None;
    plan.actions.retain(|action| !is_memory(action, deployment));
    plan
}

/// Whether an action does nothing but remember slots that were granted.
fn is_memory(action: &Action, deployment: &Object) -> bool {
    let Action::Patch(patch) = action else { return false };
    let is_own = patch.target.kind == kind::WORKLOAD_DEPLOYMENT && patch.on.uid == deployment.uid();
    is_own && remembers(patch)
}

fn remembers(patch: &Patch) -> bool {
    let key = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
    let keys = [annotations::GRANTED_SLOTS, annotations::GRANTED_SIZE].map(key);
    let mut paths = patch.changed_paths().peekable();
    paths.peek().is_some() && paths.all(|path| path == "/metadata/annotations" || keys.iter().any(|key| key == path))
}

/// Whether what became of an Instance is progress to whoever counts or shows it: it has not become Ready or ceased to be, does
/// not begin to go, is blocked as before, and nothing else than its gates changed of what it is made from.
pub fn is_on_its_way(before: Option<&Object>, now: &Object) -> bool {
    let Some(before) = before else {
        return !now.deleting() && reported_state(now) == (false, false, None);
    };
    let same_object = before.uid() == now.uid()
        && before.deleting() == now.deleting()
        && before.metadata.labels == now.metadata.labels
        && before.metadata.owner_references == now.metadata.owner_references;
    same_object && reported_state(before) == reported_state(now) && differs_by_gates_at_most(before, now)
}

/// Whether two states of an Instance have the same spec, but for its scheduling gates.
pub fn differs_by_gates_at_most(before: &Object, now: &Object) -> bool {
    let without_gates = |one: &Object| {
        let mut spec = one.at("/spec").cloned().unwrap_or_default();
        let controller = spec.get_mut("controller").and_then(Value::as_object_mut);
        controller.map(|controller| controller.remove("schedulingGates"));
        spec
    };
    before.at("/spec") == now.at("/spec") || without_gates(before) == without_gates(now)
}

/// Whether an Instance is Ready, whether its quota was denied, and what blocks it.
fn reported_state(instance: &Object) -> (bool, bool, Option<(&str, &str)>) {
    let blocked = conditions::of(instance, types::READY)
        .map(|ready| (text(ready, "reason"), text(ready, "message")))
        .filter(|(reason, _)| priority(reason) >= BLOCKING);
    let denied = conditions::says(instance, types::QUOTA_GRANTED, "False");
    (conditions::says(instance, types::READY, "True"), denied, blocked)
}

fn is_progress(old: Option<&Value>, new: &Value) -> bool {
    let Some(old) = old.filter(|old| old.as_object().is_some_and(|fields| !fields.is_empty())) else {
        return types_of(new).all(|(_, new)| starts(new));
    };
    let number = |status: &Value, field: &str| status.get(field).and_then(Value::as_i64);
    let same = |field: &str| number(old, field) == number(new, field);
    // A roll takes one Instance of all away and brings it back in the next moment.
    let updated = number(new, "updatedReplicas").zip(number(new, "desiredReplicas"));
    let rolls = updated.is_some_and(|(updated, desired)| updated < desired);
    let takes_one = rolls && number(old, "readyReplicas") == number(old, "desiredReplicas");
    let least = number(old, "readyReplicas").unwrap_or_default() - i64::from(takes_one);
    if number(new, "readyReplicas").unwrap_or_default() < least
        || !same("observedGeneration")
        || !same("desiredReplicas")
    {
        return false;
    }
    let stays = |type_: &str| conditions::find(new, type_).is_some();
    types_of(old).all(|(type_, _)| stays(type_))
        && types_of(new).all(|(type_, new)| {
            let old = conditions::find(old, type_);
            old.map_or_else(
                || starts(new),
                |old| old == new || goes_on(old, new) || (rolls && lacks_one(old) && lacks_one(new)),
            )
        })
}

/// Types and conditions of a status.
fn types_of(status: &Value) -> impl Iterator<Item = (&str, &Value)> {
    conditions::all(status).iter().map(|one| (text(one, "type"), one))
}

/// Whether a condition that was not there says "on its way".
fn starts(new: &Value) -> bool {
    text(new, "status") != "True" && goes_on(new, new)
}

/// Whether a condition says whether all replicas are ready, of which a roll always lacks one.
fn lacks_one(condition: &Value) -> bool {
    let on_its_way = text(condition, "status") == "True" || ON_ITS_WAY.contains(&text(condition, "reason"));
    text(condition, "type") == types::REPLICAS_READY && on_its_way
}

/// Whether a condition says of the same status another word for "on its way".
fn goes_on(old: &Value, new: &Value) -> bool {
    let ours = [types::AVAILABLE, types::REPLICAS_READY].contains(&text(new, "type"));
    let on_its_way = |one: &Value| ON_ITS_WAY.contains(&text(one, "reason"));
    ours && text(old, "status") == text(new, "status") && on_its_way(old) && on_its_way(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(ready: i64, conditions: &[(&str, &str, &str, &str)]) -> Value {
        let all: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, reason, message)| {
                json!({ "type": type_, "status": status, "reason": reason, "message": message })
            })
            .collect();
        json!({ "readyReplicas": ready, "desiredReplicas": 3, "observedGeneration": 1, "conditions": all })
    }

    #[test]
    fn only_steps_on_the_way_are_progress() {
        let waits = ("Available", "False", "ProvisioningInstances", "");
        let network = ("Available", "False", "ProvisioningNetwork", "");
        let some = ("Available", "True", "StableInstanceFound", "1/3 instances are ready");
        let more = ("Available", "True", "StableInstanceFound", "2/3 instances are ready");
        let quota = ("Available", "False", "PendingQuota", "");
        let all = ("ReplicasReady", "True", "ReplicasAvailable", "3/3 replicas available");
        let lacks = (
            "ReplicasReady",
            "False",
            "ProvisioningInstances",
            "2/3 replicas available",
        );
        for (old, new, expected) in [
            (json!(null), status(0, &[network, lacks]), true),
            (json!(null), status(0, &[quota]), false),
            (json!({}), status(1, &[some]), false),
            (status(0, &[network]), status(0, &[waits]), true),
            (status(0, &[quota]), status(0, &[waits]), false),
            (status(0, &[waits]), status(0, &[quota]), false),
            (status(0, &[waits]), status(1, &[some]), false),
            (status(1, &[some]), status(2, &[more]), true),
            (status(2, &[more]), status(1, &[some]), false),
            (status(2, &[more, lacks]), status(3, &[more, all]), false),
            (
                status(1, &[some, ("Other", "True", "A", "")]),
                status(1, &[some]),
                false,
            ),
            (
                status(1, &[some]),
                status(1, &[some, ("Other", "True", "A", "")]),
                false,
            ),
        ] {
            assert_eq!(is_progress(Some(&old), &new), expected, "{old} {new}");
        }
        // A roll takes one after the other away; Available does not change by it, and two are more than it takes.
        let of_roll = |ready: i64, updated: i64, conditions: &[(&str, &str, &str, &str)]| {
            let mut status = status(ready, conditions);
            status["updatedReplicas"] = json!(updated);
            status
        };
        let none = ("Available", "False", "ProvisioningInstances", "");
        let denied = ("ReplicasReady", "False", "PendingQuota", "");
        for (old, new, expected) in [
            (of_roll(3, 0, &[some, all]), of_roll(2, 0, &[some, lacks]), true),
            (of_roll(2, 0, &[some, lacks]), of_roll(3, 1, &[some, all]), true),
            (of_roll(3, 0, &[some, all]), of_roll(1, 0, &[some, lacks]), false),
            // It lacks one already: another has been lost.
            (of_roll(2, 0, &[some, lacks]), of_roll(1, 0, &[some, lacks]), false),
            (of_roll(2, 0, &[some, denied]), of_roll(2, 0, &[some, lacks]), false),
            (of_roll(3, 0, &[some, all]), of_roll(2, 0, &[some, denied]), false),
            (of_roll(1, 0, &[some, all]), of_roll(0, 0, &[none, lacks]), false),
            (of_roll(2, 2, &[some, lacks]), of_roll(3, 3, &[some, all]), false),
            (of_roll(3, 3, &[some, all]), of_roll(2, 3, &[some, lacks]), false),
        ] {
            assert_eq!(is_progress(Some(&old), &new), expected, "{old} {new}");
        }
        let mut observed = status(0, &[waits]);
        observed["observedGeneration"] = json!(2);
        assert!(!is_progress(Some(&status(0, &[waits])), &observed));
    }
}
