//! Ordered Instances in a cell whose watches bring nothing any more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_core::observed::Observed;
use tokio::task::yield_now;
use tokio::time::{advance, sleep, timeout};

use super::*;
use crate::reconcilers::deployment::Deployment;

/// Longer than any watch is late, and shorter than the time after which it is restarted.
const LONG: Duration = Duration::from_secs(50);

const INSTANCES: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances";

/// The API server of a cell that answers lists and writes, and never a watch.
#[derive(Default)]
struct Stalled {
    version: AtomicU64,
    objects: Mutex<BTreeMap<String, Value>>,
    writes: Mutex<Vec<String>>,
}

impl Stalled {
    fn answer(self: &Arc<Self>) -> Arc<Answer> {
        let server = Arc::clone(self);
        Arc::new(move |asked| server.take(&asked))
    }

    fn take(&self, asked: &Asked) -> Option<(u16, Value)> {
        let (verb, url) = asked.line.split_once(' ').unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        if query.contains("watch=") {
            return None;
        }
        if query.contains("limit=") {
            return Some((200, self.list(path.rsplit('/').next().unwrap())));
        }
        let mut path = path.trim_end_matches("/status").to_owned();
        if verb == "POST" {
            path = format!("{path}/{}", asked.body["metadata"]["name"].as_str().unwrap());
        }
        if path.starts_with(INSTANCES) && verb != "PATCH" {
            let name = path.rsplit('/').next().unwrap();
            self.writes.lock().unwrap().push(format!("{verb} {name}"));
        }
        let mut objects = self.objects.lock().unwrap();
        match (verb, objects.get_mut(&path)) {
            ("POST", None) => {
                let mut made = asked.body.clone();
                made["metadata"]["uid"] = json!(format!("u{}", self.version.load(Ordering::Relaxed)));
                self.stamp(&mut made);
                objects.insert(path, made.clone());
                Some((201, made))
            }
            ("POST", Some(_)) => Some((409, refusal(409))),
            ("PATCH", Some(stored)) => {
                let mut patched = stored.clone();
                let edit: json_patch::Patch = serde_json::from_value(asked.body.clone()).unwrap();
                if json_patch::patch(&mut patched, &edit).is_err() {
                    return Some((409, refusal(409)));
                }
                self.stamp(&mut patched);
                *stored = patched.clone();
                Some((200, patched))
            }
            ("DELETE", Some(_)) => {
                objects.remove(&path);
                Some((200, json!({ "kind": "Status", "status": "Success" })))
            }
            ("GET", Some(stored)) => Some((200, stored.clone())),
            _ => Some(absent(&path)),
        }
    }

    fn list(&self, plural: &str) -> Value {
        let objects = self.objects.lock().unwrap();
        let of = |path: &&String| path.split('/').rev().nth(1) == Some(plural);
        let items: Vec<&Value> = objects.keys().filter(of).map(|path| &objects[path]).collect();
        let version = self.version.load(Ordering::Relaxed).to_string();
        json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": version }, "items": items })
    }

    fn stamp(&self, object: &mut Value) {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }

    /// Somebody else writes.
    fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut objects = self.objects.lock().unwrap();
        let object = objects.get_mut(path).unwrap();
        change(object);
        self.stamp(object);
    }

    /// Creates and deletes of Instances since the last call.
    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }
}

struct Bench {
    server: Arc<Stalled>,
    fixture: Fixture,
}

