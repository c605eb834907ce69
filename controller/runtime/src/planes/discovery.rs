//! Which projects there are, in mode `milo`.
//!
//! Invariant: engaged are those Projects that were Ready when the list of Projects was last known. While it is unknown,
//! nothing is engaged or disengaged; and while the deletion guard holds, or the list has gone back to an older one, nothing is
//! disengaged but what a user deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use kube::Client;
use popcell_api::kind::Kind;
use popcell_client::ConnectError;
use popcell_core::conditions::says;
use popcell_core::deletion_guard::Difference;
use popcell_core::names::check_project;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use popcell_core::recent_removals::{RecentRemovals, RemovalCause};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{Instrument, info, info_span, warn};

use super::Planes;
use super::change::Change;
use super::kind_watch::{KindWatch, Reached, Streams};
use super::project_removals::ProjectRemovals;
use super::store::Store;
use super::watch_spec::{View, WatchCondition, WatchSpec};
use crate::error::chain;
use crate::sync::lock;

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
        lock(&self.refused).is_some()
    }

    /// How many projects are Ready and not engaged, by [`refusal`].
    pub fn refusals(&self) -> BTreeMap<&'static str, usize> {
        lock(&self.refused).clone().unwrap_or_default()
    }

    pub(crate) fn settle(&self, names: usize, others: impl IntoIterator<Item = &'static str>) {
        let mut counts = BTreeMap::from([(refusal::NAME, names), (refusal::CLIENT, 0)]);
        for reason in others {
            *counts.entry(reason).or_default() += 1;
        }
        *lock(&self.refused) = Some(counts);
    }
}

/// Engages projects as they become Ready, and disengages them when they vanish, stop being Ready or become others.
pub struct Discovery {
    client: Client,
    watch_spec: WatchSpec,
    condition: &'static str,
    store: Arc<Store>,
    progress: Arc<Progress>,
    guard: Option<Arc<dyn Guard>>,
    project_removals: Arc<ProjectRemovals>,
    changed: Arc<Notify>,
}

/// The deletion guard, as discovery uses it.
pub trait Guard: Send + Sync {
    /// Whether projects that have left the list stay engaged, given how many there were and how many have left.
    fn holds(&self, difference: Difference) -> bool;

    /// The resourceVersions of the list went back: it was restored from a backup, or is that of another server.
    fn went_back(&self);

    /// Whether they did, and that was not released: projects that have left the list stay engaged, few as they may be.
    fn is_rewound(&self) -> bool;
}

