//! What a server rejects is shown where it was asked for, tried again soon, and costs little.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use json_patch::Patch;
use popcell_api::finalizers::{FEDERATOR, WORKLOAD_CONTROLLER};
use popcell_api::kind::{LOCATION_BINDING, NETWORK};
use popcell_core::conditions;
use popcell_core::deployment::PROGRESS;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cell::testing::cell;
use crate::reconcilers::cell as of_cell;

pub(super) const WORDS: &str = "instances.compute.datumapis.com \"web-0\" is forbidden: ValidatingAdmissionPolicy 'none' with binding \
    'none' denied request: not here";

/// What is within an object that no policy denies.
const MENDED: &str = r#""mended":true"#;

/// Servers that keep what is written, but for what a policy denies.
#[derive(Default)]
pub(super) struct Servers {
    /// By plane and path.
    objects: Mutex<BTreeMap<String, Value>>,
    /// Starts of lines that are denied.
    denied: Mutex<Vec<String>>,
    /// How, where not by a policy: code, and words with NAME for the name of the object.
    words: Mutex<Option<(u16, &'static str)>>,
    asked: Mutex<Vec<String>>,
    events: Mutex<Vec<Value>>,
}

impl Servers {
    pub(super) fn deny(&self, lines: &[&str]) {
        *self.denied.lock().unwrap() = lines.iter().map(|line| (*line).to_owned()).collect();
    }

    /// Writes since the last call, but for Events.
    pub(super) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Reasons and notes of Events since the last call.
    pub(super) fn reported(&self) -> Vec<(String, String)> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        events
            .iter()
            .map(|event| (text(event, "reason"), text(event, "note")))
            .collect()
    }

    pub(super) fn answer(self: &Arc<Self>) -> Arc<Answer> {
        let servers = Arc::clone(self);
        let watches = |asked: &Asked| asked.line.contains("watch=") || asked.line.contains("limit=");
        Arc::new(move |asked| (!watches(&asked)).then(|| servers.take(asked)))
    }

    fn take(&self, asked: Asked) -> (u16, Value) {
        let line = format!("{} {}", asked.plane, asked.line);
        let line = line.split('?').next().unwrap().to_owned();
        if line.ends_with("/events") {
            self.events.lock().unwrap().push(asked.body);
            return (201, json!({}));
        }
        let (verb, path) = asked.line.split('?').next().unwrap().split_once(' ').unwrap();
        let mut objects = self.objects.lock().unwrap();
        let at = |path: &str| format!("{} {path}", asked.plane);
        if verb == "GET" {
            return match objects.get(&at(path)) {
                Some(found) => (200, found.clone()),
                None => absent(path),
            };
        }
        self.asked.lock().unwrap().push(line.clone());
        let denied = self.denied.lock().unwrap().iter().any(|start| line.starts_with(start));
        if denied && !asked.body.to_string().contains(MENDED) {
            let name = asked.body["metadata"]["name"].as_str().unwrap_or_default();
            let (code, words) = self.words.lock().unwrap().unwrap_or((422, WORDS));
            let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": "Invalid", "message": words.replace("NAME", name), "details": { "causes": [{ "message": "not here" }] } });
            return (code, body);
        }
        match verb {
            "POST" => {
                let mut made = asked.body;
                made["metadata"]["uid"] = json!(format!("uid-{}", objects.len()));
                made["metadata"]["resourceVersion"] = json!("100");
                made["metadata"]["generation"] = json!(1);
                let name = made["metadata"]["name"].as_str().unwrap().to_owned();
                objects.insert(at(&format!("{path}/{name}")), made.clone());
                (201, made)
            }
            "PATCH" => {
                let path = at(path.strip_suffix("/status").unwrap_or(path));
                let found = objects.get_mut(&path).unwrap();
                let change: Patch = serde_json::from_value(asked.body).unwrap();
                json_patch::patch(found, &change).unwrap();
                let version: u64 = found["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                found["metadata"]["resourceVersion"] = json!((version + 1).to_string());
                (200, found.clone())
            }
            _ => (200, json!({ "kind": "Status" })),
        }
    }

    /// All objects of a kind.
    pub(super) fn all(&self, plane: &Plane, plural: &str) -> Vec<Value> {
        let (start, part) = (plane.to_string(), format!("/{plural}/"));
        let objects = self.objects.lock().unwrap();
        let of_kind = objects
            .iter()
            .filter(|(path, _)| path.starts_with(&start) && path.contains(&part));
        of_kind.map(|(_, object)| object.clone()).collect()
    }

    /// An object that is there from the beginning.
    pub(super) fn keep(&self, plane: &Plane, path: &str, object: &Value) {
        self.objects
            .lock()
            .unwrap()
            .insert(format!("{plane} {path}"), object.clone());
    }

    /// Status, reason and message of a condition.
    pub(super) fn said(&self, plane: &Plane, path: &str, type_: &str) -> (String, String, String) {
        let objects = self.objects.lock().unwrap();
        let status = objects[&format!("{plane} {path}")]
            .get("status")
            .cloned()
            .unwrap_or_default();
        let condition = conditions::find(&status, type_).cloned().unwrap_or_default();
        let text = |field| conditions::text(&condition, field).to_owned();
        (text("status"), text("reason"), text("message"))
    }
}

pub(super) fn taken_in(name: &str, finalizer: &str) -> Value {
    let mut one = deployment("ns-1", name, &format!("uid-{name}"));
    one["metadata"]["finalizers"] = json!([finalizer]);
    one
}

pub(super) fn within(name: &str) -> String {
    format!("{DEPLOYMENTS}/ns-1/workloaddeployments/{name}")
}

const INSTANCES: &str = "cell POST /apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances";

#[tokio::test(start_paused = true)]
async fn a_cell_that_denies_instances_is_reported_in_the_status_once_and_its_end_is_seen() {
    let servers = Arc::<Servers>::default();
    servers.deny(&[INSTANCES]);
    let fixture = Fixture::in_cell(of_cell(&Arc::new(cell(None))), &[], servers.answer()).await;
    let one = taken_in("web", WORKLOAD_CONTROLLER);
    servers.keep(&Plane::Cell, &within("web"), &one);
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![one]);
    fixture.list(&Plane::Cell, INSTANCE, Vec::new());
    let (key, status) = (
        Key::new(&Plane::Cell, "ns-1", "web"),
        format!("cell PATCH {}/status", within("web")),
    );

