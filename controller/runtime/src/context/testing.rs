//! A context whose servers answer only what a test says: it says too what watches bring.

use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use popcell_api::kind::{Kind, PROJECT};
use popcell_core::instance_types::Catalogue;
use popcell_core::plan::{Plane, Target};
use serde_json::Value;
use tokio::sync::watch;
use tracing_subscriber::fmt::MakeWriter;

use super::{Context, Rules};
use crate::apply::{Applier, GuardChange, Meter, Options};
use crate::planes::testing::{self, Answer, Watched};
use crate::planes::{Change, Current, InstanceTypes, Listener, Store, management};
use crate::queue::{Key, Requeue, WorkQueue, Workers};
use crate::reconcile::{Outcome, Reconciler, Reporter, Runner};
use crate::reconcilers::{EventRouter, QueuedReconciler};

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
    fn withheld(&self, _: &Target, _: &'static str) {}
    fn guard_changed(&self, _: &Plane, _: &'static str, _: GuardChange) {}
    fn unreleased(&self, _: &str, _: &str) {}
}

impl Reporter for Blind {
    fn passed(&self, _: &'static str, _: Outcome, _: Duration) {}
    fn answered(&self, _: &'static str, _: Duration) {}
}

/// As they are where a test says nothing of them.
const RULES: Rules = Rules {
    project_grace: Duration::from_hours(1),
    cell_grace: Duration::from_hours(1),
    reclaim_orphans: false,
    hub_instances: 20_000,
    carries_data: true,
    object_bytes: 256 * 1024,
    data_bytes: 64 << 10,
};

/// A context and who tells its reconcilers.
pub(crate) struct Fixture {
    pub(crate) context: Arc<Context>,
    pub(crate) event_router: Arc<EventRouter>,
    /// Says which instance types there are; the built-in one at first.
    pub(crate) types: watch::Sender<Current>,
}

impl Fixture {
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
        Self::made(reconcilers, projects, answer, false, RULES, management).await
    }

    /// The same with `--reclaim-orphans`.
    pub(crate) async fn reclaiming(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
    ) -> Self {
        let rules = Rules {
            reclaim_orphans: true,
            ..RULES
        };
        Self::made(reconcilers, projects, answer, false, rules, management).await
    }

    /// The same by other rules.
    pub(crate) async fn with_rules(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
        change: impl FnOnce(&mut Rules),
    ) -> Self {
        let mut rules = RULES;
        change(&mut rules);
        Self::made(reconcilers, projects, answer, false, rules, management).await
    }

    /// The same in mode `milo`, with no project in the list. The discovery server goes by the name of the plane `Cell`.
    pub(crate) async fn milo(reconcilers: Vec<Arc<dyn Reconciler>>, answer: Arc<Answer>) -> Self {
        Self::made(reconcilers, &[], answer, true, RULES, management).await
    }

    /// The same for the controllers of a cell, which is engaged too.
    pub(crate) async fn in_cell(reconcilers: Vec<Arc<dyn Reconciler>>, projects: &[&str], answer: Arc<Answer>) -> Self {
        let fixture = Self::made(reconcilers, projects, answer, false, RULES, testing::of_cell).await;
        fixture.context.planes.engage(&Plane::Cell, None).await.unwrap();
        fixture
    }

    /// The same where other things are watched.
    pub(crate) async fn watching(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
        watch_specs: Watched,
    ) -> Self {
        Self::made(reconcilers, projects, answer, false, RULES, watch_specs).await
    }

    /// The same where Instances wait for networks.
    pub(crate) async fn in_networked_cell(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
    ) -> Self {
        let fixture = Self::made(reconcilers, projects, answer, false, RULES, testing::of_networked_cell).await;
        fixture.context.planes.engage(&Plane::Cell, None).await.unwrap();
        fixture
    }

    async fn made(
        reconcilers: Vec<Arc<dyn Reconciler>>,
        projects: &[&str],
        answer: Arc<Answer>,
        milo: bool,
        rules: Rules,
        watch_specs: Watched,
    ) -> Self {
        let discovery = milo.then(|| (testing::client(&answer, &Plane::Cell), PROJECT));
        let listed = milo.then(|| {
            let store = Store::default();
            testing::list_nothing(&store);
            Arc::new(store)
        });
        let queued_reconcilers = reconcilers.into_iter().map(|reconciler| QueuedReconciler {
            reconciler,
            queue: WorkQueue::new(Workers { total: 1, share: 1 }),
        });
        let event_router = Arc::new(EventRouter::new(queued_reconcilers.collect()));
        let planes = testing::watching(event_router.clone(), answer, watch_specs);
        let options = Options {
            dry_run: false,
            may_write: Arc::new(|| true),
            discovery,
            namespace: "compute-system".to_owned(),
        };
        let applier = Applier::new(planes.clone(), options, Arc::new(Blind));
        let (types, known) = InstanceTypes::said(Some(Catalogue::default()));
        let context = Context::new(planes, applier, Arc::new(Blind), rules, listed).with_types(known);
        let context = Arc::new(context);
        event_router.listen(&context);
        context.planes.engage(&Plane::Hub, None).await.unwrap();
        for id in projects {
            context.planes.engage(&project(id), None).await.unwrap();
        }
        Self {
            context,
            event_router,
            types,
        }
    }

    /// A reconciler by its name, with its queue.
    pub(crate) fn queued(&self, reconciler: &str) -> &QueuedReconciler {
        let mut all = self.event_router.queued_reconcilers().iter();
        all.find(|queued| queued.reconciler.name() == reconciler).unwrap()
    }

    /// What runs the reconciles of a reconciler.
    pub(crate) fn runner(&self, reconciler: &str) -> Arc<Runner> {
        let reconciler = Arc::clone(&self.queued(reconciler).reconciler);
        Arc::new(Runner::new(reconciler, Arc::clone(&self.context)))
    }

    /// One reconcile of a reconciler.
    pub(crate) async fn reconcile(&self, reconciler: &str, key: &Key) -> Requeue {
        self.runner(reconciler).reconcile(key).await
    }

    /// Keys of a reconciler that an event enqueues.
    pub(crate) fn keys_for_event(&self, reconciler: &str, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let reconciler = &self.queued(reconciler).reconciler;
        reconciler.keys_for_event(&self.context, plane, kind, change)
    }

    /// A full list.
    pub(crate) fn list(&self, plane: &Plane, kind: Kind, objects: Vec<Value>) {
        self.notify(plane, kind, testing::list(&self.store(plane, kind), objects));
    }

    /// The watch of a kind breaks.
    pub(crate) fn lose(&self, plane: &Plane, kind: Kind) {
        let changes = self.store(plane, kind).lose("broken".to_owned()).into_iter();
        self.notify(plane, kind, changes.collect());
    }

    /// An object comes or changes.
    pub(crate) fn put(&self, plane: &Plane, kind: Kind, object: Value) {
        self.notify(plane, kind, testing::put(&self.store(plane, kind), object));
    }

    /// An object goes.
    pub(crate) fn remove(&self, plane: &Plane, kind: Kind, object: Value) {
        self.notify(plane, kind, testing::remove(&self.store(plane, kind), object));
    }

    /// Orphans that the last reconciles noted.
    pub(crate) fn orphans(&self) -> Vec<Target> {
        let planes = self.context.planes.engaged();
        planes
            .iter()
            .flat_map(|plane| plane.memory().note_gauges.orphans())
            .collect()
    }

    /// How many keys wait for a reconciler.
    pub(crate) fn depth(&self, reconciler: &str) -> usize {
        self.queued(reconciler).queue.stats().depth
    }

    fn notify(&self, plane: &Plane, kind: Kind, changes: Vec<Change>) {
        for change in changes {
            self.event_router.changed(plane, kind, &change);
        }
    }

    fn store(&self, plane: &Plane, kind: Kind) -> Arc<Store> {
        testing::store(&self.context.planes, plane, kind)
    }
}

/// A project's plane.
pub(crate) fn project(id: &str) -> Plane {
    Plane::Project(id.to_owned())
}
