//! A cell whose claims are granted, with real watches on servers that give scripted answers.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body as Answered;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use popcell_api::kind::RESOURCE_CLAIM;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use popcell_core::limits::Limits;

use super::*;
use crate::apply::{Applier, Options};
use crate::cell::engage;
use crate::cell::testing::cell;
use crate::context::testing::Blind;
use crate::context::{Context, Rules};
use crate::planes::testing::CLUSTER;
use crate::planes::{CELL, Planes, Transport, of_source};
use crate::queue::Workers;
use crate::reconcile::Runner;
use crate::reconcilers::{EventRouter, QueuedReconciler, cell as reconcilers};

/// Long before the Instances are looked at again by themselves: they are old, and their tier is five minutes.
const SOON: Duration = Duration::from_secs(1);

/// Servers of a cell and its projects: what they list, and one line for each event of the watch on claims.
#[derive(Clone)]
struct Servers {
    lists: Arc<Mutex<BTreeMap<&'static str, Vec<Value>>>>,
    /// Version of the lists.
    version: Arc<Mutex<u32>>,
    /// How often claims were listed.
    listed: Arc<Mutex<usize>>,
    events: Arc<Mutex<Option<UnboundedReceiver<Value>>>>,
    writes: Arc<Mutex<Vec<String>>>,
    /// What was written, since the start.
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    fn of(lists: impl IntoIterator<Item = (&'static str, Vec<Value>)>) -> (Self, UnboundedSender<Value>) {
        let (sender, events) = unbounded();
        let servers = Self {
            lists: Arc::new(Mutex::new(lists.into_iter().collect())),
            version: Arc::new(Mutex::new(1)),
            listed: Arc::default(),
            events: Arc::new(Mutex::new(Some(events))),
            writes: Arc::default(),
            bodies: Arc::default(),
        };
        (servers, sender)
    }

    /// What was written since the last call.
    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Answered>, std::io::Error> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default().to_owned();
        let last = path.rsplit('/').next().unwrap_or_default();
        let body = request.into_body().collect_bytes().await.unwrap_or_default();
        if query.contains("watch=true") {
            let events = (last == RESOURCE_CLAIM.plural).then(|| self.events.lock().unwrap().take());
            let Some(events) = events.flatten() else {
                return std::future::pending().await;
            };
            let lines = events.map(|event| Ok::<_, std::io::Error>(format!("{event}\n")));
            return Ok(Response::new(Answered::from_stream(lines)));
        }
        let items = self.lists.lock().unwrap().get(last).cloned();
        let (code, body) = match items {
            Some(items) if method == http::Method::GET => {
                if last == RESOURCE_CLAIM.plural {
                    *self.listed.lock().unwrap() += 1;
                }
                let version = self.version.lock().unwrap().to_string();
                (
                    200,
                    json!({ "kind": "List", "metadata": { "resourceVersion": version }, "items": items }),
                )
            }
            _ if path == "/api/v1/namespaces/kube-system" => {
                (200, json!({ "metadata": { "name": "kube-system", "uid": "cell-uid" } }))
            }
            _ if method == http::Method::GET => absent(&path),
            _ => {
                self.writes.lock().unwrap().push(format!("{method} {path}"));
                let body = String::from_utf8_lossy(&body).into_owned();
                self.bodies.lock().unwrap().push(body);
                (200, json!({ "kind": "Status" }))
            }
        };
        let mut response = Response::new(Answered::from(body.to_string()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        Ok(response)
    }
}

impl Transport for Servers {
    fn client(&self, _: &Plane) -> Result<Client, popcell_client::ConnectError> {
        let servers = self.clone();
        let answer = move |request: Request<Body>| servers.clone().answer(request);
        Ok(Client::new(tower::service_fn(answer), "default"))
    }
}

/// One that waits for its claim, and has for years.
fn instance(name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "ns-1", "uid": name, "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2000-01-01T00:00:00Z" },
        "spec": { "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" } },
            "networkInterfaces": [{ "network": { "name": "default" } }],
            "controller": { "templateHash": "h", "schedulingGates": [{ "name": "Quota" }] } } })
}

