//! Events on our Lease: what the deletion guard does.

use kube::Client;
use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_api::events;
use popcell_api::kind::{Kind, PROJECT, Scope};
use popcell_core::plan::{Plane, Severity, Target};
use tokio::sync::mpsc;
use tracing::warn;

use crate::apply::{Braking, Difference, release_of, tell};
use crate::config::LeaseSettings;
use crate::error::chain;

const LEASE: Kind = Kind::of("coordination.k8s.io", "v1", "Lease", "leases", Scope::Namespaced);
/// So many wait to be told. One more is lost: the log and the metric have it.
const WAITING: usize = 64;

/// What is told.
enum Notice {
    /// What became of the guard of a plane and kind.
    Braked(Plane, &'static str, Braking),
    /// The annotation has this value, and this is held.
    Unreleased(String, String),
}

/// Takes in what is to be told; never waits.
#[derive(Clone, Debug)]
pub(super) struct Notices(mpsc::Sender<Notice>);

impl Notices {
    /// Who takes in, and who tells.
    pub(super) fn new(client: Client, lease: &LeaseSettings) -> (Self, Teller) {
        let (sender, notices) = mpsc::channel(WAITING);
        // The server that this process runs on is nobody's plane but a cell's.
        let lease = Target::namespaced(&Plane::Cell, LEASE, &lease.namespace, lease.name);
        (Self(sender), Teller { client, lease, notices })
    }

    pub(super) fn braked(&self, plane: &Plane, kind: &'static str, change: Braking) {
        if self.0.try_send(Notice::Braked(plane.clone(), kind, change)).is_err() {
            warn!(%plane, kind, ?change, "an event on our Lease is left out");
        }
    }

    pub(super) fn unreleased(&self, value: &str, held: &str) {
        let notice = Notice::Unreleased(value.to_owned(), held.to_owned());
        if self.0.try_send(notice).is_err() {
            warn!(value, "an event on our Lease is left out");
        }
    }
}

/// Makes Events of it, one after the other.
pub(super) struct Teller {
    client: Client,
    lease: Target,
    notices: mpsc::Receiver<Notice>,
}

impl Teller {
    /// Tells until nobody can have anything to tell any more.
    pub(super) async fn run(mut self) {
        while let Some(notice) = self.notices.recv().await {
            let (severity, reason, note) = match notice {
                Notice::Braked(plane, kind, change) => said(&plane, kind, change),
                Notice::Unreleased(value, held) => unreleased(&value, &held),
            };
            if let Err(error) = tell(&self.client, &self.lease, severity, reason, &note).await {
                warn!(reason, error = chain(&error), "an event was not told");
            }
        }
    }
}

fn said(plane: &Plane, kind: &str, change: Braking) -> (Severity, &'static str, String) {
    let release = format!("this Lease is annotated with {}", release_of(plane));
    match change {
        Braking::Held(Difference { ours, doomed, .. }) if kind == PROJECT.kind => {
            let note = format!(
                "{doomed} of {ours} projects are gone from discovery, or not Ready: none of them is let go and nothing of \
                 theirs is deleted, until they are back or {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Held(Difference { ours, doomed, .. }) => {
            let note = format!(
                "{doomed} of {ours} objects of kind {kind} in {plane} would be deleted: none is, until the planes have \
                 recovered or {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Recovered => {
            let note = format!("objects of kind {kind} in {plane} are deleted again: the planes have recovered");
            (Severity::Normal, events::MASS_DELETE_RECOVERED, note)
        }
        Braking::Rewound if *plane == Plane::Discovery => {
            let note = format!(
                "resourceVersions of the list of Projects went back, as after the restore of a backup: no project that it lacks is \
                 let go and nothing is deleted for the end of one, until {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Rewound => {
            let note = format!(
                "resourceVersions of {plane} went back, as after the restore of a backup: nothing is deleted there, nor for what \
                 it lacks, until {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Released => {
            let note = format!("objects of kind {kind} in {plane} are deleted: the annotation on this Lease allows it");
            (Severity::Warning, events::MASS_DELETE_RELEASED, note)
        }
    }
}

fn unreleased(value: &str, held: &str) -> (Severity, &'static str, String) {
    let note = format!(
        "{MASS_DELETE}='{value}' names nothing that is held, so nothing is released. Held: {held}. Annotate this Lease with one of \
         these, or with {MASS_DELETE}={MASS_DELETE_ALLOW} for all"
    );
    (Severity::Warning, events::MASS_DELETE_UNRELEASED, note)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn the_deletion_guard_records_events_on_the_lease() {
        let told = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let log = Arc::clone(&told);
        let answer = move |request: Request<Body>| {
            let log = Arc::clone(&log);
            async move {
                let path = format!("{} {}", request.method(), request.uri().path());
                let body = request.into_body().collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                log.lock().unwrap().push((path, body));
                let lease = json!({ "metadata": { "name": "the-lease", "uid": "lease-uid" } });
                Ok::<_, std::io::Error>(Response::new(Body::from(lease.to_string().into_bytes())))
            }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let lease = LeaseSettings {
            namespace: "compute-system".to_owned(),
            name: "the-lease",
        };
        let (notices, teller) = Notices::new(client, &lease);
        let held = Difference {
            ours: 30,
            doomed: 25,
            partial: false,
        };
        for change in [Braking::Held(held), Braking::Recovered, Braking::Released] {
            notices.braked(&Plane::Hub, "Instance", change);
        }
        notices.braked(&Plane::Discovery, "*", Braking::Rewound);
        notices.unreleased("project b", "'hub', 'discovery'");
        drop(notices);
        teller.run().await;

        let told = told.lock().unwrap();
        let (asked, events): (Vec<_>, Vec<_>) = told.iter().partition(|(path, _)| path.starts_with("GET"));
        let lease = "GET /apis/coordination.k8s.io/v1/namespaces/compute-system/leases/the-lease";
        assert!(asked.iter().all(|(path, _)| path == lease) && asked.len() == 5);
        let said: Vec<_> = events
            .iter()
            .map(|(path, event)| {
                assert_eq!(path, "POST /apis/events.k8s.io/v1/namespaces/compute-system/events");
                assert_eq!(event["regarding"]["uid"], "lease-uid");
                assert_eq!(event["regarding"]["kind"], "Lease");
                (event["reason"].as_str().unwrap(), event["type"].as_str().unwrap())
            })
            .collect();
        let expected = [
            ("MassDeleteHeld", "Warning"),
            ("MassDeleteRecovered", "Normal"),
            ("MassDeleteReleased", "Warning"),
            ("MassDeleteHeld", "Warning"),
            ("MassDeleteUnreleased", "Warning"),
        ];
        assert_eq!(said, expected);
        let notes: Vec<&str> = events
            .iter()
            .map(|(_, event)| event["note"].as_str().unwrap())
            .collect();
        assert!(
            notes[0].starts_with("25 of 30 objects of kind Instance in hub"),
            "{notes:?}"
        );
        // To be copied.
        assert!(
            notes[0].ends_with("with compute.datumapis.com/mass-delete='hub'"),
            "{notes:?}"
        );
        assert!(
            notes[3].ends_with("with compute.datumapis.com/mass-delete='discovery'"),
            "{notes:?}"
        );
        assert!(
            notes[4].contains("'project b'") && notes[4].contains("Held: 'hub', 'discovery'"),
            "{notes:?}"
        );
    }
}
