//! `claim-projects`: the record of projects that hold claims. See [`popcell_core::remote::projects`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Plan, Plane, Target};
use popcell_core::remote::projects::{self, Answer, Observation};

use super::events;
use crate::apply::Done;
use crate::cell::Cell;
use crate::context::Context;
use crate::planes::Change;
use crate::queue::{Key, RateLimit};
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot};
use crate::sync::lock;

/// How soon a project is asked again whose server refused.
const REFUSED_AGAIN: Duration = Duration::from_mins(10);
/// The same where the refusal ends without a change: no more often than its watch asks.
const AWAY_AGAIN: Duration = Duration::from_secs(30);
/// How soon one is asked that was needed still when the reconcile began.
const DOUBTED_AGAIN: Duration = Duration::from_secs(1);
/// How soon the record is read after a project was taken out: it is not watched, and only its content counts.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// What a project answered that was asked for its claims, or how soon it is to be asked again.
type Asked = Result<Answer, Duration>;

/// Key: the record, a ConfigMap in the cell. There is one.
#[derive(Debug)]
pub struct ClaimProjects {
    cell: Arc<Cell>,
    /// Answers of recorded projects that the cell no longer needs, to the reconcile that decides now.
    answers: Mutex<BTreeMap<String, Asked>>,
}

impl ClaimProjects {
    /// Of a cell.
    pub fn new(cell: Arc<Cell>) -> Self {
        Self {
            cell,
            answers: Mutex::default(),
        }
    }

    /// One that does not answer stays written down, and is asked again.
    async fn ask(&self, context: &Context, project: &str) -> Asked {
        let plane = Plane::Project(project.to_owned());
        match self.cell.list_claims(context, &plane).await {
            Ok(claims) => Ok(Answer::Claims(claims.count() > 0)),
            Err(error) if error.is_not_found() => Ok(Answer::NotFound),
            Err(error) if error.is_transient() => Err(AWAY_AGAIN),
            Err(_) => Err(REFUSED_AGAIN),
        }
    }
}

impl Reconciler for ClaimProjects {
    fn name(&self) -> &'static str {
        "claim-projects"
    }

    /// Any client may write on it.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_TWO_WRITERS)
    }

    /// Reads the record, and reads in projects that the cell no longer needs whether they still hold claims.
    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            let cell = &self.cell;
            cell.identity_cache.identify(cell, &context.applier).await?;
            cell.forget_record();
            let target = Target::namespaced(&Plane::Cell, CONFIG_MAP, &key.namespace, &key.name);
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
                answers.insert(project.to_owned(), self.ask(context, project).await);
            }
            *lock(&self.answers) = answers;
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let record = snapshot.read_live(&Plane::Cell, CONFIG_MAP, &key.namespace, &key.name)?;
        let needs = Needs::of(&self.cell, snapshot)?;
        let answers = lock(&self.answers).clone();
        let needed = needs.needed.iter().map(String::as_str).collect();
        let doubtful = projects::doubtful(record.as_deref(), &needed);
        let mut plan = projects::decide(&Observation {
            record: record.as_deref(),
            namespace: &key.namespace,
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
        Some(self.cell.identity_cache.until_matched(plan))
    }

    fn executed(&self, _: &Context, _: &Key, _: &Plan, _: Done) {
        self.cell.forget_record();
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        let changes_projects = match (plane, kind) {
            (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | NAMESPACE) if events::is_listed(change) => true,
            (Plane::Cell, NAMESPACE) => events::is_more_than_status(change),
            _ => false,
        };
        if changes_projects {
            self.cell.look_again();
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let enqueues = match (plane, kind) {
            (Plane::Hub | Plane::Cell, kind::INSTANCE) | (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) => {
                events::is_listed(change)
            }
            (Plane::Cell, NAMESPACE) => events::is_listed(change) || events::is_more_than_status(change),
            (Plane::Project(_), kind::RESOURCE_CLAIM) => events::is_listed(change) || is_last(context, plane, change),
            _ => false,
        };
        if enqueues {
            self.keys(context, &Plane::Cell)
        } else {
            Vec::new()
        }
    }

    fn keys(&self, _: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Cell => vec![Key::new(plane, &self.cell.namespace, CLAIM_PROJECTS)],
            _ => Vec::new(),
        }
    }
}

/// Whether the last claim of a project went: nothing else shows that the project may be unused.
fn is_last(context: &Context, plane: &Plane, change: &Change) -> bool {
    matches!(change, Change::Gone { .. }) && !events::is_occupied(context, plane, kind::RESOURCE_CLAIM)
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
