//! A single cluster, where the cell is the project.

use super::rejected::{Servers, within};
use super::*;
use crate::cell::testing::cell;
use crate::planes::{CELL, Interest, SINGLE};
use crate::reconcilers::cell as of_cell;

fn watched(plane: &Plane) -> Arc<[Interest]> {
    match plane {
        Plane::Cell => Arc::from(CELL),
        _ => crate::planes::management(plane),
    }
}

/// A WorkloadDeployment that was made directly.
async fn made_directly(servers: &Arc<Servers>) -> Told {
    let mut cell = cell(Some("p"));
    cell.is_project = true;
    cell.quota = false;
    let told = Told::watching(of_cell(&Arc::new(cell)), &[SINGLE], servers.answer(), watched).await;
    told.world.planes.engage(&Plane::Cell, None).await.unwrap();
    let one = deployment("ns-1", "web", "uid-web");
    servers.keep(&Plane::Cell, &within("web"), &one);
    for plane in [Plane::Cell, project(SINGLE)] {
        told.list(&plane, WORKLOAD_DEPLOYMENT, vec![one.clone()]);
        told.list(&plane, INSTANCE, Vec::new());
    }
    told.list(&project(SINGLE), WORKLOAD, Vec::new());
    told
}

#[tokio::test]
async fn a_city_without_a_binding_gets_nothing_and_a_binding_that_comes_is_seen() {
    let servers = Arc::<Servers>::default();
    let (told, key) = (made_directly(&servers).await, Key::new(&Plane::Cell, "ns-1", "web"));
    // As long as bindings are not listed nobody knows.
    told.pass("deployment", &key).await;
    assert_eq!(servers.writes(), Vec::<String>::new());
    told.list(&project(SINGLE), LOCATION_BINDING, Vec::new());
    let woken = |kind, change: &Change| {
        let lane = &told.dispatch.lanes()[0];
        lane.reconciler.wake(&told.world, &project(SINGLE), kind, change)
    };
    for kind in [LOCATION_BINDING, WORKLOAD] {
        assert_eq!(woken(kind, &Change::Listed), std::slice::from_ref(&key));
    }
    told.pass("deployment", &key).await;
    assert_eq!(
        servers.said(&Plane::Cell, &within("web"), "Available").1,
        "NoMatchingLocation"
    );
    assert!(servers.all(&Plane::Cell, "instances").is_empty());
    assert_eq!(servers.writes(), [format!("cell PATCH {}/status", within("web"))]);

    let applied = Change::Applied {
        before: None,
        now: Arc::new(serde_json::from_value(location_binding()).unwrap()),
    };
    assert_eq!(woken(LOCATION_BINDING, &applied), std::slice::from_ref(&key));
    told.put(&project(SINGLE), LOCATION_BINDING, location_binding());
    for _ in 0..3 {
        told.pass("deployment", &key).await;
    }
    assert_eq!(servers.all(&Plane::Cell, "instances").len(), 1);
}
