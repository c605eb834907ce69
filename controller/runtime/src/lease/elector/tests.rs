use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::super::Loss;
use super::super::{POLL, RENEW, TERM};
use super::*;

/// How the server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    /// Answers this code.
    Refuses(u16),
    /// Takes requests and does nothing.
    Silent,
    /// Does what it is asked, and does not answer.
    Mute,
}

/// A server of exactly one Lease.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    lease: Option<Value>,
    version: u64,
    mood: Mood,
    writes: usize,
}

impl Server {
    /// With a Lease that nobody holds.
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            lease: Some(json!({ "metadata": { "name": "l", "namespace": "n", "resourceVersion": "0" } })),
            version: 0,
            mood: Mood::Well,
            writes: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn mood(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// Changes the Lease as somebody with kubectl does.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let mut lease = state.lease.clone().unwrap();
        change(&mut lease);
        state.store(lease);
    }

    fn holder(&self) -> String {
        let state = self.state();
        let holder = state.lease.as_ref().unwrap().pointer("/spec/holderIdentity");
        holder.and_then(Value::as_str).unwrap().to_owned()
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let method = request.method().clone();
                let body = request.into_body().collect_bytes().await.unwrap();
                let mood = server.state().mood;
                let (code, answer) = match mood {
                    Mood::Silent => std::future::pending().await,
                    Mood::Refuses(code) => (code, status(code)),
                    Mood::Well | Mood::Mute => server.state().serve(&method, &body),
                };
                if mood == Mood::Mute {
                    std::future::pending::<()>().await;
                }
                let body = Body::from(serde_json::to_vec(&answer).unwrap());
                Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn elector(&self, identity: &str) -> LeaderElector {
        let settings = LeaseSettings {
            namespace: "n".to_owned(),
            name: "l",
        };
        LeaderElector::timed(self.client(), &settings, identity.to_owned(), Clock::stopped())
    }

    fn start(&self, identity: &str) -> Replica {
        let (elector, stop) = (self.elector(identity), CancellationToken::new());
        Replica {
            permit: elector.permit(),
            releases: elector.releases(),
            running: tokio::spawn(elector.run(stop.clone())),
            stop,
        }
    }
}

impl State {
    fn store(&mut self, mut lease: Value) -> (u16, Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        (200, lease)
    }

    fn serve(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        if method == Method::GET {
            return self.lease.clone().map_or((404, status(404)), |lease| (200, lease));
        }
        self.writes += 1;
        let sent: Value = serde_json::from_slice(body).unwrap();
        match (method, &self.lease) {
            (&Method::POST, None) => self.store(sent),
            (&Method::POST, Some(_)) => (409, status(409)),
            (_, None) => (404, status(404)),
            (_, Some(now)) if now["metadata"]["resourceVersion"] == sent["metadata"]["resourceVersion"] => {
                self.store(sent)
            }
            (_, Some(_)) => (409, status(409)),
        }
    }
}

fn status(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Other" };
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "no" })
}

struct Replica {
    permit: Permit,
    releases: Releases,
    stop: CancellationToken,
    running: JoinHandle<Result<(), LeaseError>>,
}

