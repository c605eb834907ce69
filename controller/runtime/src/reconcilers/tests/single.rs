//! A single cluster, where the cell is the project.

use super::rejected::{Servers, within};
use super::*;
use crate::cell::testing::cell;
use crate::planes::{CELL, SINGLE, WatchSpec};
use crate::reconcilers::cell as of_cell;

fn watched(plane: &Plane) -> Arc<[WatchSpec]> {
    match plane {
        Plane::Cell => Arc::from(CELL),
        _ => crate::planes::management(plane),
    }
}

fn direct() -> Value {
    deployment("ns-1", "web", "uid-web")
}

/// A WorkloadDeployment that was made directly.
pub(super) async fn made_directly(servers: &Arc<Servers>, one: &Value) -> Fixture {
    let mut cell = cell(Some("p"));
    cell.is_project = true;
    cell.quota = false;
    let fixture = Fixture::watching(of_cell(&Arc::new(cell)), &[SINGLE], servers.answer(), watched).await;
    fixture.context.planes.engage(&Plane::Cell, None).await.unwrap();
    servers.keep(&Plane::Cell, &within("web"), one);
    for plane in [Plane::Cell, project(SINGLE)] {
        fixture.list(&plane, WORKLOAD_DEPLOYMENT, vec![one.clone()]);
        fixture.list(&plane, INSTANCE, Vec::new());
    }
    fixture.list(&project(SINGLE), WORKLOAD, Vec::new());
    fixture
}

#[tokio::test]
async fn a_city_without_a_binding_gets_nothing_and_a_binding_that_comes_is_seen() {
    let servers = Arc::<Servers>::default();
    let (fixture, key) = (
        made_directly(&servers, &direct()).await,
        Key::new(&Plane::Cell, "ns-1", "web"),
    );
    // As long as bindings are not listed nobody knows.
    fixture.reconcile("deployment", &key).await;
    assert_eq!(servers.writes(), Vec::<String>::new());
    fixture.list(&project(SINGLE), LOCATION_BINDING, Vec::new());
    let enqueued = |kind, change: &Change| fixture.keys_for_event("deployment", &project(SINGLE), kind, change);
    for kind in [LOCATION_BINDING, WORKLOAD] {
        assert_eq!(enqueued(kind, &Change::Listed), std::slice::from_ref(&key));
    }
    fixture.reconcile("deployment", &key).await;
    assert_eq!(
        servers.said(&Plane::Cell, &within("web"), "Available").1,
        "NoMatchingLocation"
    );
    assert!(servers.all(&Plane::Cell, "instances").is_empty());
    assert_eq!(servers.writes(), [format!("cell PATCH {}/status", within("web"))]);

    assert_eq!(
        enqueued(LOCATION_BINDING, &came(location_binding())),
        std::slice::from_ref(&key)
    );
    fixture.put(&project(SINGLE), LOCATION_BINDING, location_binding());
    for _ in 0..3 {
        fixture.reconcile("deployment", &key).await;
    }
    assert_eq!(servers.all(&Plane::Cell, "instances").len(), 1);
}
