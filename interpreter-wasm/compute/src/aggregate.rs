//! AggregateStatus: what the members said, as one status on the hub.
//!
//! - Items without status, or with nothing in it but the two keys that [`crate::status`] adds, carry no knowledge and are
//!   skipped; when none is left the object stays as it is, so what a member said last survives its absence.
//! - One item: its status field by field as raw JSON. Several (Karmada moves the object, both cells still report): counts
//!   are summed, conditions merged ([`crate::conditions`]), every other field comes from the first cluster by name that
//!   has it.
//! - `null` fields count as absent: a CRD refuses them, and one refused write would repeat for ever.
//! - `observedGeneration` is translated, never copied: it becomes the hub object's generation when **every** item (also
//!   one that was skipped) reports a status of that very generation, else the hub's old number stays. An old number that
//!   the hub object cannot have seen (negative, or beyond its generation) is dropped.
//! - The answer depends on the set of items, the object's generation and its old observedGeneration only: the order of
//!   items does not matter, and an answer that is fed back changes nothing.
//!
//! A count that is no integer or is negative is refused by name where it would have to be added; a sum beyond 2^31-1
//! stays there, since the CRD's counts are int32.

use crate::{conditions, fields, status};
use popcell_sdk::generation;
use popcell_sdk::prelude::*;

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

/// Sets the status of the hub object from what the members reported.
pub(crate) fn aggregate(object: &mut Object, items: &[StatusItem]) -> Result<()> {
    let reports = reports(items)?;
    if reports.is_empty() {
        return Ok(());
    }
    let generation = translated_generation(object, items);
    let mut left_out = 0;
    object.set(fields::STATUS, merge(&reports, generation, &mut left_out)?)?;
    object.leave_out(u32::try_from(left_out).unwrap_or(u32::MAX));
    Ok(())
}

/// What one cluster said: the fields of its status that hold something.
struct Report<'a> {
    /// Where the status stands in the request, for refusals.
    path: String,
    cluster: &'a str,
    fields: Vec<(&'a str, &'a Json)>,
}

impl<'a> Report<'a> {
    fn field(&self, name: &str) -> Option<&'a Json> {
        self.fields
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
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
        let Ok(fields) = status.fields("") else {
            let message = format!(
                "cluster {}: expected an object, found {}",
                item.cluster_name,
                status.kind_name()
            );
            return Err(Error::invalid(path, message));
        };
        let fields: Vec<_> = fields
            .into_iter()
            .flatten()
            .filter(|(key, value)| !status::is_added(key) && !value.is_null())
            .collect();
        if !fields.is_empty() {
            reports.push((
                status,
                Report {
                    path,
                    cluster: &item.cluster_name,
                    fields,
                },
            ));
        }
    }
    // Karmada sorts and has each cluster once; the text decides between two of one name, so that order never does.
    reports.sort_by(|(a_status, a), (b_status, b)| {
        a.cluster
            .cmp(b.cluster)
            .then_with(|| a_status.to_text().cmp(&b_status.to_text()))
    });
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

/// One status made of the reports. Fields stand in the order in which the first cluster that has them gave them.
fn merge(reports: &[Report<'_>], generation: Option<i64>, left_out: &mut usize) -> Result<Json> {
    let mut merged: Vec<(String, Json)> = Vec::new();
    for report in reports {
        for (name, value) in &report.fields {
            if merged.iter().any(|(key, _)| key == name) {
                continue;
            }
            let value = match *name {
                OBSERVED_GENERATION => generation.map(Json::from),
                CONDITIONS => {
                    let lists = reports.iter().filter_map(|report| report.field(CONDITIONS));
                    conditions::merge(lists, generation, left_out)?
                }
                count if COUNTS.contains(&count) && reports.len() > 1 => Some(Json::from(sum(reports, count)?)),
                _ => Some((*value).clone()),
            };
            merged.extend(value.map(|value| ((*name).to_owned(), value)));
        }
    }
    if let Some(generation) = generation
        && !merged.iter().any(|(key, _)| key == OBSERVED_GENERATION)
    {
        merged.push((OBSERVED_GENERATION.to_owned(), Json::from(generation)));
    }
    Ok(Json::object(merged))
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
    let current = fields::readable_int(object, "/metadata/generation");
    // What cannot be read was not observed; the member says -1 before it has looked.
    if items
        .iter()
        .all(|item| generation::has_observed(item, current).unwrap_or(false))
    {
        return current;
    }
    let old = fields::readable_int(object, "/status/observedGeneration");
    old.filter(|old| *old >= 0 && current.is_none_or(|current| *old <= current))
}
