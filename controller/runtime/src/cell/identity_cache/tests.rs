use std::sync::OnceLock;

use popcell_api::kind::{INSTANCE, Kind, RESOURCE_CLAIM};
use serde_json::{Value, json};

use super::*;
use crate::context::testing::Fixture;
use crate::planes::Change;
use crate::planes::testing::Asked;
use crate::reconcilers::{cell as reconcilers, management};

fn cell() -> Arc<Cell> {
    Arc::new(Cell {
        cluster: "dfw-01".to_owned(),
        hub: true,
        quota: true,
        namespace: "compute-system".to_owned(),
        id: OnceLock::from("k1".to_owned()),
        ..Cell::default()
    })
}

fn refusal(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "ServiceUnavailable" };
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "no",
        "details": { "name": "popcell-removed-cells", "kind": "configmaps" } })
}

/// A hub and what it says of the cell. It answers nothing else.
#[derive(Default)]
struct Hub {
    is_away: Mutex<bool>,
    removed: Mutex<bool>,
    asked: Mutex<usize>,
}

impl Hub {
    fn answer(&self, asked: &Asked) -> Option<(u16, Value)> {
        let is_record = asked.line.contains("/configmaps/popcell-removed-cells");
        if !is_record && !asked.line.contains("/clusters/dfw-01") {
            return None;
        }
        *self.asked.lock().unwrap() += 1;
        Some(match (*self.is_away.lock().unwrap(), is_record) {
            (true, _) => (503, refusal(503)),
            (false, false) => (200, json!({ "metadata": { "name": "dfw-01" }, "spec": { "id": "k1" } })),
            (false, true) if *self.removed.lock().unwrap() => (
                200,
                json!({ "metadata": { "name": "r" }, "data": { "dfw-01_k1": "2026-01-01T00:00:00Z" } }),
            ),
            (false, true) => (404, refusal(404)),
        })
    }
}

async fn fixture(hub: &Arc<Hub>) -> Fixture {
    let hub = Arc::clone(hub);
    Fixture::answering(management(true), &[], Arc::new(move |asked| hub.answer(&asked))).await
}

fn gone(kind: Kind) -> Change {
    Change::Gone {
        namespace: "ns-p".to_owned(),
        name: format!("some-{}", kind.plural),
        last: None,
    }
}

#[tokio::test]
async fn a_deletion_on_another_plane_makes_a_cell_confirm_its_identity_before_it_creates_anything() {
    let project = || Plane::Project("p".to_owned());
    for (plane, kind) in [(Plane::Hub, INSTANCE), (project(), RESOURCE_CLAIM)] {
        let (hub, cell) = (Arc::new(Hub::default()), cell());
        let fixture = fixture(&hub).await;
        let (identity_cache, applier) = (&cell.identity_cache, &fixture.context.applier);
        let asked = || std::mem::take(&mut *hub.asked.lock().unwrap());
        identity_cache.identify(&cell, applier).await.unwrap();
        assert_eq!((identity_cache.identity(), asked()), (Identity::Matches, 2));
        // It is believed until there is a reason not to.
        *hub.removed.lock().unwrap() = true;
        identity_cache.identify(&cell, applier).await.unwrap();
        identity_cache.confirm(&cell, applier).await;
        assert_eq!((identity_cache.identity(), asked()), (Identity::Matches, 0));

        for reconciler in reconcilers(&cell) {
            reconciler.observe_event(&plane, kind, &gone(kind));
        }
        // What changes nothing elsewhere asks nobody.
        identity_cache.identify(&cell, applier).await.unwrap();
        assert_eq!(asked(), 0);
        // Unreachable is not gone.
        *hub.is_away.lock().unwrap() = true;
        identity_cache.confirm(&cell, applier).await;
        assert_eq!(identity_cache.identity(), Identity::Matches);
        *hub.is_away.lock().unwrap() = false;
        asked();
        identity_cache.confirm(&cell, applier).await;
        assert!(matches!(identity_cache.identity(), Identity::Mismatch(_)), "{plane}");
        assert_eq!(asked(), 2);
        identity_cache.confirm(&cell, applier).await;
        assert_eq!(asked(), 0);
    }
}

#[tokio::test]
async fn an_instance_that_goes_in_the_cell_is_no_doubt() {
    let (hub, cell) = (Arc::new(Hub::default()), cell());
    let fixture = fixture(&hub).await;
    for reconciler in reconcilers(&cell) {
        reconciler.observe_event(&Plane::Cell, INSTANCE, &gone(INSTANCE));
    }
    cell.identity_cache.confirm(&cell, &fixture.context.applier).await;
    assert_eq!(*hub.asked.lock().unwrap(), 0);
}
