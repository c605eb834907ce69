//! The controllers of both groups, put together: those that the settings switch on.

use std::sync::Arc;

use kube::Client;
use popcell_api::kind::{INSTANCE, INSTANCE_TYPE, RESOURCE_CLAIM};
use popcell_core::metrics as table;
use popcell_core::plan::Plane;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RunError;
use super::guard_events::{EventRecorder, GuardEvents};
use super::networks::Networks;
use super::observe::{Meters, observe_all, observe_discovery};
use super::release::ByConfigMap;
use crate::apply::{Applier, MayWrite, Options};
use crate::cell::{Cell, INSTANCE_RECONCILER, engage};
use crate::config::{Connections, Discovery as Where, Settings};
use crate::context::{Context, Rules};
use crate::critical_tasks::{CriticalTasks, Ended};
use crate::flags::Networking;
use crate::health::{Check, HUB_SYNCED, Patience, discovery_synced, plane_synced, projects_engaged};
use crate::metrics::Metrics;
use crate::planes::{
    self, CELL, CELL_NETWORKS, Direct, Discovery, InstanceTypes, Planes, SINGLE, WatchSpecs, client, of_source,
};
use crate::reconcile::Runner;
use crate::reconcilers::{self, EventRouter, QueuedReconciler};

/// Planes that are watched, and reconcilers that begin with the permit.
pub(super) struct Controllers {
    context: Arc<Context>,
    event_router: Arc<EventRouter>,
    tasks: JoinSet<()>,
    required: CriticalTasks,
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
        (connections, transport, types): (&Connections, Direct, InstanceTypes),
        metrics: &Metrics,
        may_write: MayWrite,
        stop: &CancellationToken,
    ) -> Result<Self, RunError> {
        let hub = settings.hub.is_some();
        let networks = networks(settings, connections).await?;
        let networking = networks.as_ref().is_some_and(Networks::are_waited_for);
        let is_cell = settings.controllers.cell;
        let cell = is_cell.then(|| Arc::new(Cell::new(settings, networking)));
        let queued_reconcilers = queued_reconcilers(settings, cell.as_ref());
        let event_router = Arc::new(EventRouter::new(queued_reconcilers));
        let planes = Planes::new(
            Box::new(transport),
            watch_specs(settings, networking),
            settings.limits,
            event_router.clone(),
        );
        let discovery = discovery(settings, connections)?;
        let options = Options {
            dry_run: settings.dry_run,
            may_write: Arc::clone(&may_write),
            discovery: discovery.as_ref().map(|found| (found.client.clone(), found.kind)),
            namespace: settings.namespace.clone(),
        };
        let (guard_events, recorder) = guard_events(settings, connections)?.unzip();
        let meters = Arc::new(Meters {
            metrics: metrics.clone(),
            guard_events,
        });
        let applier = Applier::new(planes.clone(), options, meters.clone());
        let rules = Rules {
            project_grace: settings.project_grace,
            cell_grace: settings.cell_grace,
            reclaim_orphans: settings.reclaim_orphans,
            hub_instances: settings.hub_instances,
            carries_data: settings.referenced_data,
            object_bytes: settings.limits.object_bytes,
            data_bytes: settings.limits.data_bytes,
        };
        let projects = discovery.as_ref().map(|found| found.discovery.store());
        let context = Context::new(planes.clone(), applier, meters, rules, projects);
        let context = Arc::new(context.with_types(types.clone()));
        event_router.listen(&context);
        observe_all(
            metrics,
            Arc::clone(&context),
            event_router.queued_reconcilers().to_vec(),
            may_write,
        );

        let release = release(settings, connections)?;
        let projects_again = discovery.as_ref().map(|found| found.discovery.again());
        let mut checks = Vec::new();
        let mut tasks = JoinSet::new();
        let required = CriticalTasks::default();
        let patience = Patience::of(settings.webhook.is_some());
        tasks.spawn(follow_types(types, planes.clone(), required.clone()));
        if let Some(recorder) = recorder {
            tasks.spawn(
                required
                    .clone()
                    .endless("the writer of events on the Lease", recorder.run()),
            );
        }
        if let Some(cell) = cell {
            metrics.set(&table::QUOTA_ENFORCED, &[], f64::from(u8::from(cell.quota)));
            planes.engage(&Plane::Cell, None).await?;
            checks.push(plane_synced("cell-synced", planes.clone(), Plane::Cell, patience));
            if let Some(networks) = networks {
                let following = follow(networks, &cell, (&event_router, &context), stop);
                tasks.spawn(required.clone().endless("the watch for kinds of networks", following));
            }
            let engaging = engage(cell, Arc::clone(&context));
            tasks.spawn(required.clone().endless("the engagement of planes", engaging));
        }
        if settings.controllers.management {
            if hub {
                planes.engage(&Plane::Hub, None).await?;
                checks.push(plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub, patience));
            }
            if let Some(found) = discovery {
                checks.extend(found.checks(metrics, patience));
                let finding = found
                    .discovery
                    .guarded(context.clone())
                    .with_project_removals(&context.project_removals)
                    .run(planes);
                tasks.spawn(required.clone().endless("the discovery of projects", finding));
            } else {
                let project = Plane::Project(SINGLE.to_owned());
                planes.engage(&project, None).await?;
                checks.push(plane_synced("project-synced", planes, project, patience));
            }
        }
        Ok(Self {
            context,
            event_router,
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
            ended = self.context.planes.required().failed() => ended,
        }
    }

    /// What readiness waits for.
    pub(super) fn checks(&mut self) -> Vec<Check> {
        std::mem::take(&mut self.checks)
    }

    /// Waits until a person releases the deletion guard by a ConfigMap, and gives what it says; forever where there is a
    /// Lease for it.
    pub(super) async fn next_release(&self) -> String {
        match &self.release {
            Some(release) => {
                release
                    .next(|| self.context.applier.deletion_guards().held().next().is_some())
                    .await
            }
            None => std::future::pending().await,
        }
    }

    /// Opens the deletion guards that hold and that this names, and decides everything again that they held.
    pub(super) fn release_deletion_guards(&self, value: &str) {
        if !self.context.applier.release_deletion_guards(value) {
            return;
        }
        if let Some(again) = &self.projects_again {
            again.notify_one();
        }
        for QueuedReconciler { reconciler, queue } in self.event_router.queued_reconcilers() {
            for plane in self.context.planes.planes() {
                for key in reconciler.keys(&self.context, &plane) {
                    queue.add(key);
                }
            }
        }
    }

    /// Begins with everything there is, and runs reconciles until `stop`; then waits for those that run.
    pub(super) fn run(&self, stop: &CancellationToken) -> JoinSet<()> {
        self.event_router.lead();
        let mut running = JoinSet::new();
        for QueuedReconciler { reconciler, queue } in self.event_router.queued_reconcilers().iter().cloned() {
            let runner = Arc::new(Runner::new(reconciler, Arc::clone(&self.context)));
            let stop = stop.clone();
            let (reviewed, until) = (Arc::clone(&runner), stop.clone());
            let name = runner.name();
            let task = |what: &str| format!("the {what} of reconciler {name}");
            let review = async move { reviewed.review(&until).await };
            running.spawn(self.required.clone().until(stop.clone(), task("review"), review));
            let reconciles = runner.run(queue, stop.clone());
            running.spawn(self.required.clone().until(stop, task("queue"), reconciles));
        }
        running
    }

    /// Leaves all planes.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
        self.context.planes.disengage_all().await;
    }
}

