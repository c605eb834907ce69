//! The one thing that is wrong with an object, the first in the order in which people would mend it. Pure.

use popcell_api::{
    annotations,
    conditions::{self as types, messages, reasons},
};
use popcell_core::{
    conditions::{find, text},
    object::{Fields as _, Object},
    paused::is_paused,
};
use serde_json::Value;

/// Something that stands in the way of any object, whatever its kind.
pub(super) fn of_any(object: &Object) -> Option<String> {
    if let Some(since) = &object.metadata.deletion_timestamp {
        let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
        let waits = match finalizers {
            [] => String::new(),
            some => format!(", waits for {}", some.join(", ")),
        };
        return Some(format!("is being deleted since {}{waits}", since.0));
    }
    is_paused(object).then(|| format!("paused by annotation {}", annotations::PAUSED))
}

/// A Workload or a WorkloadDeployment, on any plane where its controller runs.
pub(super) fn of_available(object: &Object) -> Option<String> {
    of_any(object)
        .or_else(|| unobserved(object))
        .or_else(|| unless(object, types::AVAILABLE, "no status yet"))
}

/// Its controller has not seen the current spec.
fn unobserved(object: &Object) -> Option<String> {
    let (generation, observed) = (object.generation()?, object.int("/status/observedGeneration")?);
    let is_behind = observed < generation;
    is_behind.then(|| format!("not taken up yet: generation {generation}, observed {observed}"))
}

/// The condition of a type where it is not True, or `without` where there is none.
pub(super) fn unless(object: &Object, type_: &str, without: &str) -> Option<String> {
    match object.at("/status").and_then(|status| find(status, type_)) {
        None => Some(without.to_owned()),
        Some(condition) if text(condition, "status") == "True" => None,
        Some(condition) => Some(said(condition)),
    }
}

/// The condition of a type where it is False.
pub(super) fn if_false(object: &Object, type_: &str) -> Option<String> {
    let condition = find(object.at("/status")?, type_)?;
    (text(condition, "status") == "False").then(|| said(condition))
}

/// Why a placement has no WorkloadDeployment in a city: what the Workload says of it, or else what to look at.
pub(crate) fn not_made(workload: &Object, placement: &str, city: &str) -> String {
    let placements = workload.items("/status/placements");
    let reported = placements.iter().find(|one| text(one, "name") == placement);
    let available = reported.and_then(|reported| find(reported, types::AVAILABLE));
    let no_location = messages::no_matching_location(city);
    match available {
        Some(available) if text(available, "message").contains(&no_location) => {
            format!("not made: {}: {no_location}", reasons::NO_MATCHING_LOCATION)
        }
        Some(available) if text(available, "status") == "False" => format!("not made: {}", said(available)),
        _ => "not made: does the controller run, and is this project Ready and engaged?".to_owned(),
    }
}

/// Reason and message, whichever there are.
fn said(condition: &Value) -> String {
    let (reason, message) = (text(condition, "reason"), text(condition, "message").trim());
    match (reason, message) {
        ("", "") => format!("{} is {}", text(condition, "type"), text(condition, "status")),
        ("", only) | (only, "") => only.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}
