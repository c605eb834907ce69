//! A world whose servers answer only what a test says: it says too what watches bring.

use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use popcell_api::kind::{Kind, PROJECT};
use popcell_core::plan::{Plane, Target};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::{Rules, World};
use crate::apply::{Applier, Braking, Meter, Options};
use crate::pass::{Outcome, Reconciler, Reporter, Runner};
use crate::planes::testing::{self, Answer, Watched};
use crate::planes::{Change, Listener, Store, management};
use crate::queue::{Key, Verdict, WorkQueue, Workers};
use crate::reconcilers::{Dispatch, Lane};

/// Lines of the log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Who writes here.
    pub(crate) fn subscriber(&self) -> impl tracing::Subscriber + Send + Sync + 'static {
        // While a test has nobody who listens, another may find that nobody listens at all and remember it for this one.
        static LISTENS: Once = Once::new();
        LISTENS.call_once(|| {
            let all = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(io::sink)
                .finish();
            tracing::subscriber::set_global_default(all).unwrap();
        });
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Who counts nothing.
pub(crate) struct Blind;

impl Meter for Blind {
    fn wrote(&self, _: &Target, _: &'static str, _: u16) {}
    fn planned(&self, _: &Target, _: &'static str) {}
    fn suppressed(&self, _: &Target, _: &'static str) {}
    fn braked(&self, _: &Plane, _: &'static str, _: Braking) {}
    fn unreleased(&self, _: &str, _: &str) {}
}

impl Reporter for Blind {
    fn passed(&self, _: &'static str, _: Outcome, _: Duration) {}
    fn answered(&self, _: &'static str, _: Duration) {}
}

/// A world and who tells its reconcilers.
pub(crate) struct Told {
    pub(crate) world: Arc<World>,
    pub(crate) dispatch: Arc<Dispatch>,
}

impl Told {
    /// The hub and these projects, of which nothing is listed yet.
    pub(crate) async fn of(reconcilers: Vec<Arc<dyn Reconciler>>, projects: &[&str]) -> Self {
        Self::answering(reconcilers, projects, Arc::new(|_| None)).await
    }

    /// The same with servers that answer.
    pub(crate) async fn answering(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
    ) -> Self {
        Self::made(reconcilers, projects, answer, false, false, management).await
    }

    /// The same with `--reclaim-orphans`.
    pub(crate) async fn reclaiming(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
    ) -> Self {
        Self::made(reconcilers, projects, answer, false, true, management).await
    }

    /// The same in mode `milo`, with no project in the list. The discovery server goes by the name of the plane `Cell`.
    pub(crate) async fn milo(reconcilers: Vec<Arc<dyn Reconciler>>, answer: Arc<Answer>) -> Self {
        Self::made(reconcilers, &[], answer, true, false, management).await
    }

    /// The same for the controllers of a cell, which is engaged too.
    pub(crate) async fn in_cell(reconcilers: Vec<Arc<dyn Reconciler>>, projects: &[&str], answer: Arc<Answer>) -> Self {
        let told = Self::made(reconcilers, projects, answer, false, false, testing::of_cell).await;
        told.world.planes.engage(&Plane::Cell, None).await.unwrap();
        told
    }

    /// The same where other things are watched.
    pub(crate) async fn watching(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
        interests: Watched,
    ) -> Self {
        Self::made(reconcilers, projects, answer, false, false, interests).await
    }

    /// The same where Instances wait for networks.
    pub(crate) async fn in_networked_cell(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
    ) -> Self {
        let told = Self::made(reconcilers, projects, answer, false, false, testing::of_networked_cell).await;
        told.world.planes.engage(&Plane::Cell, None).await.unwrap();
        told
    }

    async fn made(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
        milo: bool,
        reclaim_orphans: bool,
        interests: Watched,
    ) -> Self {
        let discovery = milo.then(|| (testing::client(&answer, &Plane::Cell), PROJECT));
        let listed = milo.then(|| {
            let store = Store::default();
            testing::list_nothing(&store);
            Arc::new(store)
        });
        let lanes = reconcilers.into_iter().map(|reconciler| Lane {
            reconciler,
            queue: WorkQueue::new(Workers { total: 1, share: 1 }),
        });
        let dispatch = Arc::new(Dispatch::new(lanes.collect()));
        let planes = testing::watching(dispatch.clone(), answer, interests);
        let options = Options {
            dry_run: false,
            may_write: Arc::new(|| true),
            discovery,
            namespace: "compute-system".to_owned(),
        };
        let applier = Applier::new(planes.clone(), options, Arc::new(Blind));
        let rules = Rules {
            project_grace: Duration::from_hours(1),
            cell_grace: Duration::from_hours(1),
            reclaim_orphans,
            hub_instances: 20_000,
        };
        let world = Arc::new(World::new(planes, applier, Arc::new(Blind), rules, listed));
        dispatch.listen(&world);
        world.planes.engage(&Plane::Hub, None).await.unwrap();
        for id in projects {
            world.planes.engage(&project(id), None).await.unwrap();
        }
        Self { world, dispatch }
    }

    /// One pass of a reconciler.
    pub(crate) async fn pass(&self, reconciler: &str, key: &Key) -> Verdict {
        let lanes = self.dispatch.lanes().iter();
        let mut found = lanes.filter(|lane| lane.reconciler.name() == reconciler);
        let reconciler = Arc::clone(&found.next().unwrap().reconciler);
        Runner::new(reconciler, Arc::clone(&self.world)).pass(key).await
    }

    /// A full list.
    pub(crate) fn list(&self, plane: &Plane, kind: Kind, objects: Vec<Value>) {
        self.tell(plane, kind, testing::list(&self.store(plane, kind), objects));
    }

    /// An object comes or changes.
    pub(crate) fn put(&self, plane: &Plane, kind: Kind, object: Value) {
        self.tell(plane, kind, testing::put(&self.store(plane, kind), object));
    }

    /// An object goes.
    pub(crate) fn remove(&self, plane: &Plane, kind: Kind, object: Value) {
        self.tell(plane, kind, testing::remove(&self.store(plane, kind), object));
    }

    /// Orphans that the last passes noted.
    pub(crate) fn orphans(&self) -> Vec<Target> {
        let planes = self.world.planes.engaged();
        planes.iter().flat_map(|plane| plane.memory().tally.orphans()).collect()
    }

    /// What waits for passes of a reconciler.
    pub(crate) fn depth(&self, reconciler: &str) -> usize {
        let lanes = self.dispatch.lanes().iter();
        let mut found = lanes.filter(|lane| lane.reconciler.name() == reconciler);
        found.next().unwrap().queue.stats().depth
    }

    fn tell(&self, plane: &Plane, kind: Kind, changes: Vec<Change>) {
        for change in changes {
            self.dispatch.changed(plane, kind, &change);
        }
    }

    fn store(&self, plane: &Plane, kind: Kind) -> Arc<Store> {
        testing::store(&self.world.planes, plane, kind)
    }
}

/// A project's plane.
pub(crate) fn project(id: &str) -> Plane {
    Plane::Project(id.to_owned())
}
