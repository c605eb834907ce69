//! Status from the hub to the project: whole, with generations of this plane. A generation that the hub observed means
//! nothing here, so it is translated and never copied.
//!
//! Why: `docs/decisions/13-generations.md` and `docs/decisions/12-reasons-where-users-look.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::{annotations, karmada};
use serde_json::{Map, Value, json};

use super::{DELETING, unavailable};
use crate::conditions::{self, COUNTS, Condition};
use crate::object::{Fields, Object};

/// How long a city may be without a cluster before that is reported in the project.
pub(super) const UNPLACED_GRACE: Duration = Duration::from_mins(1);

/// The status that the project should show, and when to look again; `None` leaves it as it is.
pub(super) fn status(
    project: &Object,
    hub: Option<&Object>,
    binding: Option<&Object>,
    now: Timestamp,
) -> (Option<Value>, Option<Duration>) {
    let city = project.text("/spec/cityCode").unwrap_or_default();
    let mut look_again = None;
    let about_it = |binding: &&Object| {
        let about = binding.text("/spec/resource/uid");
        hub.is_some_and(|hub| about.is_none_or(|uid| uid == hub.uid()))
    };
    if let Some(since) = binding.filter(about_it).and_then(unplaced_since) {
        let left = UNPLACED_GRACE.saturating_sub(conditions::age(since, now));
        if left.is_zero() {
            let reported = unavailable(reasons::NO_MATCHING_LOCATION, messages::no_matching_location(city));
            return (Some(zeros(project, &reported, now)), None);
        }
        look_again = Some(left);
    }
    let mirrored = hub.and_then(|hub| translated(project, hub)).map(Value::Object);
    let status = mirrored.or_else(|| says_nothing_of_the_city(project).then(|| waiting(project, now)));
    (status, look_again)
}

/// What a project shows before the first read of the hub.
pub(super) fn first(project: &Object, now: Timestamp) -> Option<Value> {
    let said = project
        .at("/status")
        .is_some_and(|status| !conditions::all(status).is_empty());
    (!said).then(|| waiting(project, now))
}

fn waiting(project: &Object, now: Timestamp) -> Value {
    let city = project.text("/spec/cityCode").unwrap_or_default();
    let reported = Condition::new(
        types::AVAILABLE,
        false,
        reasons::PROVISIONING_INSTANCES,
        messages::waiting_for_city(city),
    );
    zeros(project, &reported, now)
}

/// The hub's status with this plane's generations; `None` while the hub has none, so that an empty status blanks
/// nothing.
fn translated(project: &Object, hub: &Object) -> Option<Map<String, Value>> {
    let mut status = hub.at("/status")?.as_object()?.clone();
    if status.is_empty() {
        return None;
    }
    let seen = hub.int("/status/observedGeneration");
    let observed = if seen.is_some() && seen == hub.generation() {
        hub.annotation(annotations::UPSTREAM_GENERATION)
            .and_then(|generation| generation.parse().ok())
    } else {
        None
    };
    let observed: Option<i64> = observed.or_else(|| project.int("/status/observedGeneration"));
    put_generation(&mut status, observed);
    if let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        for condition in list.iter_mut().filter_map(Value::as_object_mut) {
            put_generation(condition, observed);
        }
    }
    complete(&mut status);
    Some(status)
}

/// Every count that is missing is 0: the schema requires each.
fn complete(status: &mut Map<String, Value>) {
    for count in COUNTS {
        status.entry(count).or_insert_with(|| json!(0));
    }
}

fn put_generation(fields: &mut Map<String, Value>, generation: Option<i64>) {
    match generation {
        Some(generation) => fields.insert("observedGeneration".to_owned(), json!(generation)),
        None => fields.remove("observedGeneration"),
    };
}