/// Has what names an instance type decided again once that is another.
async fn follow_types(types: InstanceTypes, planes: Planes, required: CriticalTasks) {
    let following = types.follow(|change| planes.notify(&Plane::Discovery, INSTANCE_TYPE, change));
    required.endless("the changes of instance types", following).await;
}

fn queued_reconcilers(settings: &Settings, cell: Option<&Arc<Cell>>) -> Vec<QueuedReconciler> {
    let mut all = Vec::new();
    if settings.controllers.management {
        all.extend(reconcilers::management(settings.hub.is_some()));
    }
    if let Some(cell) = cell {
        all.extend(reconcilers::cell(cell));
    }
    let queued = all
        .into_iter()
        .map(|reconciler| QueuedReconciler::new(reconciler, settings.workers));
    queued.collect()
}

/// Whether the cell serves networks, as its server says first; `None` where that is not asked for.
async fn networks(settings: &Settings, connections: &Connections) -> Result<Option<Networks>, RunError> {
    if !settings.controllers.cell || settings.networking == Networking::Off {
        return Ok(None);
    }
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(Networks::ask(client, settings.networking).await))
}

/// Follows what the cell serves of networks, and stops the process where it has to start again.
fn follow(
    networks: Networks,
    cell: &Arc<Cell>,
    (event_router, context): (&Arc<EventRouter>, &Arc<Context>),
    stop: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let (cell, event_router, context) = (Arc::clone(cell), Arc::clone(event_router), Arc::clone(context));
    let stop = stop.clone();
    async move {
        let changed = || look_at_instances(&event_router, &context);
        networks.follow(cell, changed).await;
        stop.cancel();
        std::future::pending::<()>().await;
    }
}

/// Has each Instance of the cell say again what it waits for.
fn look_at_instances(event_router: &EventRouter, context: &Context) {
    for QueuedReconciler { reconciler, queue } in event_router.queued_reconcilers() {
        if reconciler.name() == INSTANCE_RECONCILER {
            reconciler
                .keys(context, &Plane::Cell)
                .into_iter()
                .for_each(|key| queue.add(key));
        }
    }
}

/// What each plane is watched for. A cell watches of other planes only what is its own.
fn watch_specs(settings: &Settings, networking: bool) -> WatchSpecs {
    let management = settings.controllers.management;
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

/// Takes in changes of the deletion guards, and reports them as Events on our Lease.
fn guard_events(
    settings: &Settings,
    connections: &Connections,
) -> Result<Option<(GuardEvents, EventRecorder)>, RunError> {
    let Some(lease) = &settings.lease else {
        return Ok(None);
    };
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(GuardEvents::new(client, lease)))
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
