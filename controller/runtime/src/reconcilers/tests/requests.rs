//! What a cell asks of servers, and how often it reconciles, for one WorkloadDeployment from its creation to Ready.
//!
//! Servers keep what they are sent and bring it back by their watches; quota system, networks and provider are played. The
//! bounds here are upper bounds: a change that needs more must say why. With `--nocapture` each request and each reconcile is
//! printed in its order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use popcell_api::kind::{
    INSTANCE, Kind, LOCATION, NETWORK_BINDING, NETWORK_CONTEXT, RESOURCE_CLAIM, SUBNET, SUBNET_CLAIM,
};
use popcell_core::plan::CONFIG_MAP;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cell::testing::cell;
use crate::planes::testing::CLUSTER;
use crate::reconcile::Runner;
use crate::reconcilers::{QueuedReconciler, cell as reconcilers};

/// From a write to its event.
const WATCH: Duration = Duration::from_millis(2);
/// Long enough that all that follows is done.
const SETTLED: Duration = Duration::from_secs(20);
const KINDS: [Kind; 10] = [
    WORKLOAD_DEPLOYMENT,
    INSTANCE,
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    SUBNET_CLAIM,
    SUBNET,
    RESOURCE_CLAIM,
    LOCATION,
    NAMESPACE,
    CONFIG_MAP,
];

/// Plane, plural, namespace, name.
type Address = (Plane, String, String, String);

/// An object that came, changed or went.
struct Event {
    plane: Plane,
    kind: Kind,
    object: Value,
    gone: bool,
}

/// Servers that keep objects, and count who asks for what.
struct Servers {
    objects: Mutex<BTreeMap<Address, Value>>,
    version: AtomicU64,
    began: Instant,
    asked: Mutex<Vec<String>>,
    events: UnboundedSender<Event>,
}

impl Servers {
    fn answer(self: &Arc<Self>) -> Arc<Answer> {
        let servers = Arc::clone(self);
        Arc::new(move |asked| servers.take(&asked))
    }

    fn take(&self, asked: &Asked) -> Option<(u16, Value)> {
        let (method, url) = asked.line.split_once(' ').unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        if query.contains("watch=") || query.contains("limit=") {
            return None;
        }
        let status = path.ends_with("/status");
        let (mut address, kind) = address(&asked.plane, path.trim_end_matches("/status"), method == "POST");
        let suffix = if status { "/status" } else { "" };
        let line = format!("{} {method} {}{suffix}", asked.plane, address.1);
        println!(
            "{:>6} ms  {line} {}",
            self.began.elapsed().as_millis(),
            shown(&asked.body)
        );
        self.asked.lock().unwrap().push(line);
        if method == "POST" {
            address.3 = asked.body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        }
        Some(self.serve(method, &address, kind, status, &asked.body, path))
    }

    fn serve(
        &self,
        method: &str,
        at: &Address,
        kind: Option<Kind>,
        status: bool,
        body: &Value,
        path: &str,
    ) -> (u16, Value) {
        let found = self.objects.lock().unwrap().get(at).cloned();
        match (method, found) {
            ("GET", Some(found)) => (200, found),
            ("POST", None) => (201, self.create(at, kind, body.clone())),
            ("POST", Some(_)) => (409, refusal(409)),
            ("PATCH", Some(old)) => {
                let edit: json_patch::Patch = serde_json::from_value(body.clone()).unwrap();
                let mut new = old.clone();
                if json_patch::patch(&mut new, &edit).is_err() {
                    return (409, refusal(409));
                }
                (200, self.store(at, kind, &old, new, status))
            }
            ("DELETE", Some(old)) => {
                let going = self.delete(at, kind, old);
                (
                    200,
                    going.unwrap_or_else(|| json!({ "kind": "Status", "status": "Success" })),
                )
            }
            _ => absent(path),
        }
    }

    fn create(&self, at: &Address, kind: Option<Kind>, mut object: Value) -> Value {
        let number = self.version.load(Ordering::Relaxed) + 1;
        let now = k8s_openapi::jiff::Timestamp::now().to_string();
        object["metadata"]["uid"] = json!(format!("uid-{}-{number}", at.3));
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!(now);
        if at.1 == INSTANCE.plural {
            object["status"] = json!({ "conditions": [
                born("Programmed", "Pending", "Waiting for controller"),
                born("Available", "Pending", "Waiting for controller"),
                born("Ready", "Pending", "Waiting for controller"),
                born("QuotaGranted", "PendingEvaluation", "Waiting for quota evaluation"),
            ] });
        }
        self.put(at, kind, object)
    }

