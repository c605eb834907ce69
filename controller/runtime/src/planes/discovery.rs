//! Which projects there are, in mode `milo` (domain.md 7.3).
//!
//! Invariant: engaged are those Projects that were Ready when the list of Projects was last known. While it is unknown,
//! nothing is engaged or disengaged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use popcell_api::kind::Kind;
use popcell_core::conditions::says;
use popcell_core::names::check_project;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use tokio::sync::Notify;
use tracing::{Instrument, info, info_span, warn};

use super::Planes;
use super::change::Change;
use super::follow::{Follow, Streams};
use super::interest::{Interest, View, When};
use super::store::Store;
use crate::error::{Error, chain};

/// The id of the one project of mode `single`.
pub const SINGLE: &str = "single";

/// Why projects that are Ready are not engaged: values of the label `reason` of `popcell_projects_refused`.
pub mod refusal {
    /// The id cannot be an address, or is too long for a label.
    pub const NAME: &str = "name";
    /// No client can be made: certificates or keys that cannot be read, mostly.
    pub const CLIENT: &str = "client";
}

/// How far discovery has come, for probes and metrics.
#[derive(Debug, Default)]
pub struct Progress {
    /// By reason; `None` until the projects of the first list were engaged.
    refused: Mutex<Option<BTreeMap<&'static str, usize>>>,
}

impl Progress {
    /// Whether every project of the first list that can be engaged has been.
    pub fn has_engaged(&self) -> bool {
        self.refused().is_some()
    }

    /// How many projects are Ready and not engaged, by [`refusal`].
    pub fn refusals(&self) -> BTreeMap<&'static str, usize> {
        self.refused().clone().unwrap_or_default()
    }

    pub(crate) fn settle(&self, names: usize, others: impl IntoIterator<Item = &'static str>) {
        let mut counts = BTreeMap::from([(refusal::NAME, names), (refusal::CLIENT, 0)]);
        for reason in others {
            *counts.entry(reason).or_default() += 1;
        }
        *self.refused() = Some(counts);
    }

    // Replaced as a whole: there is no half-done state that a panic could leave.
    fn refused(&self) -> MutexGuard<'_, Option<BTreeMap<&'static str, usize>>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Engages projects as they become Ready, and disengages them when they vanish, stop being Ready or become others.
pub struct Discovery {
    client: Client,
    interest: Interest,
    condition: &'static str,
    store: Arc<Store>,
    progress: Arc<Progress>,
}

impl Discovery {
    /// Finds projects by objects of this kind, which are named like them, whose condition is True.
    pub fn new(client: Client, kind: Kind, condition: &'static str) -> Self {
        let interest = Interest {
            kind,
            selector: "".into(),
            view: View::Whole,
            when: When::Engaged,
        };
        Self {
            client,
            interest,
            condition,
            store: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// The Projects. Known: they were listed, which is all that readiness waits for.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// How far it has come.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Runs for ever: drop the future to end it. Planes that are engaged stay so.
    pub async fn run(self, planes: Planes) {
        let (changed, streams) = (Notify::new(), Streams::default());
        let tell = |_: Change| changed.notify_one();
        let mut follow = Follow {
            client: &self.client,
            plane_kind: "discovery",
            interest: &self.interest,
            store: &self.store,
            renewal: None,
            tell: &tell,
        };
        let watch = follow.run(&streams);
        let keep = async {
            let mut refused = BTreeSet::new();
            loop {
                changed.notified().await;
                // What cannot be read is not gone.
                let doubtful = self.store.unreadable().into_iter().map(|(_, id, _)| id).collect();
                if let Observed::Known(projects) = self.store.all() {
                    let wanted = ready(&projects, self.condition, &mut refused);
                    let failed = level(&planes, &wanted, &doubtful).await;
                    self.progress.settle(refused.len(), failed);
                }
            }
        };
        let watch = watch.instrument(info_span!("watch", plane = "discovery", kind = self.interest.kind.kind));
        tokio::join!(watch, keep);
    }
}

/// Ids and uids of projects that can be engaged. `refused` remembers whom the log knows.
fn ready(projects: &[Arc<Object>], condition: &str, refused: &mut BTreeSet<String>) -> BTreeMap<String, String> {
    let ready = projects.iter().filter(|project| says(project, condition, "True"));
    let named = ready.map(|project| (project.name().to_owned(), project.uid().to_owned()));
    let (good, bad): (BTreeMap<_, _>, BTreeMap<_, _>) = named.partition(|(id, _)| check_project(id).is_ok());
    for id in bad.keys().filter(|id| !refused.contains(*id)) {
        if let Err(error) = check_project(id) {
            warn!(%error, "a project is not engaged");
        }
    }
    *refused = bad.into_keys().collect();
    good
}

/// Makes the engaged projects those that are wanted, but leaves those in doubt as they are. Says for each that could not
/// be engaged why.
async fn level(planes: &Planes, wanted: &BTreeMap<String, String>, doubtful: &BTreeSet<String>) -> Vec<&'static str> {
    for plane in surplus(planes.planes(), wanted, doubtful) {
        info!(%plane, "disengaged");
        planes.disengage(&plane).await;
    }
    let mut failed = Vec::new();
    for (id, uid) in wanted {
        let plane = Plane::Project(id.clone());
        if let Err(error) = planes.engage(&plane, Some(uid)).await {
            warn!(%plane, error = chain(&error), "a project is not engaged");
            failed.push(reason(&error));
        }
    }
    failed
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::Name(_) | Error::NoService(_) | Error::Url { .. } => refusal::NAME,
        _ => refusal::CLIENT,
    }
}

