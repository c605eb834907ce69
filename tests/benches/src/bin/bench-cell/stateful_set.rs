//! The peer: Kubernetes' own controller for ordered instances, with pods that start at once.
//!
//! It has less to do: a pod has no gates of quota and network, no claim, and no copy on a hub. It is a process of its own
//! with that controller only, on the same API server, and may send as many requests as it likes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use popcell_api::kind::Scope;
use popcell_suites::read::{at, condition};
use popcell_test_support::{Guarded, Kind, eventually, objects};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::environment::{Environment, PATIENCE, admin};
use crate::ordered::{NAME, Owners, WARM};
use crate::plan::Plan;
use crate::results::{Ordered, Who};

const STATEFUL_SET: Kind = Kind::of("apps", "v1", "StatefulSet", "statefulsets", Scope::Namespaced);
const POD: Kind = Kind::of("", "v1", "Pod", "pods", Scope::Namespaced);
/// A namespace in the cell that no other program uses.
pub(crate) const NAMESPACE: &str = "peer";
/// Writes of the kubelet that are under way.
const AT_ONCE: usize = 16;

/// One StatefulSet, as one WorkloadDeployment.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Ordered> {
    let owners = Owners {
        who: Who::StatefulSet,
        owner: STATEFUL_SET,
        owned: POD,
        namespace: NAMESPACE,
        is_ready,
    };
    environment.cell.apply(&objects::namespace(NAMESPACE)).await?;
    let mut manager = Manager::start(environment)?;
    let _kubelet = Kubelet::start(environment);
    let make = async |name: &str, slots: i32| {
        let sent = Instant::now();
        environment.cell.apply(&stateful_set(name, slots)).await?;
        Ok(sent)
    };
    let ordered = owners.measure(environment, plan.slots, make).await?;
    clean(environment).await?;
    manager.expect_alive()?;
    Ok(ordered)
}

async fn clean(environment: &Environment) -> Result<()> {
    for name in [WARM, NAME] {
        environment.cell.delete(STATEFUL_SET, Some(NAMESPACE), name).await?;
    }
    eventually("no pod is left", PATIENCE, async || {
        let left = environment.cell.list(POD, Some(NAMESPACE), "").await?.len();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await
}

/// The process with the controller. It ends with this value.
pub(crate) struct Manager(Guarded);

impl Manager {
    pub(crate) fn start(environment: &Environment) -> Result<Self> {
        let arguments = [
            format!("--kubeconfig={}", admin(environment)?.display()),
            "--controllers=statefulset-controller".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--kube-api-qps=10000".to_owned(),
            "--kube-api-burst=10000".to_owned(),
        ];
        let log = environment.files.path().join("statefulset-controller.log");
        let program = environment.lab.program("kube-controller-manager");
        Ok(Self(Guarded::spawn(&program, &arguments, &log)?))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Fails when it has ended.
    pub(crate) fn expect_alive(&mut self) -> Result<()> {
        let status = self.0.try_wait()?;
        ensure!(
            status.is_none(),
            "the StatefulSet controller ended with {status:?}:\n{}",
            self.0.log()
        );
        Ok(())
    }
}

/// Tells of every pod at once that it runs. It ends with this value.
pub(crate) struct Kubelet {
    // Held: it ends with its value.
    _task: JoinSet<()>,
}

impl Kubelet {
    pub(crate) fn start(environment: &Environment) -> Self {
        let pods: Api<DynamicObject> = environment.cell.api(POD, Some(NAMESPACE));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let events = watcher(pods.clone(), watcher::Config::default()).default_backoff();
            let found = events.applied_objects().filter_map(async |pod| pod.ok());
            let new = found.filter(|pod| std::future::ready(!is_ready(pod)));
            new.for_each_concurrent(AT_ONCE, async |pod| {
                let name = pod.metadata.name.unwrap_or_default();
                let patch = Patch::Merge(json!({ "status": running() }));
                // What was deleted meanwhile needs no word; what else failed is told again with the next event.
                let reported = pods.patch_status(&name, &PatchParams::default(), &patch).await;
                if let Err(error) = reported {
                    eprintln!("stand-in of the kubelet: {name}: {error}");
                }
            })
            .await;
        });
        Self { _task: task }
    }
}

fn running() -> Value {
    let mut ready = objects::condition("Ready", "True", "", "", 1);
    if let Some(fields) = ready.as_object_mut() {
        fields.retain(|key, _| key != "observedGeneration");
    }
    json!({ "phase": "Running", "conditions": [ready] })
}

fn is_ready(pod: &DynamicObject) -> bool {
    condition(pod, "Ready").is_ok_and(|one| one["status"] == "True")
}

/// As the WorkloadDeployments that are measured: one small container, one after the other.
pub(crate) fn stateful_set(name: &str, replicas: i32) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "OrderedReady",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "registry.example.com/web:1" }] },
            },
        },
    })
}

/// How long a fresh process may take to list what is there.
pub(crate) const LISTED: Duration = Duration::from_secs(30);

/// Makes StatefulSets of one pod until there are so many, and waits until all run.
pub(crate) async fn many(environment: &Environment, made: usize, count: usize) -> Result<()> {
    environment.cell.apply(&objects::namespace(NAMESPACE)).await?;
    popcell_benches::for_each(made..count, async |number| {
        let set = stateful_set(&crate::many::name(number), 1);
        let set: DynamicObject = serde_json::from_value(set).context("failed to make a StatefulSet")?;
        let api = environment.cell.api(STATEFUL_SET, Some(NAMESPACE));
        let created = api.create(&kube::api::PostParams::default(), &set).await;
        created.map(|_| ()).context("failed to create a StatefulSet")
    })
    .await?;
    eventually("all pods are counted", PATIENCE, async || {
        let all = environment.cell.list(STATEFUL_SET, Some(NAMESPACE), "").await?;
        let ready = all.iter().filter(|one| at(one, "/status/readyReplicas") == 1).count();
        ensure!(ready == count, "{ready} of {count}");
        Ok(())
    })
    .await
}