    /// As a server takes a change: of the status only or of all else.
    fn store(&self, at: &Address, kind: Option<Kind>, old: &Value, mut new: Value, status: bool) -> Value {
        if status {
            let said = new["status"].take();
            new = old.clone();
            new["status"] = said;
        } else if let Some(said) = old.get("status") {
            new["status"] = said.clone();
        }
        if new["spec"] != old["spec"] {
            new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
        }
        let held = new["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if !new["metadata"]["deletionTimestamp"].is_null() && !held {
            self.remove(at, kind, new.clone());
            return new;
        }
        self.put(at, kind, new)
    }

    /// The object, where a finalizer holds it.
    fn delete(&self, at: &Address, kind: Option<Kind>, old: Value) -> Option<Value> {
        let held = old["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if !held {
            self.remove(at, kind, old);
            return None;
        }
        let mut going = old;
        going["metadata"]["deletionTimestamp"] = json!(k8s_openapi::jiff::Timestamp::now().to_string());
        Some(self.put(at, kind, going))
    }

    fn put(&self, at: &Address, kind: Option<Kind>, mut object: Value) -> Value {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        self.objects.lock().unwrap().insert(at.clone(), object.clone());
        self.send(at, kind, object.clone(), false);
        object
    }

    fn remove(&self, at: &Address, kind: Option<Kind>, mut object: Value) {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        self.objects.lock().unwrap().remove(at);
        self.send(at, kind, object, true);
    }

    fn send(&self, at: &Address, kind: Option<Kind>, object: Value, gone: bool) {
        if let Some(kind) = kind {
            let plane = at.0.clone();
            // Nobody hears it once the test has ended.
            let _ = self.events.send(Event {
                plane,
                kind,
                object,
                gone,
            });
        }
    }

    /// Somebody else changes an object, or makes it.
    fn change(&self, plane: &Plane, kind: Kind, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let at = (
            plane.clone(),
            kind.plural.to_owned(),
            namespace.to_owned(),
            name.to_owned(),
        );
        let old = self.objects.lock().unwrap().get(&at).cloned();
        let Some(old) = old else {
            let mut new = json!({ "apiVersion": kind.api_version(), "kind": kind.kind,
                "metadata": { "namespace": namespace, "name": name } });
            change(&mut new);
            self.create(&at, Some(kind), new);
            return;
        };
        let mut new = old.clone();
        change(&mut new);
        let status = new["status"] != old["status"];
        self.store(&at, Some(kind), &old, new, status);
    }

    fn at(&self, plane: &Plane, kind: Kind, name: &str) -> Value {
        let at = (
            plane.clone(),
            kind.plural.to_owned(),
            "ns-1".to_owned(),
            name.to_owned(),
        );
        self.objects.lock().unwrap().get(&at).cloned().unwrap_or_default()
    }

    /// How often what was asked for, by plane.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in std::mem::take(&mut *self.asked.lock().unwrap()) {
            *counts.entry(line).or_default() += 1;
        }
        counts
    }
}

fn born(type_: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": "Unknown", "reason": reason, "message": message,
        "lastTransitionTime": "1970-01-01T00:00:00Z" })
}