impl Discovery {
    /// Finds projects by objects of this kind, which are named like them, whose condition is True.
    pub fn new(client: Client, kind: Kind, condition: &'static str) -> Self {
        let watch_spec = WatchSpec {
            kind,
            selector: "".into(),
            view: View::Whole,
            when: WatchCondition::Engaged,
        };
        Self {
            client,
            watch_spec,
            condition,
            store: Arc::default(),
            progress: Arc::default(),
            guard: None,
            project_removals: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// Asks this guard before projects are disengaged, and reports to it that the list went back.
    #[must_use]
    pub fn guarded(mut self, guard: Arc<dyn Guard>) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Notes here how projects end.
    #[must_use]
    pub fn with_project_removals(mut self, project_removals: &Arc<ProjectRemovals>) -> Self {
        self.project_removals = Arc::clone(project_removals);
        self
    }

    /// A notification makes it list again.
    pub fn again(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The Projects. Known: they were listed, which is all that readiness waits for.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// How far it has come.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Runs forever: drop the future to end it. Planes that are engaged stay so.
    pub async fn run(self, planes: Planes) {
        let streams = Streams::default();
        let notify = |change: Change| {
            self.project_removals.note(&change);
            self.changed.notify_one();
        };
        let went_back = || {
            if let Some(guard) = &self.guard {
                guard.went_back();
            }
        };
        let follow = KindWatch {
            client: &self.client,
            plane_kind: "discovery",
            list_permit: None,
            watch_spec: &self.watch_spec,
            store: &self.store,
            reached: &Reached::default(),
            notify: &notify,
            went_back: &went_back,
        };
        let mut renewal = None;
        let watch = follow.run(&streams, &mut renewal);
        let keep = async {
            let mut refused = BTreeSet::new();
            let mut leaving = Leaving::new(self.guard.clone());
            loop {
                self.changed.notified().await;
                self.project_removals.settle();
                // What cannot be read is not gone.
                let doubtful = self.store.unreadable().into_iter().map(|(_, id, _)| id).collect();
                if let Observed::Known(projects) = self.store.all() {
                    let wanted = ready(&projects, self.condition, &mut refused);
                    let cause = |id: &str, uid: Option<&str>| match self.store.get("", id) {
                        // It is only not Ready.
                        Observed::Known(Some(listed)) if !listed.deleting() => RemovalCause::Reported,
                        _ => self.project_removals.cause(id, uid),
                    };
                    let failed = level(&planes, &wanted, &doubtful, &mut leaving, &cause).await;
                    self.progress.settle(refused.len(), failed);
                }
            }
        };
        let watch = watch.instrument(info_span!(
            "watch",
            plane = "discovery",
            kind = self.watch_spec.kind.kind
        ));
        tokio::join!(watch, keep);
    }
}

/// Ids and uids of projects that can be engaged. `refused` remembers those that were logged.
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
async fn level(
    planes: &Planes,
    wanted: &BTreeMap<String, String>,
    doubtful: &BTreeSet<String>,
    leaving: &mut Leaving,
    cause: &(dyn Fn(&str, Option<&str>) -> RemovalCause + Sync),
) -> Vec<&'static str> {
    leaving.recent_removals.there(wanted.keys());
    let engaged = planes.planes();
    let count = engaged
        .iter()
        .filter(|plane| matches!(plane, Plane::Project(_)))
        .count();
    let mut surplus: Vec<(Plane, RemovalCause)> = surplus(engaged, wanted, doubtful)
        .into_iter()
        .map(|plane| {
            let cause = match &plane {
                Plane::Project(id) => cause(
                    id,
                    planes
                        .get(&plane)
                        .and_then(|engaged| engaged.uid().map(str::to_owned))
                        .as_deref(),
                ),
                Plane::Hub | Plane::Cell | Plane::Discovery => RemovalCause::Missing,
            };
            (plane, cause)
        })
        .collect();
    let ways: Vec<RemovalCause> = surplus.iter().map(|(_, cause)| *cause).collect();
    let held = leaving.is_held(count, &ways) || leaving.is_rewound();
    // What a user deleted is never held.
    surplus.retain(|(_, cause)| !held || *cause == RemovalCause::Deleted);
    for (plane, cause) in surplus {
        info!(%plane, "disengaged");
        planes.disengage(&plane).await;
        if cause == RemovalCause::Deleted {
            planes.forget(&plane);
        }
        leaving.has_left(&plane, cause);
    }
    if !held {
        leaving.is_done(planes);
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

/// Projects that are to be disengaged, and those that were lately.
struct Leaving {
    guard: Option<Arc<dyn Guard>>,
    recent_removals: RecentRemovals,
    since: Instant,
    /// Whether the guard was asked, and has not been told since that nothing is to leave.
    asked: bool,
}

impl Leaving {
    fn new(guard: Option<Arc<dyn Guard>>) -> Self {
        Self {
            guard,
            recent_removals: RecentRemovals::default(),
            since: Instant::now(),
            asked: false,
        }
    }

    /// Whether the guard holds them.
    fn is_held(&mut self, engaged: usize, leaving: &[RemovalCause]) -> bool {
        let Some(guard) = self.guard.as_ref().filter(|_| !leaving.is_empty() || self.asked) else {
            return false;
        };
        self.asked = true;
        let (ours, to_delete) = match leaving {
            [] => (engaged, 0),
            _ => self.recent_removals.difference(engaged, leaving, self.since.elapsed()),
        };
        guard.holds(Difference {
            ours,
            to_delete,
            partial: false,
        })
    }

    /// Whether the list has gone back: it may lack Projects that there are.
    fn is_rewound(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.is_rewound())
    }

    fn has_left(&mut self, plane: &Plane, cause: RemovalCause) {
        if let Plane::Project(id) = plane {
            self.recent_removals.left(id, cause, self.since.elapsed());
        }
    }

    /// What was to leave has left: the next that is to is another difference.
    fn is_done(&mut self, planes: &Planes) {
        if let Some(guard) = self.guard.as_ref().filter(|_| self.asked) {
            guard.holds(Difference {
                ours: planes.planes().len(),
                ..Difference::default()
            });
            self.asked = false;
        }
    }
}

fn reason(error: &ConnectError) -> &'static str {
    if error.is_of_the_address() {
        refusal::NAME
    } else {
        refusal::CLIENT
    }
}

/// Projects that are engaged and should not be.
fn surplus(engaged: Vec<Plane>, wanted: &BTreeMap<String, String>, doubtful: &BTreeSet<String>) -> Vec<Plane> {
    let is_surplus = |plane: &Plane| match plane {
        Plane::Project(id) => !wanted.contains_key(id) && !doubtful.contains(id),
        Plane::Hub | Plane::Cell | Plane::Discovery => false,
    };
    engaged.into_iter().filter(is_surplus).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::{Value, json};

    use super::*;
    use crate::planes::testing;

    fn project(name: &str, conditions: &Value) -> Arc<Object> {
        let object = json!({ "metadata": { "name": name, "uid": format!("uid-{name}") },
            "status": { "conditions": conditions } });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_projects_that_are_ready_and_can_be_named_are_engaged() {
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
        let errors = [
            ConnectError::NoService("a.b".to_owned()),
            ConnectError::NotConfigured(Plane::Hub),
        ];
        progress.settle(2, errors.iter().map(reason));
        assert!(progress.has_engaged());
        assert_eq!(progress.refusals(), [(refusal::NAME, 3), (refusal::CLIENT, 1)].into());
        progress.settle(0, []);
        assert_eq!(progress.refusals(), [(refusal::NAME, 0), (refusal::CLIENT, 0)].into());
    }

    #[test]
    fn a_project_that_cannot_be_read_stays_engaged() {
        let engaged = ["good", "gone", "odd"].map(|id| Plane::Project(id.to_owned()));
        let engaged = [engaged.as_slice(), &[Plane::Hub, Plane::Cell]].concat();
        let wanted = [("good".to_owned(), "u".to_owned())].into();
        let gone = surplus(engaged, &wanted, &["odd".to_owned()].into());
        assert_eq!(gone, [Plane::Project("gone".to_owned())]);
    }

    /// The guard's own rule, and what it was asked.
    #[derive(Default)]
    struct Counting {
        released: AtomicBool,
        rewound: AtomicBool,
        asked: Mutex<Vec<(usize, usize)>>,
    }

    impl Guard for Counting {
        fn holds(&self, Difference { ours, to_delete, .. }: Difference) -> bool {
            self.asked.lock().unwrap().push((ours, to_delete));
            let is_mass = popcell_core::deletion_guard::is_mass(popcell_api::kind::PROJECT, ours, to_delete);
            is_mass && !self.released.load(Ordering::Relaxed)
        }

        fn went_back(&self) {
            self.rewound.store(true, Ordering::Relaxed);
        }

        fn is_rewound(&self) -> bool {
            self.rewound.load(Ordering::Relaxed)
        }
    }

    /// Which ids are wanted.
    fn wanted(ids: std::ops::Range<usize>) -> BTreeMap<String, String> {
        ids.map(|number| (format!("p-{number}"), "u".to_owned())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn projects_that_vanish_all_at_once_stay_engaged_until_they_are_back_or_released() {
        let planes = testing::silent();
        let guard = Arc::<Counting>::default();
        let mut leaving = Leaving::new(Some(guard.clone()));
        let none = BTreeSet::new();
        let mut settle = async |ids: std::ops::Range<usize>| {
            level(&planes, &wanted(ids), &none, &mut leaving, &|_, _| {
                RemovalCause::Reported
            })
            .await;
            let asked = std::mem::take(&mut *guard.asked.lock().unwrap());
            (planes.planes().len(), asked)
        };
        // As long as none is to leave nobody is asked.
        assert_eq!(settle(0..10).await, (10, vec![]));
        assert_eq!(settle(0..9).await, (9, vec![(10, 0), (9, 0)]));
        // The list of another server, or of one that was restored: none of ours, and a new one.
        assert_eq!(settle(0..0).await, (9, vec![(10, 10)]));
        assert_eq!(settle(90..91).await, (10, vec![(10, 10)]));
        // It has recovered.
        let (engaged, asked) = settle(0..10).await;
        assert_eq!((engaged, asked.last()), (10, Some(&(9, 0))));
        // It is meant.
        assert_eq!(settle(0..1).await.0, 10);
        guard.released.store(true, Ordering::Relaxed);
        let (engaged, asked) = settle(0..1).await;
        assert_eq!((engaged, asked.last()), (1, Some(&(1, 0))));
    }

    /// A restored discovery server, or another one: it lists neither of two.
    #[tokio::test(start_paused = true)]
    async fn few_projects_that_are_missing_stay_and_those_that_a_user_deleted_leave() {
        for (deleted, left) in [
            (vec![], vec!["p-0", "p-1"]),
            (vec!["p-0"], vec!["p-1"]),
            (vec!["p-0", "p-1"], vec![]),
        ] {
            let planes = testing::silent();
            let (mut leaving, none) = (Leaving::new(Some(Arc::<Counting>::default())), BTreeSet::new());
            let cause = |id: &str, uid: Option<&str>| {
                assert_eq!(uid, Some("u"));
                if deleted.contains(&id) {
                    RemovalCause::Deleted
                } else {
                    RemovalCause::Missing
                }
            };
            level(&planes, &wanted(0..2), &none, &mut leaving, &cause).await;
            for _ in 0..2 {
                level(&planes, &BTreeMap::new(), &none, &mut leaving, &cause).await;
                let left: Vec<Plane> = left.iter().map(|id| Plane::Project((*id).to_owned())).collect();
                assert_eq!(planes.planes(), left, "{deleted:?}");
            }
        }
    }

    /// Of ten, a restored discovery server lists six: no more than half are missing.
    #[tokio::test(start_paused = true)]
    async fn few_projects_that_a_list_lacks_which_went_back_stay_engaged_until_that_is_released() {
        let planes = testing::silent();
        let guard = Arc::<Counting>::default();
        let mut leaving = Leaving::new(Some(guard.clone()));
        let none = BTreeSet::new();
        let mut settle = async |ids: std::ops::Range<usize>| {
            let cause = |id: &str, _: Option<&str>| {
                if id == "p-9" {
                    RemovalCause::Deleted
                } else {
                    RemovalCause::Missing
                }
            };
            level(&planes, &wanted(ids), &none, &mut leaving, &cause).await;
            planes.planes().len()
        };
        assert_eq!(settle(0..10).await, 10);
        guard.went_back();
        for _ in 0..2 {
            assert_eq!(settle(0..6).await, 9, "but for the one that a user deleted");
        }
        guard.rewound.store(false, Ordering::Relaxed);
        assert_eq!(settle(0..6).await, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn projects_are_engaged_by_the_list_alone_without_further_requests() {
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
