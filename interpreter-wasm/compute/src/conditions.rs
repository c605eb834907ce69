//! Conditions of several members as one list.
//!
//! A condition that breaks the schema of `metav1.Condition` is skipped, since the API server would refuse the whole
//! status for it, at every try; so is all but the first of one type, and a `conditions` that is no list. How many were left
//! out is told to the host, which counts them; the answer is not the place: a field for the number would be pruned by the
//! CRD and be written forever. The member's own API server refuses such conditions, so none is expected here.
//!
//! Messages are cut to [`MESSAGE_LIMIT`] bytes between two characters. `observedGeneration` is the translated number of
//! the whole status, or absent.

use std::collections::{BTreeMap, BTreeSet};

use crate::condition_schema;
use popcell_sdk::generation::OBSERVED_GENERATION;
use popcell_sdk::prelude::*;

/// Longest message that goes upward, in bytes of UTF-8.
pub(crate) const MESSAGE_LIMIT: usize = 1024;

/// How the statuses of one type in several clusters become one.
#[derive(Clone, Copy)]
enum Rule {
    /// True in one cluster is true.
    Any,
    /// True only where it is true in all.
    All,
    /// The first cluster by name speaks.
    First,
}

impl Rule {
    fn of(kind: &str) -> Self {
        match kind {
            "Available" => Self::Any,
            "ReplicasReady" => Self::All,
            _ => Self::First,
        }
    }

    /// The lowest rank decides; among equals the first cluster.
    fn rank(self, status: &str) -> u8 {
        match (self, status) {
            (Self::First, _) | (Self::Any, "True") | (Self::All, "False") => 0,
            (_, "Unknown") => 1,
            _ => 2,
        }
    }
}

/// A condition that keeps the schema.
#[derive(Clone, Copy)]
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    message: &'a str,
    json: &'a Json,
}

/// Merges the `conditions` fields of the members, given by cluster name, and adds to `left_out` what cannot go upward.
/// `None` when none of them is a list.
pub(crate) fn merge<'a>(
    lists: impl Iterator<Item = &'a Json>,
    generation: Option<i64>,
    left_out: &mut usize,
) -> Result<Option<Json>> {
    // In the order in which types were first seen.
    let mut deciding: Option<(Vec<Condition<'a>>, BTreeMap<&'a str, usize>)> = None;
    for list in lists {
        let Some(entries) = list.as_items() else {
            *left_out += 1;
            continue;
        };
        let (deciding, places) = deciding.get_or_insert_default();
        let readable = readable(entries);
        *left_out += entries.len() - readable.len();
        for condition in readable {
            let place = *places.entry(condition.kind).or_insert(deciding.len());
            match deciding.get_mut(place) {
                None => deciding.push(condition),
                Some(known) => {
                    let rule = Rule::of(condition.kind);
                    if rule.rank(condition.status) < rule.rank(known.status) {
                        *known = condition;
                    }
                }
            }
        }
    }
    let Some((deciding, _)) = deciding else {
        return Ok(None);
    };
    let merged = deciding
        .into_iter()
        .map(|condition| condition.upward(generation))
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Json::array(merged)))
}

/// The conditions of one list that can go upward, one of each type.
fn readable(entries: &[Json]) -> Vec<Condition<'_>> {
    let mut kinds = BTreeSet::new();
    entries
        .iter()
        .filter_map(Condition::read)
        .filter(|condition| kinds.insert(condition.kind))
        .collect()
}

impl<'a> Condition<'a> {
    /// `None` when the entry breaks the schema. Its `observedGeneration` is not looked at: it is replaced anyway.
    fn read(json: &'a Json) -> Option<Self> {
        // Not the readers that name what is wrong: it is not reported, and a list can be long.
        let text = |pointer: &str| json.get(pointer)?.as_text();
        let kind = text("/type").filter(|kind| condition_schema::is_type(kind))?;
        let status = text("/status").filter(|status| condition_schema::is_status(status))?;
        let message = text("/message")?;
        text("/reason").filter(|reason| condition_schema::is_reason(reason))?;
        text("/lastTransitionTime").filter(|time| condition_schema::is_date_time(time))?;
        Some(Self {
            kind,
            status,
            message,
            json,
        })
    }

    /// The condition as it stands on the hub.
    fn upward(self, generation: Option<i64>) -> Result<Json> {
        let mut json = self.json.clone();
        if self.message.len() > MESSAGE_LIMIT {
            let end = self.message.floor_char_boundary(MESSAGE_LIMIT);
            json.set("/message", self.message.get(..end).unwrap_or_default())?;
        }
        match generation {
            Some(generation) => json.set(OBSERVED_GENERATION, generation)?,
            None => {
                json.remove(OBSERVED_GENERATION)?;
            }
        }
        Ok(json)
    }
}