/// Projects that are engaged and should not be.
fn surplus(engaged: Vec<Plane>, wanted: &BTreeMap<String, String>, doubtful: &BTreeSet<String>) -> Vec<Plane> {
    let is_surplus = |plane: &Plane| match plane {
        Plane::Project(id) => !wanted.contains_key(id) && !doubtful.contains(id),
        Plane::Hub | Plane::Cell => false,
    };
    engaged.into_iter().filter(is_surplus).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::planes::testing;

    fn project(name: &str, conditions: &Value) -> Arc<Object> {
        let object = json!({ "metadata": { "name": name, "uid": format!("uid-{name}") },
            "status": { "conditions": conditions } });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn d7_3_only_projects_that_are_ready_and_can_be_named_are_engaged() {
        let yes = json!([{ "type": "Other", "status": "False" }, { "type": "Ready", "status": "True" }]);
        let long = "a".repeat(56);
        let projects = [
            project("good", &yes),
            project("not-yet", &json!([{ "type": "Ready", "status": "Unknown" }])),
            project("odd", &json!("text")),
            project("other", &json!([{ "type": "Other", "status": "True" }])),
            project(&long, &yes),
        ];
        let mut refused = BTreeSet::new();
        let found = ready(&projects, "Ready", &mut refused);
        assert_eq!(found, [("good".to_owned(), "uid-good".to_owned())].into());
        assert_eq!(refused, [long].into());
    }

    #[test]
    fn refused_projects_are_counted_by_reason_once_all_were_tried() {
        let progress = Progress::default();
        assert!(!progress.has_engaged() && progress.refusals().is_empty());
        let errors = [Error::NoService("a.b".to_owned()), Error::NotConfigured(Plane::Hub)];
        progress.settle(2, errors.iter().map(reason));
        assert!(progress.has_engaged());
        assert_eq!(progress.refusals(), [(refusal::NAME, 3), (refusal::CLIENT, 1)].into());
        progress.settle(0, []);
        assert_eq!(progress.refusals(), [(refusal::NAME, 0), (refusal::CLIENT, 0)].into());
    }

    #[test]
    fn c02_a_project_that_cannot_be_read_stays_as_it_is() {
        let engaged = ["good", "gone", "odd"].map(|id| Plane::Project(id.to_owned()));
        let engaged = [engaged.as_slice(), &[Plane::Hub, Plane::Cell]].concat();
        let wanted = [("good".to_owned(), "u".to_owned())].into();
        let gone = surplus(engaged, &wanted, &["odd".to_owned()].into());
        assert_eq!(gone, [Plane::Project("gone".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn b21_projects_are_engaged_by_the_list_alone_and_nothing_is_asked_again() {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&asked);
        let list = json!({ "metadata": { "resourceVersion": "7" }, "items": [{
            "metadata": { "name": "p", "uid": "u", "resourceVersion": "1" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }] });
        let answer: Arc<testing::Answer> = Arc::new(move |request: testing::Asked| {
            log.lock().unwrap().push(request.line.clone());
            (!request.line.contains("watch=")).then(|| (200, list.clone()))
        });
        let planes = testing::silent();
        let discovery = Discovery::new(
            testing::client(&answer, &Plane::Cell),
            popcell_api::kind::PROJECT,
            "Ready",
        );
        let progress = discovery.progress();
        let running = tokio::spawn(discovery.run(planes.clone()));
        tokio::time::sleep(std::time::Duration::from_mins(4)).await;
        assert_eq!(planes.planes(), [Plane::Project("p".to_owned())]);
        assert!(progress.has_engaged());
        // One list and the watch after it; nothing that is not ready yet is asked for time and again.
        let asked = asked.lock().unwrap();
        let watches = asked.iter().filter(|line| line.contains("watch=")).count();
        assert_eq!((asked.len(), watches), (2, 1), "{asked:?}");
        running.abort();
    }
}
