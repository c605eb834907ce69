//! Plans carried out against a server that answers as a test sets it up.

mod deletion_guard;
mod failures;
mod permit;
mod servers;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use popcell_api::kind;
use popcell_core::edit::Edit;
use popcell_core::plan::{Action, DeletionGuard, Event, Plan, Proof};
use serde_json::{Value, json};

use popcell_core::limits::Limits;

use super::*;
use crate::planes::Transport;
use crate::planes::testing::Deaf;
use crate::queue::Requeue;

/// What the server was asked, and what it is to answer; beyond that it answers 500.
#[derive(Clone, Default)]
struct Server {
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
}

impl Server {
    fn answering(answers: &[(u16, Value)]) -> Self {
        let server = Self::default();
        server.answer(answers);
        server
    }

    fn answer(&self, answers: &[(u16, Value)]) {
        self.answers.lock().unwrap().extend(answers.iter().cloned());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn take(&self, method: &Method, path: &str) -> Response<Body> {
        self.asked.lock().unwrap().push(format!("{method} {path}"));
        let (code, body) = self.answers.lock().unwrap().pop_front().unwrap_or_default();
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = match body {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = status;
        response
    }
}

impl Transport for Server {
    fn client(&self, _: &Plane) -> Result<Client, popcell_client::ConnectError> {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let response = server.take(request.method(), request.uri().path());
            std::future::ready(Ok::<_, std::io::Error>(response))
        };
        Ok(Client::new(tower::service_fn(answer), "default"))
    }
}

#[derive(Default)]
struct Counted(Mutex<Vec<String>>);

impl Meter for Counted {
    fn wrote(&self, target: &Target, verb: &'static str, code: u16) {
        self.0
            .lock()
            .unwrap()
            .push(format!("{verb} {} {code}", target.kind.kind));
    }

    fn planned(&self, target: &Target, verb: &'static str) {
        let planned = format!("planned {verb} {}", target.kind.kind);
        self.0.lock().unwrap().push(planned);
    }

    fn withheld(&self, target: &Target, why: &'static str) {
        self.0.lock().unwrap().push(format!("{} {why}", target.kind.kind));
    }

    fn guard_changed(&self, plane: &Plane, kind: &'static str, change: GuardChange) {
        self.0.lock().unwrap().push(format!("{kind} in {plane}: {change:?}"));
    }

    fn unreleased(&self, value: &str, held: &str) {
        self.0.lock().unwrap().push(format!("{value} in hub: none of {held}"));
    }
}

struct Tried {
    applier: Applier,
    server: Server,
    permit: Arc<AtomicBool>,
    meter: Arc<Counted>,
}

impl Tried {
    /// Servers whose circuit is open.
    fn open_circuits(&self) -> usize {
        let engaged = self.applier.planes.engaged();
        let memories = engaged.iter().map(|plane| plane.memory());
        let all = memories.chain(self.applier.discovery.iter().map(|server| &server.memory));
        all.filter(|memory| lock(&memory.circuit).is_open()).count()
    }

    async fn new(answers: &[(u16, Value)]) -> Self {
        Self::with(answers, false).await
    }

    async fn with(answers: &[(u16, Value)], dry_run: bool) -> Self {
        Self::of(answers, |options| options.dry_run = dry_run).await
    }

    /// `set` is given what is otherwise: writing forever, in mode `single`.
    async fn of(answers: &[(u16, Value)], set: impl FnOnce(&mut Options)) -> Self {
        let server = Server::answering(answers);
        let watch_specs = Box::new(|_: &Plane| Arc::from([]));
        let planes = Planes::new(Box::new(server.clone()), watch_specs, Limits::DEFAULT, Arc::new(Deaf));
        planes.engage(&Plane::Hub, None).await.unwrap();
        let (permit, meter) = (Arc::new(AtomicBool::new(true)), Arc::<Counted>::default());
        let holds = Arc::clone(&permit);
        let mut options = Options {
            dry_run: false,
            may_write: Arc::new(move || holds.load(Ordering::Relaxed)),
            discovery: None,
            namespace: "compute-system".to_owned(),
        };
        set(&mut options);
        Self {
            applier: Applier::new(planes, options, meter.clone()),
            server,
            permit,
            meter,
        }
    }