fn claim(name: &str, version: u32, status: &str, reason: &str) -> Value {
    json!({ "apiVersion": RESOURCE_CLAIM.api_version(), "kind": "ResourceClaim",
        "metadata": { "name": format!("instance-{name}"), "namespace": "default", "uid": format!("c-{name}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2000-01-01T00:00:00Z",
            "labels": { "compute.datumapis.com/source-cluster": CLUSTER, "compute.datumapis.com/instance-namespace": "ns-1" },
            "annotations": { "compute.datumapis.com/source-uid": "cell-uid" } },
        "spec": { "consumerRef": { "kind": "Project", "name": "p" }, "requests": [
            { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
            { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
            { "resourceType": "compute.datumapis.com/memory", "amount": 2048 }] },
        "status": { "conditions": [{ "type": "Granted", "status": status, "reason": reason, "message": "" }] } })
}

/// A cell of these servers with its controllers at work, until the token is cancelled.
async fn at_work(servers: &Servers, stop: &CancellationToken) -> Arc<Context> {
    let mut cell = cell(None);
    cell.hub = false;
    let cell = Arc::new(cell);
    let workers = Workers { total: 2, share: 2 };
    let queued_reconcilers = reconcilers(&cell).into_iter();
    let queued_reconcilers = queued_reconcilers.map(|reconciler| QueuedReconciler::new(reconciler, workers));
    let event_router = Arc::new(EventRouter::new(queued_reconcilers.collect()));
    let watch_specs = Box::new(|plane: &Plane| match plane {
        Plane::Cell => Arc::from(CELL),
        Plane::Project(_) => Arc::from([of_source(RESOURCE_CLAIM, CLUSTER)]),
        Plane::Hub | Plane::Discovery => Arc::from([]),
    });
    let planes = Planes::new(
        Box::new(servers.clone()),
        watch_specs,
        Limits::DEFAULT,
        event_router.clone(),
    );
    let options = Options {
        dry_run: false,
        may_write: Arc::new(|| true),
        discovery: None,
        namespace: "compute-system".to_owned(),
    };
    let rules = Rules {
        project_grace: Duration::ZERO,
        cell_grace: Duration::ZERO,
        reclaim_orphans: false,
        hub_instances: 0,
        carries_data: false,
        object_bytes: 256 * 1024,
        data_bytes: 16 << 20,
    };
    let applier = Applier::new(planes.clone(), options, Arc::new(Blind));
    let context = Arc::new(Context::new(planes.clone(), applier, Arc::new(Blind), rules, None));
    event_router.listen(&context);
    planes.engage(&Plane::Cell, None).await.unwrap();
    let engaging = engage(cell, Arc::clone(&context));
    tokio::spawn(stop.clone().run_until_cancelled_owned(engaging));
    event_router.lead();
    for QueuedReconciler { reconciler, queue } in event_router.queued_reconcilers().iter().cloned() {
        let runner = Arc::new(Runner::new(reconciler, Arc::clone(&context)));
        tokio::spawn(runner.run(queue, stop.clone()));
    }
    context
}

#[tokio::test(start_paused = true)]
async fn a_grant_opens_the_gate_of_its_instance_by_the_watch_alone() {
    let waiting = |name| claim(name, 2, "False", "QuotaExceeded");
    let namespace = json!({ "metadata": { "name": "ns-1", "uid": "n", "resourceVersion": "1", "labels": {
        "meta.datumapis.com/upstream-cluster-name": "cluster-p", "meta.datumapis.com/upstream-namespace": "default" } } });
    let (servers, events) = Servers::of([
        ("namespaces", vec![namespace]),
        ("workloaddeployments", Vec::new()),
        ("instances", vec![instance("web-0"), instance("web-1")]),
        ("resourceclaims", vec![waiting("web-0"), waiting("web-1")]),
    ]);
    let stop = CancellationToken::new();
    let context = at_work(&servers, &stop).await;
    sleep(SOON).await;
    let reported = servers.writes();
    for name in ["web-0", "web-1"] {
        let status = format!("PATCH {DEPLOYMENTS}/ns-1/instances/{name}/status");
        assert!(
            reported.contains(&status),
            "{name} does not say that it waits: {reported:?}"
        );
    }
    assert!(context.planes.get(&project("p")).unwrap().is_known());

    let granted = claim("web-0", 3, "True", "QuotaAvailable");
    events
        .unbounded_send(json!({ "type": "MODIFIED", "object": granted }))
        .unwrap();
    let start = Instant::now();
    sleep(SOON).await;
    let written = servers.writes();
    let own = |line: &String| line.starts_with(&format!("PATCH {DEPLOYMENTS}/ns-1/instances/web-0"));
    let gate = format!("PATCH {DEPLOYMENTS}/ns-1/instances/web-0");
    assert!(written.contains(&gate), "{written:?} within {:?}", start.elapsed());
    assert!(written.iter().all(own), "{written:?}");
    stop.cancel();
}

/// A cell with `web-0`, made now, whose claim was refused, and a claim of the project that is of no Instance.
fn waiting() -> (Servers, UnboundedSender<Value>) {
    let namespace = json!({ "metadata": { "name": "ns-1", "uid": "n", "resourceVersion": "1", "labels": {
        "meta.datumapis.com/upstream-cluster-name": "cluster-p", "meta.datumapis.com/upstream-namespace": "default" } } });
    let mut young = instance("web-0");
    young["metadata"]["creationTimestamp"] = json!(k8s_openapi::jiff::Timestamp::now().to_string());
    Servers::of([
        ("namespaces", vec![namespace]),
        ("workloaddeployments", Vec::new()),
        ("instances", vec![young]),
        ("resourceclaims", vec![refused("web-0", 2), stranger(2)]),
    ])
}

fn refused(name: &str, version: u32) -> Value {
    claim(name, version, "False", "QuotaExceeded")
}

/// Its label says another namespace, which the cell does not have.
fn stranger(version: u32) -> Value {
    let mut stranger = refused("api-0", version);
    stranger["metadata"]["labels"]["compute.datumapis.com/instance-namespace"] = json!("ns-2");
    stranger["metadata"]["annotations"]["compute.datumapis.com/source-uid"] = json!("another");
    stranger
}

/// The same at work, once it has told that it waits: the claim is granted, and the watch, which is open, does not say so.
async fn granted_in_silence() -> (Servers, UnboundedSender<Value>, DropGuard) {
    let (servers, events) = waiting();
    let stop = CancellationToken::new();
    at_work(&servers, &stop).await;
    sleep(SOON).await;
    servers.writes();
    let granted = claim("web-0", 3, "True", "QuotaAvailable");
    let mut lists = servers.lists.lock().unwrap();
    lists.insert("resourceclaims", vec![granted, stranger(2)]);
    drop(lists);
    *servers.version.lock().unwrap() = 3;
    (servers, events, stop.drop_guard())
}

/// The gate is open, and nobody was told of trouble: a watch that restarts is none.
fn expect_opened(servers: &Servers) {
    let written = servers.writes();
    let gate = format!("PATCH {DEPLOYMENTS}/ns-1/instances/web-0");
    assert!(written.contains(&gate), "{written:?}");
    let bodies = servers.bodies.lock().unwrap();
    let troubled = bodies.iter().find(|body| body.contains("QuotaBackendUnavailable"));
    assert_eq!(troubled, None);
    assert!(bodies.iter().any(|body| body.contains("QuotaExceeded")), "{bodies:?}");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_the_watch_does_not_deliver_is_found() {
    let (servers, _events, _stop) = granted_in_silence().await;
    sleep(Duration::from_secs(8)).await;
    expect_opened(&servers);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_lost_among_other_events_is_found() {
    let (servers, events, _stop) = granted_in_silence().await;
    for version in 4..54 {
        let event = json!({ "type": "MODIFIED", "object": stranger(version) });
        // Nobody hears them once the watch restarts.
        let _ = events.unbounded_send(event);
        sleep(Duration::from_millis(500)).await;
    }
    expect_opened(&servers);
}

#[tokio::test(start_paused = true)]
async fn a_pending_claim_is_read_again_once_a_tier_while_its_watch_continues() {
    let (servers, _events) = waiting();
    let stop = CancellationToken::new();
    let context = at_work(&servers, &stop).await;
    sleep(SOON).await;
    let before = std::mem::take(&mut *servers.listed.lock().unwrap());
    assert_eq!(before, 1);
    sleep(Duration::from_secs(10)).await;
    let listed = *servers.listed.lock().unwrap();
    // The clock of the tiers is not the paused one: it stays in its first minute.
    assert!((5..=11).contains(&listed), "{listed} lists in ten tiers of a second");
    assert!(context.planes.get(&project("p")).unwrap().is_known());
    stop.cancel();
}
