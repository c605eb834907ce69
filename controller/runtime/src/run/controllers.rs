//! The controllers of both groups, put together: those that the settings switch on.

use std::sync::Arc;

use kube::Client;
use popcell_api::kind::{INSTANCE, RESOURCE_CLAIM};
use popcell_core::metrics as table;
use popcell_core::plan::Plane;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::RunError;
use super::notices::{Notices, Teller};
use super::observe::{Meters, observe_all, observe_discovery};
use super::release::ByConfigMap;
use crate::apply::{Applier, MayWrite, Options};
use crate::cell::{Cell, engage};
use crate::config::{Connections, Discovery as Where, Settings};
use crate::health::{Check, HUB_SYNCED, Patience, discovery_synced, plane_synced, projects_engaged};
use crate::metrics::Metrics;
use crate::pass::Runner;
use crate::planes::{self, CELL, CELL_NETWORKS, Direct, Discovery, Interests, Planes, SINGLE, client, of_source};
use crate::reconcilers::{self, Dispatch, Lane};
use crate::required::{Ended, Required};
use crate::world::{Rules, World};

/// Planes that are watched, and reconcilers that begin with the permit.
pub(super) struct Controllers {
    world: Arc<World>,
    dispatch: Arc<Dispatch>,
    tasks: JoinSet<()>,
    required: Required,
    checks: Vec<Check>,
    /// Who has the deletion guard released where there is no Lease.
    release: Option<ByConfigMap>,
    /// Has projects looked at again that were held.
    projects_again: Option<Arc<Notify>>,
}

impl Controllers {
    /// Begins to watch; nothing is written yet.
    pub(super) async fn start(
        settings: &Settings,
        connections: &Connections,
        transport: Direct,
        metrics: &Metrics,
        may_write: MayWrite,
    ) -> Result<Self, RunError> {
        let hub = settings.hub.is_some();
        let cell = settings.controllers.cell.then(|| Arc::new(Cell::new(settings)));
        let lanes = lanes(settings, cell.as_ref());
        let dispatch = Arc::new(Dispatch::new(lanes));
        let planes = Planes::new(
            Box::new(transport),
            interests(settings),
            settings.limits,
            dispatch.clone(),
        );
        let discovery = discovery(settings, connections)?;
        let options = Options {
            dry_run: settings.dry_run,
            may_write: Arc::clone(&may_write),
            discovery: discovery.as_ref().map(|found| (found.client.clone(), found.kind)),
            namespace: settings.namespace.clone(),
        };
        let (notices, teller) = notices(settings, connections)?.unzip();
        let meters = Arc::new(Meters {
            metrics: metrics.clone(),
            notices,
        });
        let applier = Applier::new(planes.clone(), options, meters.clone());
        let rules = Rules {
            project_grace: settings.project_grace,
            cell_grace: settings.cell_grace,
            reclaim_orphans: settings.reclaim_orphans,
            hub_instances: settings.hub_instances,
        };
        let projects = discovery.as_ref().map(|found| found.discovery.store());
        let world = Arc::new(World::new(planes.clone(), applier, meters, rules, projects));
        dispatch.listen(&world);
        observe_all(metrics, Arc::clone(&world), dispatch.lanes().to_vec(), may_write);

        let release = release(settings, connections)?;
        let projects_again = discovery.as_ref().map(|found| found.discovery.again());
        let mut checks = Vec::new();
        let mut tasks = JoinSet::new();
        let required = Required::default();
        let patience = Patience::of(settings.webhook.is_some());
        if let Some(teller) = teller {
            tasks.spawn(
                required
                    .clone()
                    .endless("the writer of events on the Lease", teller.run()),
            );
        }
        if let Some(cell) = cell {
            metrics.set(&table::QUOTA_ENFORCED, &[], f64::from(u8::from(cell.quota)));
            planes.engage(&Plane::Cell, None).await?;
            checks.push(plane_synced("cell-synced", planes.clone(), Plane::Cell, patience));
            let engaging = engage(cell, Arc::clone(&world));
            tasks.spawn(required.clone().endless("the engagement of planes", engaging));
        }
        if settings.controllers.management {
            if hub {
                planes.engage(&Plane::Hub, None).await?;
                checks.push(plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub, patience));
            }
            if let Some(found) = discovery {
                checks.extend(found.checks(metrics, patience));
                let finding = found.discovery.guarded(world.clone()).telling(&world.ends).run(planes);
                tasks.spawn(required.clone().endless("the discovery of projects", finding));
            } else {
                let project = Plane::Project(SINGLE.to_owned());
                planes.engage(&project, None).await?;
                checks.push(plane_synced("project-synced", planes, project, patience));
            }
        }
        Ok(Self {
            world,
            dispatch,
            tasks,
            required,
            checks,
            release,
            projects_again,
        })
    }

    /// Waits until a task has ended that must not.
    pub(super) async fn failed(&self) -> Ended {
        tokio::select! {
            ended = self.required.failed() => ended,
            ended = self.world.planes.required().failed() => ended,
        }
    }

    /// What readiness waits for.
    pub(super) fn checks(&mut self) -> Vec<Check> {
        std::mem::take(&mut self.checks)
    }

    /// Waits until a person releases the deletion guard by a ConfigMap, and gives what it says; for ever where there is a
    /// Lease for it.
    pub(super) async fn next_release(&self) -> String {
        match &self.release {
            Some(release) => {
                release
                    .next(|| self.world.applier.brakes().held().next().is_some())
                    .await
            }
            None => std::future::pending().await,
        }
    }

    /// Opens the deletion guards that hold and that this names, and decides everything anew that they held.
    pub(super) fn release_brakes(&self, value: &str) {
        if !self.world.applier.release_brakes(value) {
            return;
        }
        if let Some(again) = &self.projects_again {
            again.notify_one();
        }
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
            let name = runner.name();
            let task = |what: &str| format!("the {what} of reconciler {name}");
            let review = async move { reviewed.review(&ends).await };
            running.spawn(self.required.clone().until(stop.clone(), task("review"), review));
            let until = stop.clone();
            let passes = async move {
                let pass = move |key: Arc<crate::queue::Key>| {
                    let runner = Arc::clone(&runner);
                    async move { runner.pass(&key).await }
                };
                queue.run(pass, until).await;
            };
            running.spawn(self.required.clone().until(stop, task("queue"), passes));
        }
        running
    }

    /// Leaves all planes.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
        self.world.planes.disengage_all().await;
    }
}

