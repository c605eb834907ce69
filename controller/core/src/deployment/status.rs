//! Status of a WorkloadDeployment in its cell.
//!
//! Why: `docs/decisions/12-reasons-where-users-look.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::{kind, labels};
use serde_json::{Value, json};

use super::autoscaler;
use super::networks::State;
use super::rollout::{self, Instances};
use super::template::Template;
use crate::conditions::{self, BLOCKING, COUNTS, Condition, priority};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::Target;
use crate::sizing::{self, Described};
use crate::{fields, paused, slots};

/// A teardown that takes longer is reported.
pub(super) const TEARDOWN: Duration = Duration::from_mins(1);

/// Numbers of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    replicas: i32,
    current: i32,
    updated: i32,
    desired: i32,
    ready: i32,
    blocked: i32,
}

/// What keeps the plan from its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hindrance<'a> {
    /// An object of another owner at a name that is needed.
    pub(super) held: Option<&'a Target>,
    /// What the server refuses, in its words.
    pub(super) rejected: Option<&'a str>,
    /// Whether its city may be used.
    pub(super) served: Observed<bool>,
    /// Whether a Workload reports that.
    pub(super) derived: bool,
    /// The catalogue does not have its instance type, in words for people.
    pub(super) unsized_type: Option<&'a str>,
}

impl Hindrance<'_> {
    /// Its city may not be used, and no Workload reports that.
    pub(super) fn is_unserved(self) -> bool {
        self.served == Observed::Known(false) && !self.derived
    }

    /// Whether what an Instance says is reported before what is refused.
    fn is_outweighed_by(self, worst: &Worst<'_>) -> bool {
        self.rejected.is_none() || priority(worst.reason) > priority(reasons::REJECTED)
    }
}

/// The whole status; fields and conditions of others stay. `networks` is `None` where networking is off.
pub(super) fn render(
    deployment: &Object,
    template: Option<&Template<'_>>,
    instances: &[&Object],
    (networks, autoscaling): (Option<&State>, &autoscaler::Report),
    hindrance: Hindrance<'_>,
    now: Timestamp,
) -> Value {
    let old = deployment.at("/status");
    let mut status = old.and_then(Value::as_object).cloned().unwrap_or_default();
    let counts = count(deployment, template, instances, hindrance.served);
    let numbers = [
        counts.replicas,
        counts.current,
        counts.updated,
        counts.desired,
        counts.ready,
    ];
    for (field, number) in COUNTS.into_iter().zip(numbers) {
        status.insert(field.to_owned(), json!(number));
    }
    if let Some(generation) = deployment.generation() {
        status.insert("observedGeneration".to_owned(), json!(generation));
    }
    if let Some(location) = networks.and_then(|networks| networks.location.clone()) {
        status.insert("location".to_owned(), location);
    }
    let selector = format!("{}={}", labels::WORKLOAD_DEPLOYMENT_UID, deployment.uid());
    status.insert("selector".to_owned(), json!(selector));
    paused::lift(&mut status);
    let autoscaling = match autoscaling {
        autoscaler::Report::Says(condition) => Some(condition.clone()),
        autoscaler::Report::Unchanged => None,
        autoscaler::Report::Nothing => {
            conditions::take_out(&mut status, types::AUTOSCALING);
            None
        }
    };
    let (stuck, worst) = (stuck(instances, now), worst(instances));
    let reported = [
        Some(replicas_ready(counts, stuck, hindrance, worst.as_ref())),
        available(deployment, counts, worst.as_ref(), networks, hindrance),
        autoscaling,
    ];
    for condition in reported.into_iter().flatten() {
        conditions::put_in(&mut status, condition.render(old, deployment.generation(), now));
    }
    fields::show(
        &mut status,
        kind::WORKLOAD_DEPLOYMENT,
        deployment,
        deployment.generation(),
        now,
    );
    Value::Object(status)
}

/// How many slots were asked for when that was last reported: more is not asked of a city that may not be used.
pub(super) fn desired_before(deployment: &Object) -> i64 {
    deployment.int("/status/desiredReplicas").unwrap_or_default()
}