    assert_eq!(
        fixture.reconcile("deployment", &key).await,
        Requeue::WithBackoff(Backoff::ADMISSION)
    );
    assert_eq!(servers.writes(), [INSTANCES.to_owned(), status.clone()]);
    let message = format!("The cell rejects the creation of Instance web-0: {WORDS}");
    let said = |type_| servers.said(&Plane::Cell, &within("web"), type_);
    let expected = ("False".to_owned(), "Rejected".to_owned(), message.clone());
    assert_eq!(said("Available"), expected);
    assert_eq!(said("ReplicasReady").1, "Rejected");
    assert_eq!(servers.reported(), [("Rejected".to_owned(), message)]);

    // The same request is retried; the same rejection is not reported again.
    assert_eq!(
        fixture.reconcile("deployment", &key).await,
        Requeue::WithBackoff(Backoff::ADMISSION)
    );
    assert_eq!(
        (servers.writes(), servers.reported()),
        (vec![INSTANCES.to_owned()], Vec::new())
    );
    assert!(
        Backoff::ADMISSION.cap <= Duration::from_secs(8),
        "users wait for its end"
    );

    // A process that has just started remembers nothing, and tells nothing twice.
    assert!(
        fixture
            .context
            .memory(&Plane::Cell)
            .unwrap()
            .rejections
            .clear("deployment", &key)
    );
    fixture.reconcile("deployment", &key).await;
    assert_eq!(
        (servers.writes(), servers.reported()),
        (vec![INSTANCES.to_owned()], Vec::new())
    );

    servers.deny(&[]);
    assert_eq!(
        fixture.reconcile("deployment", &key).await,
        Requeue::After(Duration::ZERO)
    );
    fixture.reconcile("deployment", &key).await;
    assert_eq!(servers.writes(), [INSTANCES.to_owned(), status]);
    assert_eq!(said("Available").1, "ProvisioningInstances");
}

