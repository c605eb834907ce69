//! The controller: watches Instances and Pods, decides, and sends what was decided.
//!
//! It is kube's applier, which is what kube's `Controller` is made of, since that keeps no store of what it owns. Instances and
//! Pods are stored; a store that is behind does no harm, because every write has a precondition: a creation fails where the Pod
//! is there, a deletion names the uid, a patch the resourceVersion.
//!
//! A watch of a server that was restored from a backup says nothing until the server has overtaken what the watch has seen. So
//! the provider ends where the server's resourceVersion has gone back, and the process that replaces it lists everything.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, Pod, SecretVolumeSource, Volume};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::runtime::controller::{Action, Error as ApplierError, ReconcileRequest};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Config, WatchStreamExt, applier, reflector, watcher};
use kube::{Client, ResourceExt};
use popcell_api::conditions::reasons;
use popcell_api::{finalizers, kind, labels};
use popcell_client::chain;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use crate::conditions::Report;
use crate::lifecycle::{self, Decision, Step, decide};
use crate::pod::{Manifest, Settings};

/// Objects that are listed at a time: each can be as large as a server takes.
const PAGE: u32 = 50;
/// Instances that are worked on at a time.
const AT_A_TIME: u16 = 16;
/// The longest that one reconcile may take: a server that does not answer holds up no others for longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Characters of a reason that are logged.
const LONGEST_REASON: usize = 500;
/// The longest that a failed Instance waits.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// How often the server is looked at.
const LOOK: Duration = Duration::from_mins(1);
/// After how long one that did not answer is asked again, and how often.
const AGAIN: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 60;

/// Why the provider ended.
#[derive(Debug, Error)]
pub enum Ended {
    /// They do not by themselves.
    #[error("a watch ended by itself")]
    Watch,
    /// The server was restored from a backup.
    #[error("the API server has an older state than before: its resourceVersion went from {before} to {now}")]
    SetBack {
        /// What it had said.
        before: u64,
        /// What it says.
        now: u64,
    },
}

