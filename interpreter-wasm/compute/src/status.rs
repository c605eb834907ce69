//! The status on its way up: out of the member (InterpretStatus) and into the hub's object (AggregateStatus).
//!
//! InterpretStatus: the part of the member's status that goes upward, which is all of it.
//!
//! Unknown fields are carried as they are. Two keys are added for the hub (Karmada's own pattern,
//! [`popcell_sdk::generation`]): `generation` of the member object and `resourceTemplateGeneration`, the hub generation
//! that the member object was made from. Both names are ours in this status; a member's field of the same name is
//! replaced. An annotation that cannot be read is skipped, and the hub then never takes the status for current: the
//! counts matter more than the bookkeeping. No status, `null` and `{}` say nothing and are answered `{}`.
//!
//! AggregateStatus: what the members said, as one status on the hub.
//!
//! - Items without status, or with nothing in it but the two keys that InterpretStatus adds, carry no knowledge and are
//!   skipped; when none is left the object stays as it is, so what a member said last survives its absence.
//! - One item: its status field by field as raw JSON. Several (Karmada moves the object, both cells still report): counts
//!   are summed, conditions merged ([`crate::conditions`]), every other field comes from the first cluster by name that
//!   has it.
//! - `null` fields count as absent: a CRD refuses them, and one refused write would repeat forever.
//! - `observedGeneration` is translated, never copied: it becomes the hub object's generation when **every** item (also
//!   one that was skipped) reports a status of that very generation, else the hub's old number stays. An old number that
//!   the hub object cannot have seen (negative, or beyond its generation) is dropped.
//! - The answer depends on the set of items, the object's generation and its old observedGeneration only: the order of
//!   items does not matter, and an answer that is fed back changes nothing.
//!
//! A count that is no integer or is negative is refused by name where it would have to be added; a sum beyond 2^31-1
//! stays there, since the CRD's counts are int32.

use crate::conditions;
use popcell_sdk::generation;
use popcell_sdk::prelude::*;

/// The status as a whole.
const STATUS: &str = "/status";
/// The counts of a WorkloadDeployment's status.
const COUNTS: &[&str] = &[
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
];
const CONDITIONS: &str = "conditions";
const OBSERVED_GENERATION: &str = "observedGeneration";

/// The status of a member object, always a JSON object.
pub(crate) fn interpret(object: &Object) -> Result<Json> {
    if object.fields(STATUS)?.is_none() {
        return Ok(Json::object::<&str, Json>([]));
    }
    let mut reflected = object.get(STATUS).cloned().unwrap_or_default();
    reflected.retain_fields(|key, _| !is_added(key));
    if reflected.as_fields().is_some_and(|mut fields| fields.next().is_some()) {
        generation::note(&mut reflected, object)?;
    }
    Ok(reflected)
}

/// Whether a key of an interpreted status was added here, and is no field of the member's.
fn is_added(key: &str) -> bool {
    [generation::GENERATION, generation::TEMPLATE_GENERATION]
        .iter()
        .any(|pointer| pointer.strip_prefix('/') == Some(key))
}

/// Sets the status of the hub object from what the members reported.
pub(crate) fn aggregate(object: &mut Object, items: &[StatusItem]) -> Result<()> {
    let reports = reports(items)?;
    if reports.is_empty() {
        return Ok(());
    }
    let generation = translated_generation(object, items);
    let mut left_out = 0;
    object.set(STATUS, merge(&reports, generation, &mut left_out)?)?;
    object.leave_out(u32::try_from(left_out).unwrap_or(u32::MAX));
    Ok(())
}

/// What one cluster said.
struct Report<'a> {
    /// Where the status stands in the request, for refusals.
    path: String,
    cluster: &'a str,
    status: &'a Json,
}

/// Whether a field of a status holds something of the member's.
fn holds(name: &str, value: &Json) -> bool {
    !is_added(name) && !value.is_null()
}

impl<'a> Report<'a> {
    fn fields(&self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        let fields = self.status.as_fields().into_iter().flatten();
        fields.filter(|(name, value)| holds(name, value))
    }