fn says(type_: &str, reason: &str, generation: &Value) -> Value {
    json!({ "type": type_, "status": "True", "reason": reason, "message": "", "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

/// The paths that a body changes; nothing of one that makes an object.
fn shown(body: &Value) -> String {
    let all = body.as_array().into_iter().flatten().filter(|one| one["op"] != "test");
    let paths: Vec<&str> = all.filter_map(|one| one["path"].as_str()).collect();
    paths.join(" ")
}

fn address(plane: &Plane, path: &str, is_post: bool) -> (Address, Option<Kind>) {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.drain(..if parts.first() == Some(&"apis") { 3 } else { 2 });
    let namespace = match parts.as_slice() {
        ["namespaces", namespace, _, ..] => (*namespace).to_owned(),
        _ => String::new(),
    };
    let rest = if namespace.is_empty() { &parts[..] } else { &parts[2..] };
    let plural = rest.first().copied().unwrap_or_default();
    let name = rest.get(1).copied().filter(|_| !is_post).unwrap_or_default();
    let kind = KINDS
        .into_iter()
        .find(|kind| kind.plural == plural && *kind != CONFIG_MAP);
    ((plane.clone(), plural.to_owned(), namespace, name.to_owned()), kind)
}

/// Quota system, networks and provider, each of which waits so long before a step.
async fn stand_in(servers: &Servers, event: &Event, delay: Duration) {
    let text = |pointer: &str| {
        event
            .object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let (cell, generation) = (&Plane::Cell, event.object["metadata"]["generation"].clone());
    if event.gone || event.object["metadata"]["deletionTimestamp"].is_string() {
        if !event.gone && event.kind == INSTANCE && event.plane == Plane::Cell {
            sleep(delay).await;
            servers.change(cell, INSTANCE, &namespace, &name, |one| {
                one["metadata"]["finalizers"] = json!([]);
            });
        }
        return;
    }
    match event.kind {
        NETWORK_BINDING if event.object["status"].is_null() => {
            sleep(delay).await;
            servers.change(cell, NETWORK_CONTEXT, &namespace, "net", |one| {
                one["spec"] = json!({ "location": { "name": "dfw" } });
                one["status"] = json!({ "conditions": [says("Ready", "Ready", &json!(1))] });
            });
            servers.change(cell, NETWORK_BINDING, &namespace, &name, |one| {
                one["status"] = json!({ "networkContextRef": { "namespace": namespace, "name": "net" },
                    "conditions": [says("Ready", "Ready", &json!(1))] });
            });
        }
        SUBNET_CLAIM if event.object["status"].is_null() => {
            sleep(delay).await;
            servers.change(cell, SUBNET, &namespace, "subnet", |one| {
                one["status"] = json!({ "conditions": [says("Ready", "Ready", &json!(1))] });
            });
            servers.change(cell, SUBNET_CLAIM, &namespace, &name, |one| {
                one["status"] = json!({ "subnetRef": { "name": "subnet" },
                    "conditions": [says("Ready", "Ready", &json!(1))] });
            });
        }
        RESOURCE_CLAIM if event.object["status"].is_null() => {
            sleep(delay).await;
            servers.change(&event.plane, RESOURCE_CLAIM, &namespace, &name, |one| {
                one["status"] = json!({ "conditions": [says("Granted", "QuotaAvailable", &json!(1))] });
            });
        }
        INSTANCE if event.plane == Plane::Cell => {
            let gates = event.object.pointer("/spec/controller/schedulingGates");
            if gates.and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
                return;
            }
            let taken = event.object["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            let version = || servers.at(cell, INSTANCE, &name)["metadata"]["resourceVersion"].clone();
            if !taken {
                sleep(delay).await;
                // Written with optimistic locking: a later event has another go.
                if version() != event.object["metadata"]["resourceVersion"] {
                    return;
                }
                servers.change(cell, INSTANCE, &namespace, &name, |one| {
                    one["metadata"]["finalizers"] = json!(["unikraft.datumapis.com/finalizer"]);
                });
            } else if event.object["status"]["controller"].is_null() {
                sleep(delay).await;
                if version() != event.object["metadata"]["resourceVersion"] {
                    return;
                }
                servers.change(cell, INSTANCE, &namespace, &name, |one| {
                    let all = one["status"]["conditions"].as_array_mut().unwrap();
                    all[0] = says("Programmed", "Programmed", &generation);
                    all[1] = says("Available", "Available", &generation);
                    let hash = one["spec"]["controller"]["templateHash"].clone();
                    one["status"]["controller"] = json!({ "observedTemplateHash": hash });
                });
            }
        }
        _ => {}
    }
}

/// A cell at work.
pub(super) struct AtWork {
    servers: Arc<Servers>,
    reconciles: Arc<Mutex<BTreeMap<String, usize>>>,
    stop: CancellationToken,
}

impl AtWork {
    /// Others take so long for each of their steps.
    pub(super) async fn begin(takes: Duration) -> Self {
        let (events, mut brought) = unbounded_channel();
        let servers = Arc::new(Servers {
            objects: Mutex::default(),
            version: AtomicU64::new(100),
            began: Instant::now(),
            asked: Mutex::default(),
            events,
        });
        let namespace = hub_namespace("ns-1", "p");
        let cluster = json!({ "metadata": { "name": CLUSTER, "uid": "c" }, "spec": { "id": "cell-uid" } });
        for (plural, name, object) in [("namespaces", "ns-1", &namespace), ("clusters", CLUSTER, &cluster)] {
            let at = (Plane::Hub, plural.to_owned(), String::new(), name.to_owned());
            servers.objects.lock().unwrap().insert(at, object.clone());
        }
        let mut cell = cell(None);
        cell.networking = true;
        let cell = Arc::new(cell);
        let fixture = Arc::new(Fixture::in_networked_cell(reconcilers(&cell), &["p"], servers.answer()).await);
        let location = json!({ "metadata": { "name": "dfw", "uid": "l", "resourceVersion": "1" },
            "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } });
        for kind in [
            WORKLOAD_DEPLOYMENT,
            INSTANCE,
            NETWORK_BINDING,
            NETWORK_CONTEXT,
            SUBNET_CLAIM,
            SUBNET,
        ] {
            fixture.list(&Plane::Cell, kind, Vec::new());
        }
        fixture.list(&Plane::Cell, LOCATION, vec![location]);
        fixture.list(&Plane::Cell, NAMESPACE, vec![namespace]);
        fixture.list(&Plane::Hub, INSTANCE, Vec::new());
        fixture.list(&project("p"), RESOURCE_CLAIM, Vec::new());

        let (reconciles, stop) = (
            Arc::<Mutex<BTreeMap<String, usize>>>::default(),
            CancellationToken::new(),
        );
        fixture.event_router.lead();
        for QueuedReconciler { reconciler, queue } in fixture.event_router.queued_reconcilers().iter().cloned() {
            let runner = Arc::new(Runner::new(reconciler, Arc::clone(&fixture.context)));
            let (reconciles, stop, began) = (Arc::clone(&reconciles), stop.clone(), servers.began);
            let reconcile = move |key: Arc<Key>| {
                let runner = Arc::clone(&runner);
                println!(
                    "{:>6} ms  reconcile {} {key}",
                    began.elapsed().as_millis(),
                    runner.name()
                );
                *reconciles
                    .lock()
                    .unwrap()
                    .entry(format!("{} {}", runner.name(), key.plane))
                    .or_default() += 1;
                async move { runner.reconcile(&key).await }
            };
            tokio::spawn(async move { queue.run(reconcile, stop).await });
        }
        let (others, began) = (Arc::clone(&servers), servers.began);
        tokio::spawn(async move {
            while let Some(event) = brought.recv().await {
                let (fixture, others) = (Arc::clone(&fixture), Arc::clone(&others));
                tokio::spawn(async move {
                    sleep(WATCH).await;
                    let (kind, object) = (event.kind, event.object.clone());
                    println!(
                        "{:>6} ms  event {} {}",
                        began.elapsed().as_millis(),
                        event.plane,
                        kind.kind
                    );
                    if event.gone {
                        fixture.remove(&event.plane, kind, object);
                    } else if kind != NAMESPACE
                        && kind != CONFIG_MAP
                        && (event.plane == Plane::Cell || is_watched(&event))
                    {
                        fixture.put(&event.plane, kind, object);
                    }
                    stand_in(&others, &event, takes).await;
                });
            }
        });
        sleep(SETTLED).await;
        let at_work = Self {
            servers,
            reconciles,
            stop,
        };
        at_work.take();
        at_work
    }

    /// Karmada brings a WorkloadDeployment of the hub.
    pub(super) async fn bring(&self, name: &str, replicas: u32) {
        let mut above = deployment("ns-1", name, &format!("hub-{name}"));
        above["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
        above["spec"]["template"]["spec"] = json!({ "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" } },
            "networkInterfaces": [{ "network": { "name": "default" } }] });
        let at = (
            Plane::Hub,
            WORKLOAD_DEPLOYMENT.plural.to_owned(),
            "ns-1".to_owned(),
            name.to_owned(),
        );
        self.servers.objects.lock().unwrap().insert(at, above.clone());
        self.servers
            .change(&Plane::Cell, WORKLOAD_DEPLOYMENT, "ns-1", name, |one| {
                one["spec"] = above["spec"].clone();
                one["metadata"]["annotations"] = json!({ "resourcetemplate.karmada.io/uid": format!("hub-{name}") });
            });
        sleep(SETTLED).await;
    }

    /// Somebody else changes an object, and all that follows is done.
    pub(super) async fn change(&self, plane: &Plane, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        self.servers.change(plane, kind, "ns-1", name, change);
        sleep(SETTLED).await;
    }

    /// All Instances of a WorkloadDeployment are Ready, and their copies say so.
    fn expect_ready(&self, name: &str, replicas: usize) {
        let ready = self
            .at(&Plane::Cell, WORKLOAD_DEPLOYMENT, name)
            .pointer("/status/readyReplicas")
            .cloned();
        assert_eq!(ready, Some(json!(replicas)));
        let granted = self.at(&Plane::Cell, WORKLOAD_DEPLOYMENT, name);
        let granted = granted["metadata"]["annotations"]["compute.datumapis.com/granted-slots"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(granted.split(',').count(), replicas, "{granted}");
        for slot in 0..replicas {
            assert!(
                is_ready(&self.at(&Plane::Hub, INSTANCE, &format!("{name}-{slot}"))),
                "{slot}"
            );
        }
    }

    /// Requests and reconciles since the last call.
    pub(super) fn take(&self) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
        (
            self.servers.counts(),
            std::mem::take(&mut *self.reconciles.lock().unwrap()),
        )
    }

    pub(super) fn at(&self, plane: &Plane, kind: Kind, name: &str) -> Value {
        self.servers.at(plane, kind, name)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn is_watched(event: &Event) -> bool {
    [INSTANCE, RESOURCE_CLAIM].contains(&event.kind)
}

fn to(counts: &BTreeMap<String, usize>, plane: &str) -> usize {
    counts
        .iter()
        .filter(|(line, _)| line.starts_with(plane))
        .map(|(_, count)| count)
        .sum()
}

pub(super) fn is_ready(instance: &Value) -> bool {
    let conditions = instance.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

/// What was asked for since the last call is within these bounds.
fn expect_at_most(cell: &AtWork, bounds: [(&str, usize); 4]) {
    let (requests, reconciles) = cell.take();
    println!("{requests:#?} {reconciles:#?}");
    for (what, most) in bounds {
        let counted = if what == "reconciles" {
            reconciles.values().sum()
        } else {
            to(&requests, what)
        };
        assert!(counted <= most, "{what}: {counted}, {requests:#?} {reconciles:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_deployment_to_ready_takes_few_requests_and_reconciles() {
    for takes in [10, 300] {
        let cell = AtWork::begin(Duration::from_millis(takes)).await;
        // What a namespace costs once.
        cell.bring("warm", 1).await;
        cell.take();
        cell.bring("web", 1).await;
        expect_at_most(&cell, [("cell", 10), ("hub", 3), ("project", 1), ("reconciles", 10)]);
        cell.expect_ready("web", 1);
    }
}

#[tokio::test(start_paused = true)]
async fn ordered_instances_take_few_requests_and_reconciles_each() {
    let cell = AtWork::begin(Duration::from_millis(10)).await;
    cell.bring("web", 1).await;
    cell.take();
    cell.change(&Plane::Cell, WORKLOAD_DEPLOYMENT, "web", |one| {
        one["spec"]["scaleSettings"]["minReplicas"] = json!(21);
    })
    .await;
    // For each: its creation, its quota, its gate and Ready; its claim; its copy, and what that says. Once for all: what the
    // WorkloadDeployment remembers and counts, as often as it is reconciled, the record of projects, and whether the hub's
    // exists.
    let (each, once) = (20, 4);
    expect_at_most(
        &cell,
        [
            ("cell", 4 * each + once),
            ("hub", 2 * each + 1),
            ("project", each),
            ("reconciles", 6 * each + once),
        ],
    );
    cell.expect_ready("web", 21);

    cell.change(&Plane::Cell, WORKLOAD_DEPLOYMENT, "web", |one| {
        one["spec"]["template"]["metadata"] = json!({ "annotations": { "restarted": "now" } });
    })
    .await;
    // One goes and one comes, and both are counted. The change itself has each copy and claim looked at once.
    let each = 21;
    expect_at_most(
        &cell,
        [
            ("cell", 7 * each + once),
            ("hub", 3 * each + 1),
            ("project", 0),
            ("reconciles", 14 * each + once),
        ],
    );
    cell.expect_ready("web", 21);
}

#[tokio::test(start_paused = true)]
async fn one_change_of_an_instance_is_written_once_everywhere() {
    let cell = AtWork::begin(Duration::from_millis(10)).await;
    cell.bring("web", 1).await;
    cell.take();
    cell.change(&Plane::Cell, INSTANCE, "web-0", |one| {
        let all = one["status"]["conditions"].as_array_mut().unwrap();
        let available = all.iter_mut().find(|one| one["type"] == "Available").unwrap();
        (available["status"], available["reason"]) = (json!("False"), json!("Failed"));
    })
    .await;
    expect_at_most(&cell, [("cell", 2), ("hub", 1), ("project", 0), ("reconciles", 4)]);
    assert!(!is_ready(&cell.at(&Plane::Hub, INSTANCE, "web-0")));
}