/// Why a reconcile failed; it is repeated, later each time. A server's words may repeat values of a tenant's object, so they are
/// in its conditions and not in the log.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The server was not reached, or its answer cannot be read.
    #[error("failed to {what}")]
    Request {
        /// What was asked of the server.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// The server refused.
    #[error("failed to {what}: the server answered {code} {reason}")]
    Answer {
        /// What was asked of it.
        what: &'static str,
        /// HTTP status.
        code: u16,
        /// Reason, as Kubernetes names it.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("the server did not answer within {} s", DEADLINE.as_secs())]
    Late,
}

fn failed(what: &'static str) -> impl FnOnce(kube::Error) -> ReconcileError {
    move |error| match error {
        kube::Error::Api(status) => ReconcileError::Answer {
            what,
            code: status.code,
            reason: status.reason,
        },
        source => ReconcileError::Request { what, source },
    }
}

/// Namespace and name of an Instance.
type Key = (String, String);

fn key(instance: &DynamicObject) -> Key {
    (instance.namespace().unwrap_or_default(), instance.name_any())
}

/// What the program has done, as its metrics say it.
#[derive(Debug, Default)]
struct Counts {
    created: AtomicU64,
    deleted: AtomicU64,
    reported: AtomicU64,
    failed: AtomicU64,
}

/// The provider of one cell.
pub struct Provider {
    client: Client,
    settings: Settings,
    pods: Store<Pod>,
    /// Failures in a row. An Instance that is gone loses its entry when its retry comes, so there are no more than Instances that
    /// were there within the longest backoff.
    failures: Mutex<HashMap<Key, u32>>,
    counts: Counts,
    synced: Arc<AtomicBool>,
}

/// Runs the provider of a cell until it has to be replaced. `started` is given the provider, to answer probes.
pub async fn run(client: Client, settings: Settings, started: impl FnOnce(Arc<Provider>)) -> Ended {
    let resource = kind::INSTANCE.resource();
    let instances = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let seen = Arc::new(Seen::default());
    let all_pods = Api::all_with(client.clone(), &ApiResource::erase::<Pod>(&()));
    let looking = set_back(instances.clone(), all_pods, Arc::clone(&seen));
    let writer = Writer::<DynamicObject>::new(resource.clone());
    let store = writer.as_reader();
    let (noted, failing) = (Arc::clone(&seen), Arc::clone(&seen));
    let instances = watcher(instances, watcher::Config::default().page_size(PAGE))
        .inspect_err(move |_| failing.failed.notify_one())
        .modify(move |one| {
            note(&noted.instances, &one.metadata);
            forget_template(one);
        });
    let synced = Arc::new(AtomicBool::new(false));
    let listed = Arc::clone(&synced);
    // The store has one place for who waits until it is ready, and that is the applier's.
    let instances = reflector(writer, instances).inspect_ok(move |event| {
        if matches!(event, watcher::Event::InitDone) {
            listed.store(true, Ordering::Relaxed);
        }
    });
    let instances = instances.default_backoff().applied_objects();
    let of_instances =
        instances.map_ok(move |one| ReconcileRequest::from(ObjectRef::from_obj_with(&one, resource.clone())));
    let (pods, writer) = reflector::store::<Pod>();
    // A task of its own: while every reconcile of the applier waits, the applier takes no events.
    let (requests, of_pods) = mpsc::unbounded();
    let watching = tokio::spawn(watch_pods(client.clone(), writer, requests, seen));

    let provider = Arc::new(Provider {
        client,
        settings,
        pods,
        failures: Mutex::default(),
        counts: Counts::default(),
        synced,
    });
    started(Arc::clone(&provider));
    let working = async {
        if provider.pods.wait_until_ready().await.is_err() {
            return;
        }
        applier(
            |instance, provider: Arc<Provider>| Box::pin(async move { provider.reconcile(&instance).await }),
            |instance, error, provider| provider.after(&instance, error),
            Arc::clone(&provider),
            store,
            stream::select(of_instances.boxed(), of_pods.map(Ok)),
            Config::default().concurrency(AT_A_TIME),
        )
        .for_each(async |outcome| match outcome {
            // Those that failed are logged where that happened.
            Ok(_) | Err(ApplierError::ReconcilerFailed(..)) => {}
            Err(ApplierError::ObjectNotFound(gone)) => provider.forget(&gone),
            Err(error) => warn!("watch of Instances failed: {}", chain(&error)),
        })
        .await;
    };
    tokio::select! {
        () = working => Ended::Watch,
        _ = watching => Ended::Watch,
        ended = looking => ended,
    }
}

/// The highest resourceVersion of each kind that was seen. They may be stored apart, so one says nothing of the other.
#[derive(Default)]
struct Seen {
    instances: AtomicU64,
    pods: AtomicU64,
    /// A watch failed, as most do where the server is restored.
    failed: Notify,
}

fn note(newest: &AtomicU64, object: &ObjectMeta) {
    newest.fetch_max(version(object.resource_version.as_deref()), Ordering::Relaxed);
}

/// A server whose resourceVersions are no numbers is never found to be set back.
fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Waits until the server is older than what has been seen of it. It is looked at when a watch has failed, and every [`LOOK`], since
/// objects are not all that a watch has seen.
async fn set_back(instances: Api<DynamicObject>, pods: Api<DynamicObject>, seen: Arc<Seen>) -> Ended {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = seen.failed.notified() => {}
        }
        let ended = is_set_back(&seen.instances, &instances, "").await;
        let ended = match ended {
            None => is_set_back(&seen.pods, &pods, labels::INSTANCE_UID).await,
            ended => ended,
        };
        if let Some(ended) = ended {
            return ended;
        }
    }
}

async fn is_set_back(newest: &AtomicU64, all: &Api<DynamicObject>, selector: &str) -> Option<Ended> {
    let one = ListParams::default().limit(1).labels(selector);
    // One that starts refuses everything for a moment; what it never answers is left to the next look.
    for _ in 0..ATTEMPTS {
        let before = newest.load(Ordering::Relaxed);
        let Ok(listed) = all.list_metadata(&one).await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let now = version(listed.metadata.resource_version.as_deref());
        newest.fetch_max(now, Ordering::Relaxed);
        return (now > 0 && now < before).then_some(Ended::SetBack { before, now });
    }
    None
}

