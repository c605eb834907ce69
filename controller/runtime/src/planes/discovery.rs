//! Which projects there are, in mode `milo` (domain.md 7.3).
//!
//! Invariant: engaged are those Projects that were Ready when the list of Projects was last known. While it is unknown,
//! nothing is engaged or disengaged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
use super::follow::{Streams, follow};
use super::interest::{Interest, View, When};
use super::store::{Change, Store};
use crate::error::chain;

/// The id of the one project of mode `single`.
pub const SINGLE: &str = "single";

/// Engages projects as they become Ready, and disengages them when they vanish, stop being Ready or become others.
pub struct Discovery {
    client: Client,
    interest: Interest,
    condition: &'static str,
    store: Arc<Store>,
}

impl Discovery {
    /// Finds projects by objects of this kind, which are named like them, whose condition is True.
    pub fn new(client: Client, kind: Kind, condition: &'static str) -> Self {
        let interest = Interest {
            kind,
            selector: "",
            view: View::Whole,
            when: When::Engaged,
        };
        Self {
            client,
            interest,
            condition,
            store: Arc::default(),
        }
    }

    /// The Projects. Known: they were listed, which is all that readiness waits for.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// Runs for ever: drop the future to end it. Planes that are engaged stay so.
    pub async fn run(self, planes: Planes) {
        let (changed, streams) = (Notify::new(), Streams::default());
        let tell = |_: Change| changed.notify_one();
        let watch = follow(&self.client, &self.interest, &self.store, &streams, &tell);
        let keep = async {
            let mut refused = BTreeSet::new();
            loop {
                changed.notified().await;
                // What cannot be read is not gone.
                let doubtful = self.store.unreadable().into_iter().map(|(_, id, _)| id).collect();
                if let Observed::Known(projects) = self.store.all() {
                    let wanted = ready(&projects, self.condition, &mut refused);
                    level(&planes, &wanted, &doubtful).await;
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

/// Makes the engaged projects those that are wanted, but leaves those in doubt as they are.
async fn level(planes: &Planes, wanted: &BTreeMap<String, String>, doubtful: &BTreeSet<String>) {
    for plane in surplus(planes.planes(), wanted, doubtful) {
        info!(%plane, "disengaged");
        planes.disengage(&plane).await;
    }
    for (id, uid) in wanted {
        let plane = Plane::Project(id.clone());
        if let Err(error) = planes.engage(&plane, Some(uid)).await {
            warn!(%plane, error = chain(&error), "a project is not engaged");
        }
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
    use serde_json::{Value, json};

    use super::*;

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
    fn c02_a_project_that_cannot_be_read_stays_as_it_is() {
        let engaged = ["good", "gone", "odd"].map(|id| Plane::Project(id.to_owned()));
        let engaged = [engaged.as_slice(), &[Plane::Hub, Plane::Cell]].concat();
        let wanted = [("good".to_owned(), "u".to_owned())].into();
        let gone = surplus(engaged, &wanted, &["odd".to_owned()].into());
        assert_eq!(gone, [Plane::Project("gone".to_owned())]);
    }
}
