//! The controller: watches Instances and Pods, decides, and sends what was decided.
//!
//! It is kube's applier, which is what kube's `Controller` is made of, since that keeps no store of what it owns. Instances and
//! Pods are stored; a store that is behind does no harm, because every write has a precondition: a creation fails where the Pod
//! is there, a deletion names the uid, a patch the resourceVersion.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
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
use tracing::{debug, info, warn};

use crate::conditions::Report;
use crate::lifecycle::{Decision, Step, decide};
use crate::pod::{Manifest, Settings};

/// Instances that are worked on at a time.
const AT_A_TIME: u16 = 16;
/// The longest that one reconcile may take: a server that does not answer holds up no others for longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// The longest that a failed Instance waits.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

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

/// Runs the provider of a cell until one of its watches ends, which they do not by themselves. `started` is given the provider,
/// to answer probes.
pub async fn run(client: Client, settings: Settings, started: impl FnOnce(Arc<Provider>)) {
    let resource = kind::INSTANCE.resource();
    let instances = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let writer = Writer::<DynamicObject>::new(resource.clone());
    let store = writer.as_reader();
    let instances = watcher(instances, watcher::Config::default()).modify(|one| one.metadata.managed_fields = None);
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
    let watching = tokio::spawn(watch_pods(client.clone(), writer, requests));

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
        () = working => {}
        _ = watching => {}
    }
}

/// Keeps the store of Pods, and asks for a reconcile of the Instance of each Pod that changes.
async fn watch_pods(
    client: Client,
    writer: Writer<Pod>,
    requests: mpsc::UnboundedSender<ReconcileRequest<DynamicObject>>,
) {
    let marked = watcher::Config::default().labels(labels::INSTANCE_UID);
    let pods = watcher(Api::<Pod>::all(client), marked).modify(forget_containers);
    let mut pods = pin!(reflector(writer, pods).default_backoff().touched_objects());
    while let Some(pod) = pods.next().await {
        let pod = match pod {
            Ok(pod) => pod,
            Err(error) => {
                warn!("watch of Pods failed: {}", chain(&error));
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

/// Containers hold a tenant's variables, and are not read.
fn forget_containers(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    if let Some(spec) = &mut pod.spec {
        spec.containers = Vec::new();
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
    let reason = match status.code {
        400 | 422 => reasons::CONFIGURATION_ERROR,
        403 => reasons::PROVISIONING,
        _ => return None,
    };
    let message = format!("The cell rejects the Pod: {}", status.message);
    Some(Report::waiting(reason, message))
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
