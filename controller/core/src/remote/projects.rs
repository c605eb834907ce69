//! The projects that may hold claims of this cell: ConfigMap `popcell-claim-projects`.
//!
//! A project is written down before its first claim, so that after a restart its claims are watched, and given back, also
//! where no cell namespace speaks of it any more. Its key is the project id. Its value is empty, or the time since when the
//! server of projects does not know it.
//!
//! Why: `docs/decisions/06-copies-and-claims-by-level.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use popcell_api::names::CLAIM_PROJECTS;
use serde_json::{Value, json};

use crate::conditions::{age, seconds};
use crate::edit;
use crate::names;
use crate::object::Object;
use crate::plan::{Action, Plan, Plane};

#[cfg(test)]
mod tests;

/// How long a project must have been unknown to the server of projects before it is forgotten.
pub const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);
/// How soon one that is unknown is asked for again.
const ASKED_AGAIN: Duration = Duration::from_hours(1);

/// What a live question after one project was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A LIST of claims with our label, over all its namespaces, has items or none.
    Claims(bool),
    /// Whoever serves projects answers NotFound for it.
    NotFound,
}

/// What a reconcile over the ConfigMap looks at. It is in the cell, which is known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The ConfigMap.
    pub record: Option<&'a Object>,
    /// Its namespace: the program's.
    pub namespace: &'a str,
    /// Projects whose claims a reconcile may want to write, or are known to be there: those of cell namespaces that hold an
    /// Instance or a WorkloadDeployment, and those in which a claim of ours was seen.
    pub needed: &'a BTreeSet<&'a str>,
    /// Projects that any cell namespace speaks of.
    pub mapped: &'a BTreeSet<&'a str>,
    /// Answers for [`doubtful`] projects, read live in this reconcile; one that was not answered is not in it.
    pub answers: &'a BTreeMap<&'a str, Answer>,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// The projects that are written down.
pub fn recorded(record: Option<&Object>) -> impl Iterator<Item = (&str, &Value)> {
    let data = edit::data(record);
    data.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// Recorded projects that the cell no longer needs: these are to be read live.
pub fn doubtful<'a>(record: Option<&'a Object>, needed: &BTreeSet<&str>) -> Vec<&'a str> {
    let asked = |project: &&str| !needed.contains(*project) && names::check_project(project).is_ok();
    recorded(record).map(|(project, _)| project).filter(asked).collect()
}

/// Writes a project down; `None` when it is.
pub(super) fn record(record: Option<&Object>, namespace: &str, project: &str) -> Option<Action> {
    let mut data = edit::data(record).cloned().unwrap_or_default();
    if data.contains_key(project) {
        return None;
    }
    data.insert(project.to_owned(), json!(""));
    edit::config_map(&Plane::Cell, record, namespace, CLAIM_PROJECTS, data)
}

/// Decides one reconcile: writes down what is needed and is not there, and forgets what is proven to hold no claim.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut data = edit::data(seen.record).cloned().unwrap_or_default();
    for project in seen.needed {
        // One that is needed is not counted as unknown, whatever was noted.
        data.insert((*project).to_owned(), json!(""));
    }
    for (project, value) in recorded(seen.record).filter(|(project, _)| !seen.needed.contains(project)) {
        match seen.answers.get(project) {
            Some(Answer::Claims(false)) => {
                data.remove(project);
            }
            Some(Answer::Claims(true)) => {
                data.insert(project.to_owned(), json!(""));
            }
            Some(Answer::NotFound) => match left(value, seen.now) {
                None => {
                    data.insert(project.to_owned(), json!(seconds(seen.now)));
                    plan.requeue_within(ASKED_AGAIN);
                }
                Some(left) if left.is_zero() && !seen.mapped.contains(project) => {
                    data.remove(project);
                }
                Some(left) if left.is_zero() => plan.requeue_within(ASKED_AGAIN),
                Some(left) => plan.requeue_within(left.min(ASKED_AGAIN)),
            },
            None => {}
        }
    }
    let write = edit::config_map(&Plane::Cell, seen.record, seen.namespace, CLAIM_PROJECTS, data);
    plan.actions.extend(write);
    plan
}

/// How long it must go on to be unknown; `None` where nothing readable is noted.
fn left(value: &Value, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = value.as_str()?.parse().ok()?;
    Some(FORGOTTEN_AFTER.saturating_sub(age(since, now)))
}
