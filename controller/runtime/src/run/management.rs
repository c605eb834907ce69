//! The management controllers (design.md 7.5), put together.

use std::sync::Arc;

use kube::Client;
use popcell_core::plan::Plane;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::error::RunError;
use super::gauges;
use super::meters::Meters;
use crate::apply::{Applier, MayWrite, Options};
use crate::config::{Connections, Discovery as Where, Settings};
use crate::health::{Check, HUB_SYNCED, discovery_synced, plane_synced, projects_engaged};
use crate::metrics::{Metrics, observe_discovery};
use crate::pass::Runner;
use crate::planes::{Direct, Discovery, HUB, Interest, PROJECT, Planes, SINGLE, tuned};
use crate::queue::WorkQueue;
use crate::reconcilers::{Dispatch, Lane, management};
use crate::world::{Rules, World};

/// Planes that are watched, and reconcilers that begin with the permit.
pub(super) struct Management {
    world: Arc<World>,
    dispatch: Arc<Dispatch>,
    discovery: Option<JoinHandle<()>>,
    checks: Vec<Check>,
}

impl Management {
    /// Begins to watch; nothing is written yet.
    pub(super) async fn start(
        settings: &Settings,
        connections: &Connections,
        transport: Direct,
        metrics: &Metrics,
        may_write: MayWrite,
    ) -> Result<Self, RunError> {
        let hub = settings.hub.is_some();
        let lanes = management(hub).into_iter().map(|reconciler| Lane {
            reconciler,
            queue: WorkQueue::new(settings.workers),
        });
        let dispatch = Arc::new(Dispatch::new(lanes.collect()));
        let planes = Planes::new(Box::new(transport), interests, dispatch.clone());
        let discovery = discovery(settings, connections)?;
        let options = Options {
            dry_run: settings.dry_run,
            may_write: Arc::clone(&may_write),
            discovery: discovery.as_ref().map(|found| (found.client.clone(), found.kind)),
            namespace: settings.namespace.clone(),
        };
        let meters = Arc::new(Meters(metrics.clone()));
        let applier = Applier::new(planes.clone(), options, meters.clone());
        let rules = Rules {
            project_grace: settings.project_grace,
            reclaim_orphans: settings.reclaim_orphans,
        };
        let projects = discovery.as_ref().map(|found| found.discovery.store());
        let world = Arc::new(World::new(planes.clone(), applier, meters, rules, projects));
        dispatch.listen(&world);
        gauges::add(metrics, Arc::clone(&world), dispatch.lanes().to_vec(), may_write);

        let mut checks = Vec::new();
        if hub {
            planes.engage(&Plane::Hub, None).await?;
            checks.push(plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub));
        }
        let discovery = if let Some(found) = discovery {
            checks.extend(found.checks(metrics));
            Some(tokio::spawn(found.discovery.run(planes)))
        } else {
            let project = Plane::Project(SINGLE.to_owned());
            planes.engage(&project, None).await?;
            checks.push(plane_synced("project-synced", planes, project));
            None
        };
        Ok(Self {
            world,
            dispatch,
            discovery,
            checks,
        })
    }

    /// What readiness waits for.
    pub(super) fn checks(&mut self) -> Vec<Check> {
        std::mem::take(&mut self.checks)
    }

    /// Opens the brakes that hold, and decides everything anew that they held.
    pub(super) fn release_brakes(&self) {
        if !self.world.applier.brakes().release() {
            return;
        }
        tracing::warn!("the brake on mass deletion is released");
        for Lane { reconciler, queue } in self.dispatch.lanes() {
            for plane in self.world.planes.planes() {
                for key in reconciler.keys(&self.world, &plane) {
                    queue.add(key);
                }
            }
        }
    }

    /// Begins with everything there is, and runs passes until `stop`; then waits for those that run.
    pub(super) fn run(&self, stop: &CancellationToken) -> JoinSet<()> {
        self.dispatch.lead();
        let mut running = JoinSet::new();
        for Lane { reconciler, queue } in self.dispatch.lanes().iter().cloned() {
            let runner = Arc::new(Runner::new(reconciler, Arc::clone(&self.world)));
            let stop = stop.clone();
            let (reviewed, ends) = (Arc::clone(&runner), stop.clone());
            running.spawn(async move { reviewed.review(&ends).await });
            running.spawn(async move {
                let pass = move |key: Arc<crate::queue::Key>| {
                    let runner = Arc::clone(&runner);
                    async move { runner.pass(&key).await }
                };
                queue.run(pass, stop).await;
            });
        }
        running
    }

    /// Leaves all planes.
    pub(super) async fn end(self) {
        if let Some(discovery) = self.discovery {
            discovery.abort();
            // Its end is what is waited for, not its result.
            let _ = discovery.await;
        }
        self.world.planes.disengage_all().await;
    }
}

fn interests(plane: &Plane) -> &'static [Interest] {
    match plane {
        Plane::Project(_) => &PROJECT,
        Plane::Hub => &HUB,
        Plane::Cell => &[],
    }
}

/// How projects are found.
struct Found {
    client: Client,
    kind: popcell_api::kind::Kind,
    discovery: Discovery,
}

impl Found {
    fn checks(&self, metrics: &Metrics) -> [Check; 2] {
        let progress = self.discovery.progress();
        let watched = Arc::clone(&progress);
        metrics.before_scrape(Box::new(move |metrics| observe_discovery(metrics, &watched)));
        [discovery_synced(self.discovery.store()), projects_engaged(progress)]
    }
}

fn discovery(settings: &Settings, connections: &Connections) -> Result<Option<Found>, RunError> {
    let (Where::Milo(milo), Some(config)) = (&settings.discovery, &connections.projects) else {
        return Ok(None);
    };
    let (kind, condition) = (milo.kind, milo.condition);
    let client = Client::try_from(tuned(config.clone())).map_err(|source| crate::Error::Client {
        plane: Plane::Project("discovery".to_owned()),
        source: Box::new(source),
    })?;
    Ok(Some(Found {
        discovery: Discovery::new(client.clone(), kind, condition),
        client,
        kind,
    }))
}