    async fn execute(&self, plan: &Plan) -> Result<Done, ApplyError> {
        self.differing(plan, &|_, _| Difference::default()).await
    }

    /// Carries a plan out where deletes come to this difference.
    async fn differing(&self, plan: &Plan, difference: &Differ<'_>) -> Result<Done, ApplyError> {
        let mut responses = WriteResponses::default();
        self.applier.execute(plan, difference, false, &mut responses).await
    }

    /// Carries a plan out, and shows by it what was rejected: the reconcile shows it by a plan that it decides again.
    async fn carry_out_and_report(&self, plan: &Plan) -> Result<Done, ApplyError> {
        let (mut responses, difference) = (WriteResponses::default(), |_: &Plane, _| Difference::default());
        let done = self.applier.execute(plan, &difference, false, &mut responses).await;
        if !responses.rejections.is_empty() {
            self.applier.report(plan).await?;
        }
        done
    }
}

fn object(name: &str, uid: &str) -> Object {
    serde_json::from_value(stored(name, uid)).unwrap()
}

fn stored(name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": name, "namespace": "ns-1", "uid": uid, "resourceVersion": "7" }, "spec": { "a": 1 } })
}

fn create(name: &str) -> Action {
    let mut object = object(name, "");
    object.metadata.uid = None;
    object.metadata.resource_version = None;
    Action::create(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object)
}

fn delete(name: &str, proofs: Vec<Proof>, deletion_guard: DeletionGuard) -> Action {
    Action::delete(
        &Plane::Hub,
        kind::WORKLOAD_DEPLOYMENT,
        &object(name, "u"),
        proofs,
        deletion_guard,
    )
}

fn labelled() -> Action {
    let object = object("a", "u");
    let edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &object).label("k", "v");
    edit.action().unwrap()
}

fn plan(actions: Vec<Action>) -> Plan {
    Plan {
        actions,
        ..Plan::default()
    }
}

fn status(code: u16, message: &str) -> (u16, Value) {
    (
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message }),
    )
}

/// As an API server says that an object is not there.
fn absent(plural: &str, name: &str) -> (u16, Value) {
    let details = json!({ "name": name, "group": "compute.datumapis.com", "kind": plural });
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": format!("{plural} \"{name}\" not found"), "details": details });
    (404, body)
}

fn no_source() -> (u16, Value) {
    absent("workloaddeployments", "source")
}

const ALL: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/ns-1/workloaddeployments";

#[tokio::test]
async fn the_first_write_that_fails_ends_the_reconcile() {
    let tried = Tried::new(&[(201, stored("a", "u")), status(403, "no"), (201, stored("c", "u"))]).await;
    let failed = tried
        .execute(&plan(vec![create("a"), create("b"), create("c")]))
        .await
        .unwrap_err();
    assert_eq!(
        failed.to_string(),
        "failed to create WorkloadDeployment ns-1/b in hub: refused (403): no reason"
    );
    assert_eq!(tried.server.asked(), [format!("POST {ALL}"), format!("POST {ALL}")]);
    assert_eq!(
        *tried.meter.0.lock().unwrap(),
        ["create WorkloadDeployment 200", "create WorkloadDeployment 403"]
    );
}