impl Bench {
    /// A cell with a WorkloadDeployment of so many replicas.
    async fn new(replicas: u32) -> Self {
        let server = Arc::<Stalled>::default();
        let mut one = deployment("ns-1", "web", "wd");
        one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
        one["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
        server.stamp(&mut one);
        let path = format!("{DEPLOYMENTS}/ns-1/workloaddeployments/web");
        server.objects.lock().unwrap().insert(path, one);
        let reconciler = Arc::new(Deployment::new(false, false));
        let fixture = Fixture::in_cell(vec![reconciler], &[], server.answer()).await;
        let bench = Self { server, fixture };
        bench.listed().await;
        bench
    }

    fn stored(&self) -> Observed<usize> {
        let cell = self.fixture.context.planes.get(&Plane::Cell).unwrap();
        cell.store(INSTANCE).unwrap().all().map(|all| all.len())
    }

    /// Whether both stores are known.
    fn is_listed(&self) -> bool {
        let cell = self.fixture.context.planes.get(&Plane::Cell).unwrap();
        [INSTANCE, WORKLOAD_DEPLOYMENT]
            .iter()
            .all(|kind| cell.store(*kind).unwrap().is_known())
    }

    async fn listed(&self) {
        while !self.is_listed() {
            yield_now().await;
        }
    }

    /// Reconciles often enough to settle. Returns what they did to Instances.
    async fn reconciles(&self) -> Vec<String> {
        let key = Key::new(&Plane::Cell, "ns-1", "web");
        for _ in 0..5 {
            self.fixture.reconcile("deployment", &key).await;
        }
        self.server.writes()
    }

    /// The provider's status comes by the same watch, so only a list brings it.
    async fn report(&self, name: &str) {
        self.server.change(&format!("{INSTANCES}/{name}"), |one| {
            one["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        });
        self.restart_watches().await;
    }

    /// Watches break, and are restarted with a list.
    async fn restart_watches(&self) {
        self.fixture.context.planes.disengage(&Plane::Cell).await;
        self.fixture.context.planes.engage(&Plane::Cell, None).await.unwrap();
        self.listed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stalls_makes_no_second_create_and_no_second_replacement() {
    let bench = Bench::new(2).await;
    assert_eq!(bench.reconciles().await, ["POST web-0"]);
    advance(LONG).await;
    assert_eq!(bench.reconciles().await, [""; 0]);
    bench.report("web-0").await;
    assert_eq!(bench.reconciles().await, ["POST web-1"]);
    bench.report("web-1").await;
    assert_eq!(bench.reconciles().await, [""; 0]);

    let path = format!("{DEPLOYMENTS}/ns-1/workloaddeployments/web");
    bench.server.change(&path, |one| {
        one["spec"]["template"]["spec"] = json!({ "volumes": [{ "name": "v" }] });
    });
    bench.restart_watches().await;
    // The watch still shows the old web-1, Ready.
    assert_eq!(bench.reconciles().await, ["DELETE web-1", "POST web-1"]);
    advance(LONG).await;
    assert_eq!(bench.reconciles().await, [""; 0], "web-0 waits for the new one");
    bench.report("web-1").await;
    assert_eq!(bench.reconciles().await, ["DELETE web-0", "POST web-0"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_while_its_watch_stalls_is_missed_when_the_watch_restarts() {
    let bench = Bench::new(1).await;
    assert_eq!(bench.reconciles().await, ["POST web-0"]);
    bench
        .server
        .objects
        .lock()
        .unwrap()
        .remove(&format!("{INSTANCES}/web-0"));
    advance(LONG).await;
    assert_eq!(bench.reconciles().await, [""; 0]);
    // No watch event reports the deletion; the stalled watch is restarted, and its relist shows it.
    let missed = async {
        while bench.stored() != Observed::Known(0) || !bench.is_listed() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(2 * LONG, missed).await.unwrap();
    assert_eq!(bench.reconciles().await, ["POST web-0"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_a_cell_decides_on_the_state_after_it() {
    let bench = Bench::new(1).await;
    assert_eq!(bench.reconciles().await, ["POST web-0"]);
    // Somebody asks for none, and the watch does not say so.
    let path = format!("{DEPLOYMENTS}/ns-1/workloaddeployments/web");
    bench.server.change(&path, |one| {
        one["spec"]["scaleSettings"]["minReplicas"] = json!(0);
        one["status"] = json!({});
    });
    bench.server.change(&format!("{INSTANCES}/web-0"), |one| {
        one["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    });
    bench.fixture.put(
        &Plane::Cell,
        INSTANCE,
        bench.server.objects.lock().unwrap()[&format!("{INSTANCES}/web-0")].clone(),
    );
    assert_eq!(bench.reconciles().await, ["DELETE web-0"]);
    let status = bench.server.objects.lock().unwrap()[&path]["status"].clone();
    assert_eq!(
        (&status["desiredReplicas"], &status["replicas"]),
        (&json!(0), &json!(0)),
        "{status}"
    );
}