/// Keeps the store of Pods, and asks for a reconcile of the Instance of each Pod that changes.
async fn watch_pods(
    client: Client,
    writer: Writer<Pod>,
    requests: mpsc::UnboundedSender<ReconcileRequest<DynamicObject>>,
    seen: Arc<Seen>,
) {
    let marked = watcher::Config::default().labels(labels::INSTANCE_UID).page_size(PAGE);
    let pods = watcher(Api::<Pod>::all(client), marked).modify(|pod| {
        forget_containers(pod);
        note(&seen.pods, &pod.metadata);
    });
    let mut pods = pin!(reflector(writer, pods).default_backoff().touched_objects());
    while let Some(pod) = pods.next().await {
        let pod = match pod {
            Ok(pod) => pod,
            Err(error) => {
                warn!("watch of Pods failed: {}", chain(&error));
                seen.failed.notify_one();
                continue;
            }
        };
        let instance = ObjectRef::new_with(&pod.name_any(), kind::INSTANCE.resource());
        let instance = instance.within(&pod.namespace().unwrap_or_default());
        if requests.unbounded_send(ReconcileRequest::from(instance)).is_err() {
            return;
        }
    }
}

/// Leaves what is decided from while there is a Pod: a template can be large, and there are thousands of Instances. Who makes a
/// Pod reads the Instance.
fn forget_template(instance: &mut DynamicObject) {
    instance.metadata = ObjectMeta {
        labels: None,
        annotations: None,
        owner_references: None,
        managed_fields: None,
        ..std::mem::take(&mut instance.metadata)
    };
    let mut gates = Value::Null;
    if let Some(found) = instance.data.pointer_mut(lifecycle::GATES) {
        gates = found.take();
    }
    let status = instance.data.get_mut("status").map(Value::take);
    instance.data = json!({ "spec": { "controller": { "schedulingGates": gates } }, "status": status });
}