#[tokio::test]
async fn each_answer_leads_to_its_verdict() {
    let failed = |code| status(code, "the server rejected our request due to an error in our request");
    let transient = Requeue::WithBackoff(crate::queue::Backoff::TRANSIENT);
    let refused = Requeue::WithBackoff(crate::queue::Backoff::ADMISSION);
    for (answer, requeue, stale) in [
        (status(409, "changed"), transient, true),
        (failed(422), transient, true),
        (status(404, "gone"), transient, true),
        (status(429, "slow down"), transient, false),
        (status(500, "oh"), transient, false),
        ((200, json!("<html>welcome</html>")), transient, false),
        ((503, json!("<html>sorry</html>")), transient, false),
        (status(401, "who?"), refused, false),
        (status(403, "no"), refused, false),
        (
            (
                422,
                json!({ "kind": "Status", "code": 422, "message": "invalid", "details": { "causes": [{ "reason": "x" }] } }),
            ),
            refused,
            false,
        ),
    ] {
        let tried = Tried::new(std::slice::from_ref(&answer)).await;
        let error = tried.execute(&plan(vec![labelled()])).await.unwrap_err();
        assert_eq!(
            (error.requeue(), error.stale().is_some()),
            (requeue, stale),
            "{answer:?}: {error}"
        );
    }
    // A create that finds no namespace or no kind: somebody must make it first.
    let tried = Tried::new(&[status(404, "namespaces ns-1 not found")]).await;
    let error = tried.execute(&plan(vec![create("a")])).await.unwrap_err();
    assert_eq!((error.requeue(), error.stale()), (refused, None));
    // What exists already is looked at.
    let tried = Tried::new(&[status(409, "already exists")]).await;
    assert!(
        tried
            .execute(&plan(vec![create("a")]))
            .await
            .unwrap_err()
            .stale()
            .is_some()
    );
}

#[tokio::test]
async fn deleting_what_is_already_gone_succeeds() {
    let tried = Tried::new(&[absent("workloaddeployments", "a"), (201, stored("b", "u"))]).await;
    let done = tried
        .execute(&plan(vec![delete("a", Vec::new(), DeletionGuard::Exempt), create("b")]))
        .await;
    assert_eq!(done, Ok(Done::Written));
    assert_eq!(tried.server.asked(), [format!("DELETE {ALL}/a"), format!("POST {ALL}")]);
}

#[tokio::test]
async fn nothing_is_deleted_without_proof() {
    let source = create("source").target().clone();
    let gone = |uid: Option<&str>| Proof::Gone {
        source: source.clone(),
        uid: uid.map(str::to_owned),
    };
    let lives = Proof::Lives {
        source: source.clone(),
        uid: "u".to_owned(),
    };
    let none_left = Proof::NoneLeft {
        plane: Plane::Hub,
        kind: kind::WORKLOAD_DEPLOYMENT,
        namespace: "ns-1".to_owned(),
        selector: String::new(),
    };
    let project_gone = Proof::ProjectGone {
        project: "p".to_owned(),
        uid: "u".to_owned(),
    };
    let mut going = stored("source", "u");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let list = |items: Value| (200, json!({ "items": items }));
    for (proof, answer, proven) in [
        (gone(Some("u")), no_source(), true),
        (gone(Some("u")), (200, stored("source", "other")), true),
        (gone(Some("u")), (200, going.clone()), true),
        (gone(Some("u")), (200, stored("source", "u")), false),
        (gone(None), no_source(), true),
        (gone(None), status(404, ""), false),
        (gone(None), (404, json!("<html>not here</html>")), false),
        (gone(None), (404, json!("404 page not found")), false),
        (gone(None), absent("namespaces", "ns-1"), false),
        (gone(None), absent("workloaddeployments", "another"), false),
        (gone(None), (200, stored("source", "other")), false),
        (gone(None), status(403, ""), false),
        (gone(None), status(500, ""), false),
        (lives.clone(), (200, stored("source", "u")), true),
        (lives.clone(), (200, stored("source", "other")), false),
        (lives.clone(), (200, going.clone()), false),
        (lives, no_source(), false),
        (none_left.clone(), list(json!([])), true),
        (
            none_left.clone(),
            list(json!([{ "metadata": { "labels": "none" } }])),
            false,
        ),
        (none_left, list(json!([stored("left", "u")])), false),
        (project_gone, no_source(), false),
    ] {
        let tried = Tried::new(&[answer.clone(), (200, json!({ "kind": "Status" }))]).await;
        let done = tried
            .execute(&plan(vec![delete("a", vec![proof.clone()], DeletionGuard::Exempt)]))
            .await;
        let sent = tried.server.asked().iter().any(|request| request.starts_with("DELETE"));
        assert_eq!(
            (done.is_ok(), sent),
            (proven, proven),
            "{proof:?} with {answer:?}: {done:?}"
        );
        let suppressed = tried
            .meter
            .0
            .lock()
            .unwrap()
            .contains(&"WorkloadDeployment unproven".to_owned());
        assert_eq!(suppressed, !proven);
    }
}

