//! From an event on a server to a pass, as reconcilers are wired.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use popcell_api::kind::{self, Kind};
use popcell_controller_runtime::planes::{Change, Listener};
use popcell_controller_runtime::queue::{Key, Verdict, WorkQueue, Workers};
use popcell_core::object::Fields;
use popcell_core::plan::Plane;
use popcell_suites::world::SOON;
use popcell_test_support::eventually;
use tokio_util::sync::CancellationToken;

use crate::demand::{delete, workload};
use crate::watched::Watched;
use crate::world::{PROJECTS, World, id};

const FLOOD: usize = 100;

/// Asks for a pass of each Workload that changes.
struct Enqueue(WorkQueue);

impl Listener for Enqueue {
    fn changed(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let (kind::WORKLOAD, Change::Applied { now, .. }) = (kind, change) {
            self.0.add(Key::new(plane, now.namespace(), now.name()));
        }
    }

    fn disengaged(&self, plane: &Plane) {
        self.0.retire(plane);
    }
}

/// A Workload of a quiet project has its pass after a few of a project that floods, and the pass sees the object.
pub(crate) async fn fair(world: &World, _: &str) -> Result<()> {
    let queue = WorkQueue::new(Workers { total: 1, share: 1 });
    let watched = Watched::start_with(world, PROJECTS, Arc::new(Enqueue(queue.clone()))).await?;
    let (loud, quiet) = (id(20), id(21));
    stream::iter(0..FLOOD)
        .map(async |number| create(world, &loud, &format!("web-{number}")).await)
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    depth(&queue, FLOOD).await?;
    create(world, &quiet, "web").await?;
    depth(&queue, FLOOD + 1).await?;

    let (stop, seen) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
    let (planes, log) = (watched.planes.clone(), Arc::clone(&seen));
    let pass = move |key: Arc<Key>| {
        let store = planes
            .get(&key.plane)
            .and_then(|engaged| engaged.store(kind::WORKLOAD).cloned());
        let object = store.and_then(|store| store.get(&key.namespace, &key.name).known().flatten());
        log.lock().unwrap().push((key.namespace.clone(), object.is_some()));
        std::future::ready(Verdict::Done)
    };
    let passes = tokio::spawn({
        let (queue, stop) = (queue.clone(), stop.clone());
        async move { queue.run(pass, stop).await }
    });
    depth(&queue, 0).await?;
    stop.cancel();
    passes.await?;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    ensure!(
        seen.len() == FLOOD + 1 && seen.iter().all(|(_, found)| *found),
        "{seen:?}"
    );
    let turn = seen.iter().position(|(project, _)| *project == quiet);
    ensure!(turn.context("no pass of the quiet one")? < 4, "after {turn:?} passes");

    delete(&world.server, kind::WORKLOAD, &quiet, "web").await?;
    stream::iter(0..FLOOD)
        .map(async |number| delete(&world.server, kind::WORKLOAD, &loud, &format!("web-{number}")).await)
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    watched.end().await;
    Ok(())
}

async fn create(world: &World, project: &str, name: &str) -> Result<()> {
    let mut object = workload(project)?;
    object["metadata"]["name"] = name.into();
    world.server.create(&object, false).await.map(|_| ())
}

async fn depth(queue: &WorkQueue, expected: usize) -> Result<()> {
    eventually(&format!("{expected} keys are ready"), SOON, async || {
        let stats = queue.stats();
        ensure!(stats.depth == expected && stats.running == 0, "{stats:?}");
        Ok(())
    })
    .await
}
