//! Events on our Lease: what the deletion guard does.

use kube::Client;
use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_api::events;
use popcell_api::kind::{Kind, PROJECT, Scope};
use popcell_core::plan::{Plane, Severity, Target};
use tokio::sync::mpsc;
use tracing::warn;

use crate::apply::{Braking, Difference, tell};
use crate::config::LeaseSettings;
use crate::error::chain;

const LEASE: Kind = Kind::of("coordination.k8s.io", "v1", "Lease", "leases", Scope::Namespaced);
/// So many wait to be told. One more is lost: the log and the metric have it.
const WAITING: usize = 64;

type Notice = (Plane, &'static str, Braking);

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
        if self.0.try_send((plane.clone(), kind, change)).is_err() {
            warn!(%plane, kind, ?change, "an event on our Lease is left out");
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
        while let Some((plane, kind, change)) = self.notices.recv().await {
            let (severity, reason, note) = said(&plane, kind, change);
            if let Err(error) = tell(&self.client, &self.lease, severity, reason, &note).await {
                warn!(reason, error = chain(&error), "an event was not told");
            }
        }
    }
}

fn said(plane: &Plane, kind: &str, change: Braking) -> (Severity, &'static str, String) {
    match change {
        Braking::Held(Difference { ours, doomed, .. }) if kind == PROJECT.kind => {
            let note = format!(
                "{doomed} of {ours} projects are gone from discovery, or not Ready: none of them is let go and nothing of \
                 theirs is deleted, until they are back or this Lease is annotated with {MASS_DELETE}={MASS_DELETE_ALLOW}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Held(Difference { ours, doomed, .. }) => {
            let note = format!(
                "{doomed} of {ours} objects of kind {kind} in {plane} would be deleted: none is, until the planes have \
                 recovered or this Lease is annotated with {MASS_DELETE}={MASS_DELETE_ALLOW}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Recovered => {
            let note = format!("objects of kind {kind} in {plane} are deleted again: the planes have recovered");
            (Severity::Normal, events::MASS_DELETE_RECOVERED, note)
        }
        Braking::Rewound => {
            let note = format!(
                "resourceVersions of {plane} went back, as after the restore of a backup: nothing is deleted there, nor for what \
                 it lacks, until this Lease is annotated with {MASS_DELETE}={MASS_DELETE_ALLOW}"
            );
            (Severity::Warning, events::MASS_DELETE_HELD, note)
        }
        Braking::Released => {
            let note = format!("objects of kind {kind} in {plane} are deleted: the annotation on this Lease allows it");
            (Severity::Warning, events::MASS_DELETE_RELEASED, note)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn d7_4_what_the_brake_does_becomes_an_event_on_our_lease() {
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
        drop(notices);
        teller.run().await;

        let told = told.lock().unwrap();
        let (asked, events): (Vec<_>, Vec<_>) = told.iter().partition(|(path, _)| path.starts_with("GET"));
        let lease = "GET /apis/coordination.k8s.io/v1/namespaces/compute-system/leases/the-lease";
        assert!(asked.iter().all(|(path, _)| path == lease) && asked.len() == 3);
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
        ];
        assert_eq!(said, expected);
        let note = events[0].1["note"].as_str().unwrap();
        assert!(note.starts_with("25 of 30 objects of kind Instance in hub"), "{note}");
    }
}