/// Containers hold a tenant's variables, and are not read; of a volume it is read whether it is a directory of its own, or names
/// keys.
fn forget_containers(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    let Some(spec) = &mut pod.spec else {
        return;
    };
    spec.containers = Vec::new();
    for volume in spec.volumes.iter_mut().flatten() {
        let (config_map, secret) = (volume.config_map.take(), volume.secret.take());
        *volume = Volume {
            name: std::mem::take(&mut volume.name),
            empty_dir: volume.empty_dir.take(),
            config_map: config_map.map(|one| ConfigMapVolumeSource {
                items: one.items.map(|_| Vec::new()),
                optional: one.optional,
                ..ConfigMapVolumeSource::default()
            }),
            secret: secret.map(|one| SecretVolumeSource {
                items: one.items.map(|_| Vec::new()),
                optional: one.optional,
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        };
    }
}

impl Provider {
    /// Whether Instances and Pods have been listed.
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    /// The page of metrics, as OpenMetrics text.
    pub fn metrics(&self) -> String {
        let Counts {
            created,
            deleted,
            reported,
            failed,
        } = &self.counts;
        let mut page = String::new();
        for (name, help, count) in [
            ("pods_created", "Pods that were created", created),
            ("pods_deleted", "Pods that were deleted", deleted),
            ("status_writes", "Statuses of Instances that were written", reported),
            ("failures", "Reconciles that failed, each of which is repeated", failed),
        ] {
            let count = count.load(Ordering::Relaxed);
            // Writing to a String does not fail.
            let _ = write!(
                page,
                "# HELP popcell_provider_pod_{name} {help}.\n# TYPE popcell_provider_pod_{name} counter\n\
                 popcell_provider_pod_{name}_total {count}\n"
            );
        }
        page + "# EOF\n"
    }

    async fn reconcile(&self, instance: &DynamicObject) -> Result<Action, ReconcileError> {
        let work = tokio::time::timeout(DEADLINE, Box::pin(self.work(instance)));
        let action = work.await.map_err(|_| ReconcileError::Late)??;
        self.with_failures(|failures| failures.remove(&key(instance)));
        Ok(action)
    }

    /// When a failed Instance is tried again.
    fn after(&self, instance: &DynamicObject, error: &ReconcileError) -> Action {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let before = self.with_failures(|failures| {
            let count = failures.entry(key(instance)).or_default();
            *count = count.saturating_add(1);
            count.saturating_sub(1)
        });
        let delay = Duration::from_secs(1)
            .saturating_mul(2_u32.saturating_pow(before.min(16)))
            .min(LONGEST_BACKOFF);
        let (namespace, name) = key(instance);
        warn!(namespace, name, ?delay, "reconcile failed: {}", chain(error));
        Action::requeue(delay)
    }

    /// An Instance that is gone fails no more. A Pod that outlives it comes here too.
    fn forget(&self, gone: &ObjectRef<DynamicObject>) {
        let key = (gone.namespace.clone().unwrap_or_default(), gone.name.clone());
        self.with_failures(|failures| failures.remove(&key));
    }

    fn with_failures<T>(&self, change: impl FnOnce(&mut HashMap<Key, u32>) -> T) -> T {
        change(&mut self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn work(&self, instance: &DynamicObject) -> Result<Action, ReconcileError> {
        let (namespace, name) = key(instance);
        let seen = self.pods.get(&ObjectRef::new(&name).within(&namespace));
        let whole;
        let mut instance = instance;
        if lifecycle::may_make(instance, seen.as_deref()) {
            let read = self.instances(instance).get_opt(&name).await;
            // One that is gone has its event on its way.
            let Some(read) = read.map_err(failed("read the Instance"))? else {
                return Ok(Action::await_change());
            };
            whole = read;
            instance = &whole;
        }
        let mut decision = decide(instance, seen.as_deref(), &self.settings, Timestamp::now());
        let pods = Api::<Pod>::namespaced(self.client.clone(), &namespace);
        let live = async || pods.get_opt(&name).await.map_err(failed("read the Pod"));
        match std::mem::replace(&mut decision.step, Step::None) {
            Step::None => {}
            Step::AddFinalizer => self.set_finalizer(instance, true).await?,
            Step::Delete(uid) => self.delete(&pods, &name, uid).await?,
            Step::Release => match live().await? {
                None => self.set_finalizer(instance, false).await?,
                pod => {
                    // The store is behind: the Pod's event is on its way.
                    decision = decide(instance, pod.as_ref(), &self.settings, Timestamp::now());
                    match std::mem::replace(&mut decision.step, Step::None) {
                        Step::Delete(uid) => self.delete(&pods, &name, uid).await?,
                        // It is another owner's.
                        Step::Release => self.set_finalizer(instance, false).await?,
                        _ => {}
                    }
                }
            },
            Step::Replace(uid, manifest) => {
                self.delete(&pods, &name, uid).await?;
                decision = self.create(instance, &pods, *manifest, live).await?;
            }
            Step::Create(manifest) => decision = self.create(instance, &pods, *manifest, live).await?,
        }
        if let Some(report) = &decision.report {
            self.report(instance, report).await?;
        }
        Ok(decision.requeue.map_or_else(Action::await_change, Action::requeue))
    }

    /// Creates a Pod, after what guards it, and decides on it. What the cluster says of one that it rejects is in the status.
    async fn create(
        &self,
        instance: &DynamicObject,
        pods: &Api<Pod>,
        manifest: Manifest,
        live: impl AsyncFnOnce() -> Result<Option<Pod>, ReconcileError>,
    ) -> Result<Decision, ReconcileError> {
        let Manifest { policy, pod } = manifest;
        let created = async {
            if let Some(policy) = &policy {
                let namespace = instance.namespace().unwrap_or_default();
                let policies = Api::<NetworkPolicy>::namespaced(self.client.clone(), &namespace);
                match policies.create(&PostParams::default(), policy).await {
                    Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                    made => drop(made?),
                }
            }
            pods.create(&PostParams::default(), &pod).await
        };
        let seen = match created.await {
            Ok(made) => {
                self.counts.created.fetch_add(1, Ordering::Relaxed);
                info!(namespace = made.namespace(), name = made.name_any(), "created a Pod");
                Some(made)
            }
            // The store is behind, or the name is taken.
            Err(kube::Error::Api(status)) if status.is_already_exists() => live().await?,
            Err(error) => {
                if let kube::Error::Api(status) = &error
                    && status.code == 403
                {
                    // It quotes what the operator's own policies quote.
                    let why: String = status.message.chars().take(LONGEST_REASON).collect();
                    warn!(
                        namespace = instance.namespace(),
                        name = instance.name_any(),
                        "the cell forbids the Pod: {why:?}"
                    );
                }
                if let Some(report) = rejected(&error) {
                    self.report(instance, &report).await?;
                }
                return Err(failed("create the Pod")(error));
            }
        };
        let Some(seen) = seen else {
            // It ended between two requests, and its event is on its way.
            return Ok(decide_again());
        };
        let mut decision = decide(instance, Some(&seen), &self.settings, Timestamp::now());
        decision.step = Step::None;
        Ok(decision)
    }

    async fn delete(&self, pods: &Api<Pod>, name: &str, uid: String) -> Result<(), ReconcileError> {
        let only = DeleteParams::default().preconditions(Preconditions {
            uid: Some(uid.clone()),
            resource_version: None,
        });
        match pods.delete(name, &only).await {
            Ok(_) => {
                self.counts.deleted.fetch_add(1, Ordering::Relaxed);
                info!(name, %uid, "deleted a Pod");
                Ok(())
            }
            Err(error) => overtaken(error).map_err(failed("delete the Pod")),
        }
    }

    async fn report(&self, instance: &DynamicObject, report: &Report) -> Result<(), ReconcileError> {
        let Some(patch) = report.patch(instance, Timestamp::now()) else {
            return Ok(());
        };
        self.counts.reported.fetch_add(1, Ordering::Relaxed);
        let written = self
            .instances(instance)
            .patch_status(&instance.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        written
            .map(drop)
            .or_else(overtaken)
            .map_err(failed("write the status of the Instance"))
    }

    async fn set_finalizer(&self, instance: &DynamicObject, is_set: bool) -> Result<(), ReconcileError> {
        let others = instance.finalizers().iter().map(String::as_str);
        let others = others.filter(|one| *one != finalizers::POD_PROVIDER);
        let all: Vec<&str> = others.chain(is_set.then_some(finalizers::POD_PROVIDER)).collect();
        let patch: Value = json!({ "metadata": { "resourceVersion": instance.resource_version(), "finalizers": all } });
        let written = self
            .instances(instance)
            .patch(&instance.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        written
            .map(drop)
            .or_else(overtaken)
            .map_err(failed("write the finalizers of the Instance"))
    }

    fn instances(&self, instance: &DynamicObject) -> Api<DynamicObject> {
        let namespace = instance.namespace().unwrap_or_default();
        Api::namespaced_with(self.client.clone(), &namespace, &kind::INSTANCE.resource())
    }
}

fn decide_again() -> Decision {
    Decision {
        step: Step::None,
        report: None,
        requeue: Some(Duration::from_secs(1)),
    }
}

/// What a rejection says of an Instance: that its spec is wrong, or that the cluster does not take it now.
fn rejected(error: &kube::Error) -> Option<Report> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    match status.code {
        400 | 422 => {
            let message = format!("The cell rejects the Pod: {}", status.message);
            Some(Report::waiting(reasons::CONFIGURATION_ERROR, message))
        }
        // The server's words name accounts, quotas and policies of the cell.
        403 => Some(Report::waiting(
            reasons::PROVISIONING,
            "The cell does not admit the Pod: ask the operator of this city, whose provider logs why",
        )),
        _ => None,
    }
}

/// A write whose precondition does not hold is no failure: the event of what was faster brings the next reconcile.
fn overtaken(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.is_conflict() || status.is_not_found() => {
            debug!(code = status.code, "overtaken by another write");
            Ok(())
        }
        other => Err(other),
    }
}

#[cfg(test)]
mod tests;
