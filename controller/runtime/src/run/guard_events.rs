//! Events on our Lease: what the deletion guard does.

use kube::Client;
use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_api::events;
use popcell_api::kind::{Kind, PROJECT, Scope};
use popcell_core::plan::{Plane, Severity, Target};
use tokio::sync::mpsc;
use tracing::warn;

use crate::apply::{Difference, GuardChange, record_event, release_of};
use crate::config::LeaseSettings;
use crate::error::chain;

const LEASE: Kind = Kind::of("coordination.k8s.io", "v1", "Lease", "leases", Scope::Namespaced);
/// So many wait to be reported. One more is lost: the log and the metric have it.
const WAITING: usize = 64;

/// What is told.
enum GuardEvent {
    /// What became of the guard of a plane and kind.
    Changed(Plane, &'static str, GuardChange),
    /// The annotation has this value, and this is held.
    Unreleased(String, String),
}

/// Accepts changes to report; never waits.
#[derive(Clone, Debug)]
pub(super) struct GuardEvents(mpsc::Sender<GuardEvent>);

impl GuardEvents {
    /// The sender of changes, and the recorder that makes Events of them.
    pub(super) fn new(client: Client, lease: &LeaseSettings) -> (Self, EventRecorder) {
        let (sender, guard_events) = mpsc::channel(WAITING);
        // The server that this process runs on is a plane only for a cell.
        let lease = Target::namespaced(&Plane::Cell, LEASE, &lease.namespace, lease.name);
        (
            Self(sender),
            EventRecorder {
                client,
                lease,
                guard_events,
            },
        )
    }

    pub(super) fn guard_changed(&self, plane: &Plane, kind: &'static str, change: GuardChange) {
        if self
            .0
            .try_send(GuardEvent::Changed(plane.clone(), kind, change))
            .is_err()
        {
            warn!(%plane, kind, ?change, "an event on our Lease was dropped: the buffer is full");
        }
    }

    pub(super) fn unreleased(&self, value: &str, held: &str) {
        let notice = GuardEvent::Unreleased(value.to_owned(), held.to_owned());
        if self.0.try_send(notice).is_err() {
            warn!(value, "an event on our Lease was dropped: the buffer is full");
        }
    }
}

/// Makes Events of it, one after the other.
pub(super) struct EventRecorder {
    client: Client,
    lease: Target,
    guard_events: mpsc::Receiver<GuardEvent>,
}

impl EventRecorder {
    /// Records events until all senders are gone.
    pub(super) async fn run(mut self) {
        while let Some(notice) = self.guard_events.recv().await {
            let (severity, reason, note) = match notice {
                GuardEvent::Changed(plane, kind, change) => said(&plane, kind, change),
                GuardEvent::Unreleased(value, held) => unreleased(&value, &held),
            };
            if let Err(error) = record_event(&self.client, &self.lease, severity, reason, &note).await {
                warn!(reason, error = chain(&error), "failed to record an event");
            }
        }
    }
}

fn said(plane: &Plane, kind: &str, change: GuardChange) -> (Severity, &'static str, String) {
    let release = format!("this Lease is annotated with {}", release_of(plane));
    match change {
        GuardChange::Held(Difference { ours, to_delete, .. }) if kind == PROJECT.kind => {
            let note = format!(
                "{to_delete} of {ours} projects are gone from discovery, or not Ready: none is disengaged and none \
                 of their objects is deleted until they are back or {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        GuardChange::Held(Difference { ours, to_delete, .. }) => {
            let note = format!(
                "{to_delete} of {ours} objects of kind {kind} in {plane} would be deleted: none is deleted until the \
                 planes have recovered or {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        GuardChange::Recovered => {
            let note = format!("objects of kind {kind} in {plane} are deleted again: the planes have recovered");
            (Severity::Normal, events::MASS_DELETE_RECOVERED, note)
        }
        GuardChange::Rewound if *plane == Plane::Discovery => {
            let note = format!(
                "resourceVersions of the list of Projects went back, as after the restore of a backup: no missing \
                 project is disengaged and nothing is deleted for a removed one until {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        GuardChange::Rewound => {
            let note = format!(
                "resourceVersions of {plane} went back, as after the restore of a backup: nothing is deleted there, nor for what \
                 it lacks, until {release}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        GuardChange::Released => {
            let note = format!("objects of kind {kind} in {plane} are deleted: the annotation on this Lease allows it");
            (Severity::Warning, events::MASS_DELETE_RELEASED, note)
        }
    }
}

fn unreleased(value: &str, held: &str) -> (Severity, &'static str, String) {
    let note = format!(
        "{MASS_DELETE}='{value}' matches no held deletes, so nothing is released. Held: {held}. Annotate this Lease \
         with one of these, or with {MASS_DELETE}={MASS_DELETE_ALLOW} for all"
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
        let reported = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let log = Arc::clone(&reported);
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
        let (guard_events, recorder) = GuardEvents::new(client, &lease);
        let held = Difference {
            ours: 30,
            to_delete: 25,
            partial: false,
        };
        for change in [GuardChange::Held(held), GuardChange::Recovered, GuardChange::Released] {
            guard_events.guard_changed(&Plane::Hub, "Instance", change);
        }
        guard_events.guard_changed(&Plane::Discovery, "*", GuardChange::Rewound);
        guard_events.unreleased("project b", "'hub', 'discovery'");
        drop(guard_events);
        recorder.run().await;

        let reported = reported.lock().unwrap();
        let (asked, events): (Vec<_>, Vec<_>) = reported.iter().partition(|(path, _)| path.starts_with("GET"));
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
