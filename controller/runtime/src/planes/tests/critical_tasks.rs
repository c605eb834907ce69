//! Watches that die.

use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::plan::Plane;
use tokio::time::timeout;

use super::*;
use crate::planes::{Listener, testing};

/// Somebody whom an event surprises.
struct Surprised;

impl Listener for Surprised {
    fn changed(&self, _: &Plane, kind: Kind, _: &Change) {
        panic!("nobody thought of a {}", kind.kind);
    }

    fn disengaged(&self, _: &Plane) {}
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_panics_is_reported_and_not_left_stale() {
    let list = json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "7" }, "items": [] });
    let planes = testing::answering(
        Arc::new(Surprised),
        Arc::new(move |asked| (!asked.line.contains("watch=")).then(|| (200, list.clone()))),
    );
    planes.engage(&Plane::Hub, None).await.unwrap();
    let ended = timeout(Duration::from_mins(1), planes.required().failed())
        .await
        .unwrap();
    assert!(
        ended.task.starts_with("the watch of ") && ended.task.ends_with(" in the hub"),
        "{ended}"
    );
    assert!(ended.panic.unwrap().starts_with("nobody thought of a "));
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_not_wanted_any_more_end_in_silence() {
    let planes = testing::silent();
    planes.engage(&Plane::Hub, None).await.unwrap();
    planes.disengage(&Plane::Hub).await;
    assert!(
        timeout(Duration::from_mins(1), planes.required().failed())
            .await
            .is_err()
    );
}
