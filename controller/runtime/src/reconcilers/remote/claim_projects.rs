//! What a reconcile over the record of projects with claims looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind;
use popcell_api::labels;
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Plan, Plane, Target};
use popcell_core::remote::projects::{self, Answer, Observation};

use crate::apply::ApplyError;
use crate::cell::{Asked, Cell};
use crate::context::Context;
use crate::reconcile::{LiveReads, Snapshot};
use crate::reconcilers::events;

/// How soon a project is asked again whose server refused.
const REFUSED_AGAIN: Duration = Duration::from_mins(10);
/// The same where that reconciles by itself: no more often than its watch asks.
const AWAY_AGAIN: Duration = Duration::from_secs(30);
/// How soon one is asked that was needed still when the reconcile began.
const DOUBTED_AGAIN: Duration = Duration::from_secs(1);
/// How soon the record is read after a project was taken out: it is not watched, and only its content counts.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Reads the record, and reads in projects that the cell no longer needs whether they still hold claims.
pub(super) async fn prepare(cell: &Cell, context: &Context, live: &mut LiveReads) -> Result<(), ApplyError> {
    let target = Target::namespaced(&Plane::Cell, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
    cell.forget_record();
    let record = context.applier.read(&target).await?.map(Arc::new);
    live.insert(&target, record.clone());
    let Some(needs) = Needs::of(cell, &Snapshot::new(context, live)) else {
        return Ok(());
    };
    let written = projects::recorded(record.as_deref()).map(|(project, _)| project.to_owned());
    cell.set_recorded(written.collect());
    let mut answers = BTreeMap::new();
    let needed = needs.needed.iter().map(String::as_str).collect();
    for project in projects::doubtful(record.as_deref(), &needed) {
        answers.insert(project.to_owned(), ask(cell, context, project).await);
    }
    cell.set_answers(answers);
    Ok(())
}

/// One that does not answer stays written down, and is asked again.
async fn ask(cell: &Cell, context: &Context, project: &str) -> Asked {
    let plane = Plane::Project(project.to_owned());
    let selector = format!("{}={}", labels::SOURCE_CLUSTER, cell.cluster);
    let listed = context
        .applier
        .list(&plane, kind::RESOURCE_CLAIM, None, &selector)
        .await;
    match listed {
        Ok(claims) => Ok(Answer::Claims(claims.count() > 0)),
        Err(error) if error.is_not_found() => Ok(Answer::NotFound),
        Err(error) if error.is_transient() => Err(AWAY_AGAIN),
        Err(_) => Err(REFUSED_AGAIN),
    }
}

/// When a project that has not answered is asked again; `None` where all have.
fn again(doubtful: &[&str], answers: &BTreeMap<String, Asked>) -> Option<Duration> {
    let each = |project: &&str| match answers.get(*project) {
        Some(Ok(_)) => None,
        Some(Err(again)) => Some(*again),
        None => Some(DOUBTED_AGAIN),
    };
    doubtful.iter().filter_map(each).min()
}

struct Needs {
    needed: BTreeSet<String>,
    mapped: BTreeSet<String>,
}

impl Needs {
    fn of(cell: &Cell, snapshot: &Snapshot<'_>) -> Option<Self> {
        let namespaces = snapshot.all(&Plane::Cell, NAMESPACE).known()?;
        let instances = snapshot.all(&Plane::Cell, kind::INSTANCE).known()?;
        let deployments = snapshot.all(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT).known()?;
        let used: BTreeSet<&str> = instances
            .iter()
            .chain(&deployments)
            .map(|one| one.namespace())
            .collect();
        let project = |namespace: &Object| {
            let project_namespace = cell.project_namespace(namespace.name(), Some(namespace));
            project_namespace.project().map(str::to_owned)
        };
        let mapped: BTreeSet<String> = namespaces.iter().filter_map(|one| project(one)).collect();
        let used = namespaces.iter().filter(|one| used.contains(one.name()));
        let mut needed: BTreeSet<String> = used.filter_map(|one| project(one)).collect();
        if !instances.is_empty() || !deployments.is_empty() {
            needed.extend(cell.single.clone());
        }
        for plane in events::projects(snapshot.context) {
            let Plane::Project(id) = &plane else { continue };
            let claims = snapshot.all(&plane, kind::RESOURCE_CLAIM).known();
            if claims.is_some_and(|claims| !claims.is_empty()) {
                needed.insert(id.clone());
            }
        }
        Some(Self { needed, mapped })
    }
}

/// Decides one reconcile.
pub(super) fn decide(cell: &Cell, snapshot: &Snapshot<'_>, now: Timestamp) -> Option<Plan> {
    let record = snapshot.read_live(&Plane::Cell, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS)?;
    let needs = Needs::of(cell, snapshot)?;
    let answers = cell.answers();
    let needed = needs.needed.iter().map(String::as_str).collect();
    let doubtful = projects::doubtful(record.as_deref(), &needed);
    let mut plan = projects::decide(&Observation {
        record: record.as_deref(),
        namespace: &cell.namespace,
        needed: &needed,
        mapped: &needs.mapped.iter().map(String::as_str).collect(),
        answers: &answers
            .iter()
            .filter_map(|(project, answer)| Some((project.as_str(), (*answer).ok()?)))
            .collect(),
        now,
    });
    if let Some(again) = again(&doubtful, &answers) {
        plan.requeue_within(again);
    }
    if !doubtful.is_empty() && !plan.actions.is_empty() && !snapshot.context.applier.is_dry_run() {
        plan.requeue_within(READ_AGAIN);
    }
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_did_not_answer_is_asked_again_after_the_shortest_delay() {
        let answers = BTreeMap::from([
            ("answered".to_owned(), Ok(Answer::Claims(false))),
            ("away".to_owned(), Err(AWAY_AGAIN)),
            ("refuses".to_owned(), Err(REFUSED_AGAIN)),
        ]);
        let again = |doubtful: &[&str]| again(doubtful, &answers);
        assert_eq!(again(&["answered"]), None);
        assert_eq!(again(&["answered", "refuses"]), Some(REFUSED_AGAIN));
        assert_eq!(again(&["refuses", "away"]), Some(AWAY_AGAIN));
        // It became doubtful while the others were asked: its last claim went, or its last Instance.
        assert_eq!(again(&["away", "new"]), Some(DOUBTED_AGAIN));
    }
}