fn count(
    deployment: &Object,
    template: Option<&Template<'_>>,
    instances: &[&Object],
    served: Observed<bool>,
) -> Counts {
    let asked = slots::desired(deployment);
    let desired = if served == Observed::Known(true) {
        asked
    } else {
        asked.min(desired_before(deployment))
    };
    let hash = template.map(|template| template.hash.as_str());
    let updated = |one: &&&Object| hash.is_some() && one.text("/status/controller/observedTemplateHash") == hash;
    let programmed = |one: &&&Object| conditions::says(one, types::PROGRAMMED, "True");
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let all = || instances.iter();
    Counts {
        replicas: number(instances.len()),
        current: number(all().filter(updated).filter(programmed).count()),
        updated: number(all().filter(updated).count()),
        desired: i32::try_from(desired).unwrap_or(i32::MAX),
        ready: number(all().filter(|one| rollout::is_ready(one)).count()),
        blocked: number(
            all()
                .filter(|one| conditions::says(one, types::QUOTA_GRANTED, "False"))
                .count(),
        ),
    }
}

/// The Instance that has been going for longest, once that is too long.
fn stuck<'a>(instances: &[&'a Object], now: Timestamp) -> Option<(&'a Object, Timestamp)> {
    let since = |one: &&'a Object| Some((*one, one.metadata.deletion_timestamp.as_ref()?.0));
    let oldest = instances.iter().filter_map(since).min_by_key(|(_, since)| *since)?;
    (now.duration_since(oldest.1) >= TEARDOWN.try_into().unwrap_or_default()).then_some(oldest)
}

/// When the first teardown that is under way is to be reported.
pub(super) fn next_look(instances: &[&Object], now: Timestamp) -> Option<Duration> {
    let since = |one: &&Object| Some(one.metadata.deletion_timestamp.as_ref()?.0);
    instances
        .iter()
        .filter_map(since)
        .map(|since| conditions::age(since, now))
        .filter(|passed| *passed < TEARDOWN)
        .map(|passed| TEARDOWN.saturating_sub(passed))
        .min()
}

fn replicas_ready(
    counts: Counts,
    stuck: Option<(&Object, Timestamp)>,
    hindrance: Hindrance<'_>,
    worst: Option<&Worst<'_>>,
) -> Condition {
    let reported = |holds, reason: &str, message: String| Condition::new(types::REPLICAS_READY, holds, reason, message);
    let available = messages::replicas_available(counts.ready, counts.desired);
    if counts.blocked > 0 && hindrance.rejected.is_none() {
        let message = messages::replicas_pending_quota(counts.blocked, counts.desired);
        return reported(false, reasons::QUOTA_EXCEEDED, message);
    }
    if let Some((instance, since)) = stuck {
        let message = messages::being_torn_down(instance.name(), &conditions::seconds(since));
        return reported(false, reasons::INSTANCE_TERMINATING, message);
    }
    if let Some(message) = hindrance.unsized_type {
        return reported(
            false,
            reasons::INSTANCE_TYPE_NOT_FOUND,
            format!("{available}; {message}"),
        );
    }
    if counts.ready < counts.desired {
        return match (worst, hindrance) {
            (Some(worst), _) if hindrance.is_outweighed_by(worst) => {
                let message = format!("{available}; {}: {}", worst.name, worst.message);
                reported(false, worst.reason, message)
            }
            (
                _,
                Hindrance {
                    rejected: Some(rejected),
                    ..
                },
            ) => reported(false, reasons::REJECTED, format!("{available}; {rejected}")),
            (_, Hindrance { held: Some(held), .. }) => {
                let message = format!("{available}; {}", held_by_another(held));
                reported(false, reasons::NAME_CONFLICT, message)
            }
            _ => reported(false, reasons::PROVISIONING_INSTANCES, available),
        };
    }
    if let Some(rejected) = hindrance.rejected {
        return reported(false, reasons::REJECTED, format!("{available}; {rejected}"));
    }
    reported(true, reasons::REPLICAS_AVAILABLE, available)
}

fn held_by_another(held: &Target) -> String {
    messages::held_by_another(held.kind.kind, &held.name)
}