impl Replica {
    /// Waits at most this long for the permission, and says how long it took.
    async fn leads_within(&self, limit: Duration) -> Duration {
        let start = Instant::now();
        let held = timeout(limit, self.permit.wait(&CancellationToken::new())).await;
        assert_eq!(held, Ok(true), "not within {limit:?}");
        start.elapsed()
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_renews_every_two_seconds() {
    let server = Server::new();
    let (first, second) = (server.start("a"), server.start("b"));
    sleep(SECOND).await;
    assert!(first.permit.holds() ^ second.permit.holds());
    let before = server.state().writes;
    for _ in 0..600 {
        sleep(SECOND / 10).await;
        assert!(first.permit.holds() ^ second.permit.holds());
    }
    let renewals = server.state().writes - before;
    assert!((29..=31).contains(&renewals), "{renewals}");
}

#[tokio::test(start_paused = true)]
async fn who_comes_after_a_lease_was_deleted_waits_as_long_as_its_holder_may_write() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    // Its renewals fail, and somebody deletes the Lease: the permission of the holder goes on.
    server.mood(Mood::Refuses(500));
    server.state().lease = None;
    sleep(SECOND).await;
    server.mood(Mood::Well);
    first.running.abort();
    let second = server.start("b");
    let took = second.leads_within(20 * SECOND).await;
    assert!(took >= DURATION && !first.permit.holds(), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_hands_over_at_once() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    let second = server.start("b");
    sleep(5 * SECOND).await;
    first.stop.cancel();
    assert_eq!(first.running.await.unwrap(), Ok(()));
    assert!(!first.permit.holds());
    assert_eq!(server.holder(), "");
    second.leads_within(POLL + SECOND / 10).await;
    // A third that stops without ever having led leaves the Lease alone.
    let third = server.start("c");
    sleep(5 * SECOND).await;
    third.stop.cancel();
    assert_eq!(third.running.await.unwrap(), Ok(()));
    assert_eq!(server.holder(), "b");
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_another_leads_within_20_s_and_not_before_the_permission_ended() {
    for phase in [0, 700, 1999] {
        let server = Server::new();
        let first = server.start("a");
        first.leads_within(SECOND).await;
        let second = server.start("b");
        sleep(7 * SECOND + Duration::from_millis(phase)).await;
        first.running.abort();
        let took = second.leads_within(20 * SECOND).await;
        assert!(took > TERM, "{took:?}");
        assert!(!first.permit.holds() && second.permit.holds());
    }
}

#[tokio::test(start_paused = true)]
async fn without_renewals_the_permission_ends_and_so_does_the_process() {
    for mood in [Mood::Silent, Mood::Mute, Mood::Refuses(500), Mood::Refuses(403)] {
        let server = Server::new();
        let first = server.start("a");
        first.leads_within(SECOND).await;
        // Just renewed: the last good sending is at most RENEW old.
        sleep(5 * SECOND).await;
        server.mood(mood);
        sleep(TERM.saturating_sub(RENEW + SECOND / 10)).await;
        assert!(first.permit.holds(), "{mood:?}");
        sleep(RENEW + SECOND / 5).await;
        assert!(!first.permit.holds(), "{mood:?}");
        let lost = timeout(SECOND, first.running).await.unwrap().unwrap().unwrap_err();
        assert_eq!(
            lost.to_string(),
            "failed to keep the Lease n/l: it was not renewed for 10 s: its server was unreachable, or this process \
             was held up"
        );
        assert!(!first.permit.wait(&CancellationToken::new()).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_unreachable_for_a_while_costs_nothing() {
    for mood in [Mood::Silent, Mood::Mute, Mood::Refuses(500), Mood::Refuses(409)] {
        let server = Server::new();
        let first = server.start("a");
        first.leads_within(SECOND).await;
        for _ in 0..5 {
            server.mood(mood);
            for _ in 0..50 {
                sleep(SECOND / 10).await;
                assert!(first.permit.holds(), "{mood:?}");
            }
            server.mood(Mood::Well);
            sleep(4 * SECOND).await;
        }
        assert!(!first.running.is_finished(), "{mood:?}");
        assert_eq!(server.holder(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_by_hand_stops_its_holder() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    server.edit(|lease| lease["spec"]["holderIdentity"] = json!("thief"));
    let lost = timeout(RENEW + SECOND, first.running)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert_eq!(lost.loss, Loss::Taken("thief".to_owned()));
    assert!(!first.permit.holds());
    assert_eq!(server.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_recreated_by_its_holder() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    let second = server.start("b");
    sleep(3 * SECOND).await;
    server.state().lease = None;
    for _ in 0..300 {
        sleep(SECOND / 10).await;
        assert!(first.permit.holds() && !second.permit.holds());
    }
    assert_eq!(server.holder(), "a");
}

#[tokio::test(start_paused = true)]
async fn the_deletion_guard_is_released_once_for_each_annotation() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    for value in ["allow", "project a", "allow"] {
        let untold = timeout(5 * SECOND, first.releases.next()).await;
        assert!(untold.is_err());
        server.edit(|lease| {
            lease["metadata"]["annotations"] = json!({ "compute.datumapis.com/mass-delete": value, "mine": "x" });
        });
        let reported = timeout(RENEW + SECOND, first.releases.next()).await;
        assert_eq!(reported.unwrap(), value);
        let left = server.state().lease.as_ref().unwrap()["metadata"]["annotations"].clone();
        assert_eq!(left, json!({ "mine": "x" }));
    }
    assert!(first.permit.holds());
}

#[tokio::test(start_paused = true)]
async fn a_stop_releases_what_was_edited_and_waits_for_no_silent_server() {
    let server = Server::new();
    let first = server.start("a");
    first.leads_within(SECOND).await;
    server.edit(|lease| lease["metadata"]["annotations"] = json!({ "mine": "x" }));
    first.stop.cancel();
    assert_eq!(first.running.await.unwrap(), Ok(()));
    assert_eq!(server.holder(), "");
    let second = server.start("b");
    second.leads_within(SECOND).await;
    server.mood(Mood::Silent);
    sleep(3 * SECOND).await;
    second.stop.cancel();
    let ended = timeout(2 * super::super::REQUEST, second.running).await;
    assert_eq!(ended.unwrap().unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_access_continues_trying() {
    let server = Server::new();
    server.mood(Mood::Refuses(403));
    let first = server.start("a");
    sleep(60 * SECOND).await;
    assert!(!first.permit.holds() && !first.running.is_finished());
    server.mood(Mood::Well);
    first.leads_within(2 * POLL).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_permission_can_be_stopped_and_a_sole_writer_has_it() {
    let server = Server::new();
    server.mood(Mood::Silent);
    let (first, stop) = (server.start("a"), CancellationToken::new());
    stop.cancel();
    assert!(!first.permit.wait(&stop).await);
    assert!(Permit::sole().holds() && Permit::sole().wait(&stop).await);
}

#[test]
fn no_two_processes_have_one_identity() {
    assert_ne!(identity(), identity());
    let (host, number) = identity()
        .rsplit_once('_')
        .map(|(a, b)| (a.to_owned(), b.len()))
        .unwrap();
    assert!(!host.is_empty() && number == 16);
}