/// The project's own status with one condition of ours in it, and every count.
pub(super) fn overlay(project: &Object, condition: &Condition, now: Timestamp) -> Value {
    let observed = project.int("/status/observedGeneration");
    let mut status = crate::paused::reported_instead(project, condition, observed, now);
    complete(&mut status);
    Value::Object(status)
}

/// What the city reports, with one condition of ours in the place of its own; where it reports nothing, the project's own
/// status with it.
pub(super) fn beside(project: &Object, hub: Option<&Object>, condition: &Condition, now: Timestamp) -> Value {
    let Some(mut status) = hub.and_then(|hub| translated(project, hub)) else {
        return overlay(project, condition, now);
    };
    let observed = status.get("observedGeneration").and_then(Value::as_i64);
    conditions::put_in(&mut status, condition.render(project.at("/status"), observed, now));
    Value::Object(status)
}

/// A status, or the project's own where there is none to show, with what stops its way: in ReplicasReady, whatever runs, and
/// in Available where nothing does.
pub(super) fn stopped(project: &Object, shown: Option<Value>, reason: &str, message: &str, now: Timestamp) -> Value {
    let reported = |type_| Condition::new(type_, false, reason, message.to_owned());
    let mut status = shown.unwrap_or_else(|| overlay(project, &reported(types::REPLICAS_READY), now));
    let observed = project.int("/status/observedGeneration");
    let available = conditions::find(&status, types::AVAILABLE);
    let serves = available.is_some_and(|one| conditions::text(one, "status") == "True");
    let types = [types::REPLICAS_READY, types::AVAILABLE];
    if let Some(fields) = status.as_object_mut() {
        for type_ in types.into_iter().take(if serves { 1 } else { 2 }) {
            conditions::put_in(fields, reported(type_).render(project.at("/status"), observed, now));
        }
    }
    status
}

/// Nothing runs: zero counts, and no condition but this one.
fn zeros(project: &Object, condition: &Condition, now: Timestamp) -> Value {
    let mut status = Map::new();
    complete(&mut status);
    let observed = project.int("/status/observedGeneration");
    put_generation(&mut status, observed);
    conditions::put_in(&mut status, condition.render(project.at("/status"), observed, now));
    Value::Object(status)
}

/// The project has no status, or only one that we wrote before the city spoke.
fn says_nothing_of_the_city(project: &Object) -> bool {
    let Some(status) = project.at("/status") else {
        return true;
    };
    let Some(available) = conditions::find(status, types::AVAILABLE) else {
        return conditions::all(status).is_empty()
            && COUNTS
                .iter()
                .all(|count| project.int(&format!("/status/{count}")).unwrap_or(0) == 0);
    };
    let reason = conditions::text(available, "reason");
    conditions::needs_an_edit(reason)
        || reason == reasons::REJECTED
        || reason == DELETING
        || reason == reasons::NO_MATCHING_LOCATION
        || reason == reasons::INSTANCE_TYPE_NOT_FOUND
        || conditions::text(available, "message")
            == messages::waiting_for_city(project.text("/spec/cityCode").unwrap_or_default())
}

/// Since when a binding that the scheduler has dealt with has no cluster.
///
/// Karmada notes the generation that it dealt with only where it found a cluster; that it found none is in the condition.
fn unplaced_since(binding: &Object) -> Option<Timestamp> {
    let scheduled = conditions::of(binding, karmada::SCHEDULED);
    let says = |field: &str, value: &str| scheduled.is_some_and(|one| conditions::text(one, field) == value);
    let none_fits = says("status", "False") && says("reason", karmada::NO_CLUSTER_FIT);
    let noted = binding.int("/status/schedulerObservedGeneration");
    let is_current = noted.is_some() && noted == binding.generation();
    if !binding.items("/spec/clusters").is_empty() || !(none_fits || is_current) {
        return None;
    }
    let since = scheduled.map(|condition| conditions::text(condition, "lastTransitionTime"));
    since.and_then(|time| time.parse().ok()).or_else(|| binding.created())
}
