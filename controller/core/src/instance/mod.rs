//! `instance`: one Instance of the cell; its quota, its scheduling gate `Quota`, and whether it is Ready.
//!
//! - Only the conditions QuotaGranted and Ready are written, and Programmed and Available while quota holds the Instance
//!   back; all else in the status is its provider's.
//! - The gate goes in the reconcile that sees the grant, after the status that says so; that status says too what Ready is without
//!   the gate.
//! - An Instance that was let go is never stopped for quota: without gates nothing of it is overlaid, and what was granted
//!   stays so until its own claim is denied.
//!
//! Claims are neither made nor deleted here: `instance-claim` does, by level.
//!
//! Why: `docs/decisions/09-quota-gates-a-start.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions as types;
use popcell_api::{finalizers, gates, kind};

use crate::conditions;
use crate::edit::Edit;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Plan, Plane, Target};
pub use crate::remote::claim::Quota;
use draft::Draft;

mod claim_answer;
mod draft;
mod quota;
mod ready;

#[cfg(test)]
mod tests;

pub use ready::has_failed;

/// Finalizers of upstream's operator, which no controller removes once popcell has taken over.
const UPSTREAMS: [&str; 2] = [
    finalizers::UPSTREAM_INSTANCE_CONTROLLER,
    finalizers::UPSTREAM_CLAIM_CLEANUP,
];

/// What a reconcile looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The Instance.
    pub instance: &'a Object,
    /// The WorkloadDeployment in the cell whose uid its label has.
    pub deployment: Option<&'a Object>,
    /// NetworkBindings of its namespace: at least those at the names of the interfaces of its WorkloadDeployment.
    pub bindings: Observed<&'a [&'a Object]>,
    /// See [`crate::deployment::Networks`].
    pub own_namespace_only: bool,
    /// Whether the cell does not serve the kinds of networks.
    pub lacks_networks: bool,
    /// Why Instances of its WorkloadDeployment wait for ConfigMaps and Secrets; `None` within = they do not.
    pub data: Observed<Option<&'a str>>,
    /// What is known of its quota.
    pub quota: Quota<'a>,
    /// Whether the server rejected it when its gates were removed last.
    pub gates_rejected: bool,
    /// How long a claim may stay pending before the condition says that there is no budget.
    pub no_budget_grace: Duration,
    /// The time.
    pub now: Timestamp,
}

/// What is to be done for the Instance.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let instance = seen.instance;
    if let Some(excess) = instance.excess() {
        return Plan::exceeded(Target::of(&Plane::Cell, kind::INSTANCE, instance), excess);
    }
    let mut plan = Plan::default();
    let mut draft = Draft::of(instance, seen.now);
    let mut edit = Edit::by_value(&Plane::Cell, kind::INSTANCE, instance).without_finalizers(&UPSTREAMS);
    let mut held_by = gates_of(instance);
    // One that is going needs no quota any more, and is not let go; what it is meanwhile is reported to the end.
    if !instance.deleting() {
        let verdict = quota::judge(seen);
        if let Some(condition) = &verdict.condition {
            draft.set(condition);
        }
        if verdict.opens {
            edit = edit.without_gates(&[gates::QUOTA]);
            // What the server rejects stays, and is what is to be said.
            held_by.retain(|gate| *gate != gates::QUOTA || seen.gates_rejected);
        }
        if draft.status_of(types::QUOTA_GRANTED) != "True" {
            plan.requeue_within(tier(instance.created(), seen.now));
        }
        if let Some(sooner) = verdict.again {
            plan.requeue_within(sooner);
        }
    }
    ready::settle(seen, &held_by, &mut draft);
    // The status goes before the gate: it never says Ready of an Instance that is still held back.
    if draft.status_of(types::READY) == "True" {
        ready::settle(seen, &gates_of(instance), &mut draft);
    }
    draft.report_transitions(&mut plan);
    let status = Edit::status(&Plane::Cell, kind::INSTANCE, instance, draft.status());
    match edit.action() {
        // Status and gate in one reconcile, since another may never come: the gate goes after the status that says why.
        Some(action) => plan.actions = status.map(Action::Patch).into_iter().chain([action]).collect(),
        None => plan.status = status,
    }
    plan
}

/// Names of the scheduling gates; what cannot be read is no gate.
fn gates_of(instance: &Object) -> Vec<&str> {
    instance
        .items("/spec/controller/schedulingGates")
        .iter()
        .filter_map(|gate| gate.get("name")?.as_str())
        .collect()
}

/// Whether an Instance has a scheduling gate.
pub fn has_gate(instance: &Object, gate: &str) -> bool {
    gates_of(instance).contains(&gate)
}

/// How soon an Instance without quota is looked at again, by its age: each second in its first minute, then 15 s, a minute from 5 min on and 5 min from 10 min on.
///
/// The age counts from `metadata.creationTimestamp`, never from a condition, whose time may be the CRD's default of
/// 1970. Created in the future, or at no known time, is new.
pub fn tier(created: Option<Timestamp>, now: Timestamp) -> Duration {
    let age = created.map_or(Duration::ZERO, |created| conditions::age(created, now));
    match age.as_secs() {
        0..60 => Duration::from_secs(1),
        60..300 => Duration::from_secs(15),
        300..600 => Duration::from_mins(1),
        _ => Duration::from_mins(5),
    }
}