#[tokio::test(start_paused = true)]
async fn what_hub_and_project_deny_is_reported_in_the_project() {
    let p = project("p");
    let hub = format!("hub POST {DEPLOYMENTS}/ns-n1/workloaddeployments");
    let servers = Arc::<Servers>::default();
    servers.deny(&[&hub]);
    let fixture = Fixture::answering(management(true), &["p"], servers.answer()).await;
    list_all(&fixture, &["p"]);
    let namespace = json!({ "metadata": { "name": "ns-1", "uid": "n1", "resourceVersion": "1" } });
    servers.keep(&p, "/api/v1/namespaces/ns-1", &namespace);
    let one = taken_in("web", FEDERATOR);
    servers.keep(&p, &within("web"), &one);
    fixture.put(&p, WORKLOAD_DEPLOYMENT, one);
    let workload = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "metadata": {
        "name": "site", "namespace": "ns-1", "uid": "site", "resourceVersion": "1", "generation": 1,
        "finalizers": [WORKLOAD_CONTROLLER] }, "spec": { "template": { "spec": {} }, "placements": [
        { "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }] } });
    let at = format!("{DEPLOYMENTS}/ns-1/workloads/site");
    servers.keep(&p, &at, &workload);
    fixture.put(&p, WORKLOAD, workload);
    fixture.list(&p, NETWORK, Vec::new());
    let dfw = json!({ "metadata": { "name": "dfw", "uid": "b", "resourceVersion": "1" },
        "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } });
    fixture.list(&p, LOCATION_BINDING, vec![dfw]);

    for _ in 0..3 {
        fixture.reconcile("federation", &Key::new(&p, "ns-1", "web")).await;
    }
    let (said, reason, message) = servers.said(&p, &within("web"), "Available");
    assert_eq!((said.as_str(), reason.as_str()), ("False", "Rejected"));
    assert_eq!(
        message,
        format!("The platform rejects the creation of WorkloadDeployment web: {WORDS}")
    );
    let statuses = |writes: &[String]| writes.iter().filter(|line| line.ends_with("/status")).count();
    assert_eq!((statuses(&servers.writes()), servers.reported().len()), (1, 1));
    servers.deny(&[]);
    for _ in 0..2 {
        fixture.reconcile("federation", &Key::new(&p, "ns-1", "web")).await;
    }
    let (_, reason, message) = servers.said(&p, &within("web"), "Available");
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("ProvisioningInstances", "Waiting for city DFW")
    );

    servers.writes();
    servers.deny(&[&format!("project p POST {DEPLOYMENTS}/ns-1/workloaddeployments")]);
    for _ in 0..3 {
        fixture.reconcile("workload", &Key::new(&p, "ns-1", "site")).await;
    }
    let (said, reason, message) = servers.said(&p, &at, "Available");
    assert_eq!((said.as_str(), reason.as_str()), ("False", "Rejected"));
    assert!(
        message.starts_with("City DFW: ") && message.ends_with(WORDS),
        "{message}"
    );
    assert_eq!((statuses(&servers.writes()), servers.reported().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_denied_alone_is_reported_once_by_an_event_with_the_words_of_the_server() {
    let servers = Arc::<Servers>::default();
    let fixture = Fixture::in_cell(of_cell(&Arc::new(cell(None))), &[], servers.answer()).await;
    let one = taken_in("web", WORKLOAD_CONTROLLER);
    servers.keep(&Plane::Cell, &within("web"), &one);
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![one]);
    fixture.list(&Plane::Cell, INSTANCE, Vec::new());
    let status = format!("cell PATCH {}/status", within("web"));
    servers.deny(&[&status]);
    let key = Key::new(&Plane::Cell, "ns-1", "web");
    let message = format!("The cell rejects the change of the status of WorkloadDeployment web: {WORDS}");
    // That it is on its way waits for more of it.
    fixture.reconcile("deployment", &key).await;
    tokio::time::sleep(PROGRESS).await;
    for reconcile in 0..20 {
        fixture.reconcile("deployment", &key).await;
        let expected = (reconcile == 0).then(|| ("StatusRejected".to_owned(), message.clone()));
        assert_eq!(servers.reported(), Vec::from_iter(expected), "reconcile {reconcile}");
    }
    let writes = servers.writes();
    let tried = writes.iter().filter(|line| **line == status).count();
    assert!(tried > 10, "it is tried again: {writes:?}");
    // Another cause is another Event.
    *servers.words.lock().unwrap() = Some((403, "workloaddeployments/status is forbidden: User \"x\" cannot patch"));
    for _ in 0..3 {
        fixture.reconcile("deployment", &key).await;
    }
    let events = servers.reported();
    assert!(
        matches!(&events[..], [(reason, note)] if reason == "StatusRejected" && note.ends_with("cannot patch")),
        "{events:?}"
    );
    servers.deny(&[]);
    fixture.reconcile("deployment", &key).await;
    assert_eq!(servers.reported(), []);
    assert_eq!(
        servers.said(&Plane::Cell, &within("web"), "Available").1,
        "ProvisioningInstances"
    );
}

/// A cell with so many WorkloadDeployments, each of which wants one Instance.
async fn cell_with(servers: &Arc<Servers>, many: usize) -> Fixture {
    let fixture = Fixture::in_cell(of_cell(&Arc::new(cell(None))), &[], servers.answer()).await;
    let all: Vec<Value> = (0..many)
        .map(|number| taken_in(&format!("web{number}"), WORKLOAD_CONTROLLER))
        .collect();
    for one in &all {
        let name = one["metadata"]["name"].as_str().unwrap();
        servers.keep(&Plane::Cell, &within(name), one);
    }
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, all);
    fixture.list(&Plane::Cell, INSTANCE, Vec::new());
    fixture
}

/// Reconciles them in the order of the queue while the script runs.
async fn in_turns(fixture: &Fixture, many: usize, reconciles: &Arc<AtomicUsize>, script: impl Future<Output = ()>) {
    let (queue, runner) = (&fixture.queued("deployment").queue, fixture.runner("deployment"));
    for number in 0..many {
        queue.add(Key::new(&Plane::Cell, "ns-1", &format!("web{number}")));
    }
    let (count, stop) = (Arc::clone(reconciles), CancellationToken::new());
    let run = queue.run(
        move |key: Arc<Key>| {
            let (runner, count) = (Arc::clone(&runner), Arc::clone(&count));
            async move {
                count.fetch_add(1, Ordering::Relaxed);
                runner.reconcile(&key).await
            }
        },
        stop.clone(),
    );
    let script = async {
        script.await;
        stop.cancel();
    };
    tokio::join!(run, script);
}

impl Servers {
    /// Instances that were tried since the last call, accepted or not.
    fn tried(&self) -> usize {
        self.writes().iter().filter(|line| *line == INSTANCES).count()
    }

    /// The watch brings what was written.
    fn bring(&self, fixture: &Fixture) {
        for (kind, plural) in [(WORKLOAD_DEPLOYMENT, "workloaddeployments"), (INSTANCE, "instances")] {
            for one in self.all(&Plane::Cell, plural) {
                fixture.put(&Plane::Cell, kind, one);
            }
        }
    }

    /// Waits until so many more were made.
    async fn come_back(&self, fixture: &Fixture, many: usize) {
        let (from, before) = (Instant::now(), self.all(&Plane::Cell, "instances").len());
        loop {
            sleep(Duration::from_millis(500)).await;
            self.bring(fixture);
            let made = self.all(&Plane::Cell, "instances").len() - before;
            if made >= many {
                return;
            }
            assert!(from.elapsed() < Duration::from_secs(10), "{made} of {many} came back");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_are_denied_cost_a_probe_in_a_while_and_come_back_together() {
    const MANY: usize = 1000;
    let servers = Arc::<Servers>::default();
    servers.deny(&[INSTANCES]);
    let fixture = cell_with(&servers, MANY).await;
    let reconciles = Arc::<AtomicUsize>::default();
    let script = async {
        sleep(Duration::from_secs(1)).await;
        servers.bring(&fixture);
        // Each WorkloadDeployment reports once. One whose request was not tried reports the answer that another one got.
        assert_eq!(servers.reported().len(), MANY);
        assert_eq!(servers.said(&Plane::Cell, &within("web999"), "Available").1, "Rejected");
        servers.tried();
        reconciles.store(0, Ordering::Relaxed);
        let minutes = 5;
        sleep(Duration::from_mins(minutes)).await;
        let (tried, looked) = (servers.tried(), reconciles.load(Ordering::Relaxed));
        assert!(
            (30..=60).contains(&tried),
            "{tried} attempts and {looked} reconciles in {minutes} min"
        );
        assert!(looked <= 6 * MANY, "{looked} reconciles in {minutes} min");
        assert_eq!(servers.reported(), []);

        servers.deny(&[]);
        servers.come_back(&fixture, MANY).await;
    };
    in_turns(&fixture, MANY, &reconciles, script).await;
}

/// A right, a schema and a namespace that are missing, as API servers tell it.
const REFUSALS: [(u16, &str); 3] = [
    (
        403,
        "instances.compute.datumapis.com is forbidden: User \"x\" cannot create resource",
    ),
    (
        422,
        "Instance.compute.datumapis.com \"NAME\" is invalid: spec.new: Required value",
    ),
    (404, "namespaces \"ns-1\" not found"),
];

#[tokio::test(start_paused = true)]
async fn the_end_of_any_refusal_is_seen_within_ten_seconds_and_its_time_costs_little() {
    for (code, words) in REFUSALS {
        for many in [1, 3, 200] {
            let servers = Arc::<Servers>::default();
            servers.deny(&[INSTANCES]);
            *servers.words.lock().unwrap() = Some((code, words));
            let fixture = cell_with(&servers, many).await;
            let script = async {
                sleep(Duration::from_secs(1)).await;
                servers.bring(&fixture);
                let expected = (many, "Rejected".to_owned());
                let said = servers.said(&Plane::Cell, &within("web0"), "Available").1;
                assert_eq!((servers.reported().len(), said), expected, "{code}");
                servers.writes();
                sleep(Duration::from_mins(2)).await;
                // No rejection is reported twice, whichever request got the answer.
                let writes = servers.writes();
                assert!(writes.iter().all(|line| *line == INSTANCES), "{code}");
                sleep(Duration::from_mins(2)).await;
                // At most one in 6 s for each, and for all of them where they are many.
                let tried = servers.tried();
                assert!(
                    (10..=20 * many.min(3)).contains(&tried),
                    "{code}: {tried} attempts of {many}"
                );
                servers.deny(&[]);
                servers.come_back(&fixture, many).await;
            };
            in_turns(&fixture, many, &Arc::default(), script).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_its_user_has_mended_is_accepted_at_once_among_many_that_stay_refused() {
    let webhook = (400, "admission webhook \"w.example.com\" denied the request: not here");
    for words in REFUSALS.into_iter().chain([(422, WORDS), webhook]) {
        let servers = Arc::<Servers>::default();
        servers.deny(&[INSTANCES]);
        *servers.words.lock().unwrap() = Some(words);
        let fixture = cell_with(&servers, 100).await;
        let reconciles = Arc::<AtomicUsize>::default();
        let script = async {
            sleep(Duration::from_secs(1)).await;
            servers.bring(&fixture);
            sleep(Duration::from_mins(2)).await;
            servers.tried();
            reconciles.store(0, Ordering::Relaxed);
            for (number, made) in [("7", 1), ("70", 2)] {
                let name = format!("web{number}");
                let mut mended = taken_in(&name, WORKLOAD_CONTROLLER);
                mended["metadata"]["resourceVersion"] = json!("200");
                mended["metadata"]["generation"] = json!(2);
                mended["spec"]["template"]["spec"] = json!({ "mended": true });
                servers.keep(&Plane::Cell, &within(&name), &mended);
                fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, mended);
                fixture
                    .queued("deployment")
                    .queue
                    .add(Key::new(&Plane::Cell, "ns-1", &name));
                let deadline = Instant::now() + Duration::from_millis(300);
                while servers.all(&Plane::Cell, "instances").len() < made {
                    assert!(Instant::now() < deadline, "{words:?}: it waits for others");
                    sleep(Duration::from_millis(10)).await;
                }
            }
            let (tried, looked) = (servers.tried(), reconciles.load(Ordering::Relaxed));
            assert!(tried <= 4, "{words:?}: {tried} attempts: it says nothing of others");
            assert!(looked <= 10, "{words:?}: {looked} reconciles");
            servers.deny(&[]);
            servers.come_back(&fixture, 98).await;
        };
        in_turns(&fixture, 100, &reconciles, script).await;
    }
}