    fn field(&self, name: &str) -> Option<&'a Json> {
        self.status.member(name).filter(|value| holds(name, value))
    }

    fn count(&self, name: &str) -> Result<Option<i64>> {
        let Some(value) = self.field(name) else {
            return Ok(None);
        };
        match value.int("") {
            Ok(Some(count)) if count >= 0 => Ok(Some(count)),
            Ok(Some(count)) => Err(self.refusal(name, &format!("a count, found {count}"))),
            _ => Err(self.refusal(name, &format!("a count, found {}", value.to_text()))),
        }
    }

    fn refusal(&self, name: &str, expected: &str) -> Error {
        Error::invalid(
            format!("{}/{name}", self.path),
            format!("cluster {}: expected {expected}", self.cluster),
        )
    }
}

/// The reports that carry knowledge, by cluster name.
fn reports(items: &[StatusItem]) -> Result<Vec<Report<'_>>> {
    let mut reports = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(status) = &item.status else {
            continue;
        };
        let path = format!("/aggregatedStatus/{index}/status");
        if !status.is_null() && !status.is_object() {
            let message = format!(
                "cluster {}: expected an object, found {}",
                item.cluster_name,
                status.kind_name()
            );
            return Err(Error::invalid(path, message));
        }
        let report = Report {
            path,
            cluster: &item.cluster_name,
            status,
        };
        if report.fields().next().is_some() {
            reports.push(report);
        }
    }
    // Karmada sorts and has each cluster once; the text decides between two of one name, so that order never does.
    reports.sort_by(|a, b| {
        a.cluster
            .cmp(b.cluster)
            .then_with(|| a.status.to_text().cmp(&b.status.to_text()))
    });
    Ok(reports)
}

/// One status made of the reports. Fields stand in the order in which the first cluster that has them gave them.
///
/// It begins as the first report and is amended: most of a status is carried as it is, and a wide one is not built again.
fn merge(reports: &[Report<'_>], generation: Option<i64>, left_out: &mut usize) -> Result<Json> {
    let Some((first, others)) = reports.split_first() else {
        return Ok(Json::object::<&str, Json>([]));
    };
    let mut merged = first.status.clone();
    merged.retain_fields(holds);
    for report in others {
        for (name, value) in report.fields() {
            if merged.member(name).is_none() {
                merged.set_member(name, value.clone());
            }
        }
    }
    if reports.len() > 1 {
        for count in COUNTS.iter().filter(|count| has(reports, count)) {
            merged.set_member(count, sum(reports, count)?);
        }
    }
    if has(reports, CONDITIONS) {
        let lists = reports.iter().filter_map(|report| report.field(CONDITIONS));
        match conditions::merge(lists, generation, left_out)? {
            Some(conditions) => merged.set_member(CONDITIONS, conditions),
            None => merged.retain_fields(|name, _| name != CONDITIONS),
        }
    }
    match generation {
        Some(generation) => merged.set_member(OBSERVED_GENERATION, generation),
        None => merged.retain_fields(|name, _| name != OBSERVED_GENERATION),
    }
    Ok(merged)
}

fn has(reports: &[Report<'_>], name: &str) -> bool {
    reports.iter().any(|report| report.field(name).is_some())
}

fn sum(reports: &[Report<'_>], name: &str) -> Result<i64> {
    let mut sum = 0_i64;
    for report in reports {
        sum = sum.saturating_add(report.count(name)?.unwrap_or(0));
    }
    Ok(sum.min(i64::from(i32::MAX)))
}

/// The generation of the hub object that the merged status speaks of.
fn translated_generation(object: &Object, items: &[StatusItem]) -> Option<i64> {
    let current = readable_int(object, "/metadata/generation");
    // What cannot be read was not observed; the member says -1 before it has looked.
    if items
        .iter()
        .all(|item| generation::has_observed(item, current).unwrap_or(false))
    {
        return current;
    }
    let old = readable_int(object, "/status/observedGeneration");
    old.filter(|old| *old >= 0 && current.is_none_or(|current| *old <= current))
}

/// A number that may be missing or unreadable without making the rest of the answer worthless: either is `None`.
fn readable_int(json: &Json, pointer: &str) -> Option<i64> {
    json.int(pointer).ok().flatten()
}