#[tokio::test]
async fn an_event_that_is_not_taken_ends_nothing() {
    let tried = Tried::new(&[(200, stored("a", "u")), status(403, "no events here")]).await;
    let about = object("a", "u");
    let events = vec![Event::warning(
        &Plane::Hub,
        kind::WORKLOAD_DEPLOYMENT,
        &about,
        "Reason",
        "note",
    )];
    let plan = Plan {
        actions: vec![labelled()],
        events,
        ..Plan::default()
    };
    assert_eq!(tried.execute(&plan).await, Ok(Done::Written));
    assert_eq!(
        tried.server.asked(),
        [
            format!("PATCH {ALL}/a"),
            "POST /apis/events.k8s.io/v1/namespaces/ns-1/events".to_owned()
        ]
    );
}

#[tokio::test]
async fn the_answer_to_one_object_is_read_to_the_size_of_one_and_a_list_further() {
    let mut large = stored("a", "u");
    large["spec"]["more"] = json!("x".repeat(5 << 20));
    let tried = Tried::new(&[(200, large.clone()), (200, json!({ "items": [large] }))]).await;
    let unread = tried.applier.read(create("a").target()).await.unwrap_err();
    assert!(
        unread
            .to_string()
            .ends_with("the answer cannot be read: it has more than 4194304 bytes"),
        "{unread}"
    );
    let probes = tried.server.asked();
    // The probe after it has taken the second answer.
    tried.server.answer(&[(
        200,
        json!({ "items": [{ "metadata": { "name": "a" }, "spec": "x".repeat(5 << 20) }] }),
    )]);
    let listed = tried
        .applier
        .list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, None, "")
        .await;
    assert_eq!(listed.map(|all| all.count()), Ok(1), "{probes:?}");
}

#[tokio::test]
async fn a_spec_that_is_stored_otherwise_is_remembered() {
    let mut pruned = stored("a", "u");
    pruned["spec"] = json!({});
    let tried = Tried::new(&[(201, pruned)]).await;
    let create = create("a");
    tried.execute(&plan(vec![create.clone()])).await.unwrap();
    let spec_echoes = tried.applier.spec_echoes();
    assert!(spec_echoes.explains(create.target(), &json!({ "a": 1 }), Some(&json!({}))));
}

#[tokio::test]
async fn a_projection_is_remembered_while_its_kind_is_watched() {
    let tried = Tried::new(&[]).await;
    let plane = Plane::Project("p".to_owned());
    tried.applier.planes.engage(&plane, None).await.unwrap();
    let target = Target::namespaced(&plane, kind::INSTANCE, "ns-1", "a");
    let is_remembered = || tried.applier.remembered(&target, "7").is_some();
    for (gone, remembered) in [
        ((&plane, kind::INSTANCE), false),
        ((&plane, kind::WORKLOAD_DEPLOYMENT), true),
        ((&Plane::Hub, kind::INSTANCE), true),
    ] {
        tried.server.answers.lock().unwrap().push_back((201, stored("a", "u")));
        let create = Action::create(&plane, kind::INSTANCE, object("a", ""));
        tried.execute(&plan(vec![create])).await.unwrap();
        assert!(is_remembered());
        let memory = tried.applier.planes.memory(gone.0).unwrap();
        memory.forget_kind(gone.1);
        assert_eq!(is_remembered(), remembered, "{gone:?}");
    }
    tried.applier.planes.memory(&plane).unwrap().forget(&target);
    assert!(!is_remembered());
}