/// `None`: it stays as it is, since nothing is asked for.
fn available(
    deployment: &Object,
    counts: Counts,
    worst: Option<&Worst<'_>>,
    networks: Option<&State>,
    hindrance: Hindrance<'_>,
) -> Option<Condition> {
    let reported =
        |holds, reason: &str, message: String| Some(Condition::new(types::AVAILABLE, holds, reason, message));
    if hindrance.is_unserved() {
        return reported(false, reasons::NO_MATCHING_LOCATION, super::unserved(deployment));
    }
    if counts.ready > 0 {
        let message = messages::instances_ready(counts.ready, counts.replicas);
        return reported(true, reasons::STABLE_INSTANCE_FOUND, message);
    }
    if let Some(message) = hindrance.unsized_type {
        return reported(false, reasons::INSTANCE_TYPE_NOT_FOUND, message.to_owned());
    }
    if networks.is_some_and(|networks| networks.nowhere) {
        return reported(false, reasons::NO_MATCHING_LOCATION, super::unserved(deployment));
    }
    if let Some(worst) = worst.filter(|worst| hindrance.is_outweighed_by(worst)) {
        return reported(false, worst.reason, worst.message.to_owned());
    }
    if let Some(rejected) = hindrance.rejected {
        return reported(false, reasons::REJECTED, rejected.to_owned());
    }
    if let Some(held) = hindrance.held {
        return reported(false, reasons::NAME_CONFLICT, held_by_another(held));
    }
    if networks.is_some_and(|networks| !networks.ready) {
        let message = messages::NETWORK_BEING_PROVISIONED.to_owned();
        return reported(false, reasons::PROVISIONING_NETWORK, message);
    }
    if counts.replicas == 0 && counts.desired == 0 {
        return None;
    }
    let message = messages::INSTANCES_BEING_PROVISIONED.to_owned();
    reported(false, reasons::PROVISIONING_INSTANCES, message)
}

/// The status of one that was never taken in, and cannot be; fields and conditions of others stay.
pub(super) fn refused(deployment: &Object, reason: &str, message: &str, now: Timestamp) -> Value {
    let available = Condition::new(types::AVAILABLE, false, reason, message.to_owned());
    Value::Object(paused::reported_instead(
        deployment,
        &available,
        deployment.generation(),
        now,
    ))
}

/// Why an Instance is not Ready.
struct Worst<'a> {
    name: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// The reason of Ready with the highest priority, where that is one to act on; of the lowest slot among equals.
fn worst<'a>(instances: &[&'a Object]) -> Option<Worst<'a>> {
    let blocking = |one: &&'a Object| {
        let ready = conditions::of(one, types::READY).filter(|_| !one.deleting())?;
        let reason = conditions::text(ready, "reason");
        let priority = priority(reason);
        let worst = Worst {
            name: one.name(),
            reason,
            message: conditions::text(ready, "message"),
        };
        (priority >= BLOCKING).then_some((priority, worst))
    };
    let mut worst: Option<(u8, Worst<'_>)> = None;
    for found in instances.iter().filter_map(blocking) {
        if worst.as_ref().is_none_or(|known| found.0 > known.0) {
            worst = Some(found);
        }
    }
    worst.map(|(_, worst)| worst)
}

/// Ordinals whose claim is granted: those whose Instance says so, and of the others that are wanted those that were
/// remembered and not denied since. What was granted to another size than the template has now is no grant for the next
/// Instance of the slot, whether there is one yet or not.
pub(super) fn granted(
    deployment: &Object,
    template: Option<Described<'_>>,
    instances: &Instances<'_>,
) -> std::collections::BTreeSet<i64> {
    let desired = slots::desired(deployment);
    let remembered = slots::granted(deployment, template);
    let candidates = (0..desired).chain(instances.slots.keys().copied());
    let size = template.map(sizing::requests);
    candidates
        .filter(|ordinal| {
            let instance = instances.slots.get(ordinal).map(|slot| slot.instance);
            if instance.is_some_and(|one| Described::at(one, "/spec").map(sizing::requests) != size) {
                return false;
            }
            let condition = instance.and_then(|one| conditions::of(one, types::QUOTA_GRANTED));
            let (status, reason) = condition.map_or(("", ""), |one| {
                (conditions::text(one, "status"), conditions::text(one, "reason"))
            });
            match status {
                "True" => reason != reasons::QUOTA_DISABLED,
                "False" if reason == reasons::QUOTA_EXCEEDED || reason == reasons::VALIDATION_FAILED => false,
                _ => remembered.contains(ordinal),
            }
        })
        .collect()
}
