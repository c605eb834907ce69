//! Which planes a cell engages beside its own: the hub, and projects that may hold its claims.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use popcell_core::object::Fields;
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};
use tokio::time::sleep;
use tracing::{info, warn};

use super::Cell;
use crate::error::chain;
use crate::planes::SINGLE;
use crate::world::World;

/// The namespace whose uid tells clusters apart.
const KUBE_SYSTEM: &str = "kube-system";
/// How soon the own API server is asked again for who it is.
const AGAIN: Duration = Duration::from_secs(1);

/// Learns who this cell is, then keeps other planes engaged. Runs for ever: drop the future to end it.
pub async fn engage(cell: Arc<Cell>, world: Arc<World>) {
    if !cell.is_remote() {
        return;
    }
    learn(&cell, &world).await;
    if cell.hub
        && let Err(error) = world.planes.engage(&Plane::Hub, None).await
    {
        warn!(error = chain(&error), "the hub is not engaged");
    }
    if !cell.quota {
        return;
    }
    loop {
        level(&cell, &world).await;
        cell.changed.notified().await;
    }
}

async fn learn(cell: &Cell, world: &World) {
    let target = Target::cluster(&Plane::Cell, NAMESPACE, KUBE_SYSTEM);
    loop {
        match world.applier.look(&target).await {
            Ok(Some(found)) if !found.uid().is_empty() => {
                info!(cluster = cell.cluster, id = found.uid(), "this cell");
                // Set once: this task is the only one that sets it.
                let _ = cell.id.set(found.uid().to_owned());
                return;
            }
            Ok(_) => warn!("the cell has no namespace kube-system: nothing can be written to other planes"),
            Err(error) => warn!(error = chain(&error), "who this cell is cannot be read yet"),
        }
        sleep(AGAIN).await;
    }
}

/// Projects that cell namespaces speak of, and those that are written down.
async fn level(cell: &Cell, world: &World) {
    let stored = world.planes.get(&Plane::Cell);
    let namespaces = stored.as_ref().and_then(|engaged| engaged.store(NAMESPACE));
    let Some(Observed::Known(namespaces)) = namespaces.map(|store| store.all()) else {
        return;
    };
    let mut wanted = cell.recorded();
    wanted.extend(cell.single.clone());
    for namespace in &namespaces {
        let project = cell.home(namespace.name(), Some(namespace)).project();
        wanted.extend(project.map(str::to_owned));
    }
    leave(world, &wanted, cell.single.is_some()).await;
    for project in wanted {
        let plane = Plane::Project(project);
        if let Err(error) = world.planes.engage(&plane, None).await {
            warn!(%plane, error = chain(&error), "a project is not engaged");
        }
    }
}

/// `beside`: the management controllers run in this process too, and have engaged the project of mode `single`.
async fn leave(world: &World, wanted: &BTreeSet<String>, beside: bool) {
    for plane in world.planes.planes() {
        let Plane::Project(id) = &plane else { continue };
        let is_others = beside && id == SINGLE;
        if !is_others && !wanted.contains(id) {
            world.planes.disengage(&plane).await;
        }
    }
}