fn lanes(settings: &Settings, cell: Option<&Arc<Cell>>) -> Vec<Lane> {
    let mut lanes = Vec::new();
    if settings.controllers.management {
        let all = reconcilers::management(settings.hub.is_some()).into_iter();
        lanes.extend(all.map(|reconciler| Lane::new(reconciler, settings.workers)));
    }
    if let Some(cell) = cell {
        lanes.extend(reconcilers::cell_lanes(cell, settings.workers));
    }
    lanes
}

/// What each plane is watched for. A cell watches of other planes only what is its own.
fn interests(settings: &Settings) -> Interests {
    let (management, networking) = (settings.controllers.management, settings.networking);
    let is_local = settings.discovery == Where::Single;
    let cluster = settings.cluster_name.clone();
    Box::new(move |plane| match plane {
        Plane::Cell if networking => CELL.into_iter().chain(CELL_NETWORKS).collect(),
        Plane::Cell => Arc::from(CELL),
        Plane::Hub if !management => Arc::from([of_source(INSTANCE, &cluster)]),
        Plane::Project(id) if !management || (id != SINGLE && is_local) => {
            Arc::from([of_source(RESOURCE_CLAIM, &cluster)])
        }
        other => planes::management(other),
    })
}

/// Who takes in what is to be told on our Lease, and who tells it.
fn notices(settings: &Settings, connections: &Connections) -> Result<Option<(Notices, Teller)>, RunError> {
    let Some(lease) = &settings.lease else {
        return Ok(None);
    };
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(Notices::new(client, lease)))
}

/// Who looks for a release where no Lease can carry it. What writes nothing holds nothing.
fn release(settings: &Settings, connections: &Connections) -> Result<Option<ByConfigMap>, RunError> {
    if settings.lease.is_some() || settings.dry_run {
        return Ok(None);
    }
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(ByConfigMap::new(client, &settings.namespace)))
}

/// How projects are found.
struct Found {
    client: Client,
    kind: popcell_api::kind::Kind,
    discovery: Discovery,
}

impl Found {
    fn checks(&self, metrics: &Metrics, patience: Patience) -> [Check; 2] {
        let progress = self.discovery.progress();
        observe_discovery(metrics, Arc::clone(&progress));
        [
            discovery_synced(self.discovery.store(), patience),
            projects_engaged(progress, patience),
        ]
    }
}

fn discovery(settings: &Settings, connections: &Connections) -> Result<Option<Found>, RunError> {
    let (Where::Milo(milo), Some(config)) = (&settings.discovery, &connections.projects) else {
        return Ok(None);
    };
    let (kind, condition) = (milo.kind, milo.condition);
    let client = client(&connections.tokens, &Plane::Discovery, config.clone())?;
    Ok(Some(Found {
        discovery: Discovery::new(client.clone(), kind, condition),
        client,
        kind,
    }))
}
