//! Objects of one namespace whose writes fail, beside those of another on the same plane.

use std::time::Duration;

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;

const MANY: usize = 50;
/// What a write may take that nothing holds up. Watches of this server bring nothing: each is restarted after a minute,
/// which takes up to two seconds. A circuit breaker takes fifteen.
const UNCHANGED: Duration = Duration::from_secs(3);

/// How the server fails for one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A webhook answers 500.
    Webhook,
    /// A webhook denies with the code and the wish of a server that is overloaded.
    Denial,
    /// etcd takes no object of that size.
    TooLarge,
    /// The API server takes no body of that size.
    Body,
    Quota,
    /// A webhook takes so long that the API server gives up.
    Slow,
}

impl Fault {
    fn answer(self) -> Option<(u16, Value)> {
        let failure = |code: u16, reason: &str, message: &str| {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                "message": message, "details": { "retryAfterSeconds": 60 } });
            Some((code, status))
        };
        match self {
            Self::None => None,
            Self::Webhook => failure(
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: an error on the server",
            ),
            Self::Denial => failure(
                503,
                "ServiceUnavailable",
                "admission webhook \"a.b.c\" denied the request: come back later",
            ),
            Self::TooLarge => failure(500, "", "etcdserver: request is too large"),
            Self::Body => failure(
                413,
                "RequestEntityTooLarge",
                "Request entity too large: limit is 3145728",
            ),
            Self::Quota => failure(
                403,
                "Forbidden",
                "x is forbidden: exceeded quota: q, requested: 1, used: 1, limited: 1",
            ),
            Self::Slow => failure(
                504,
                "Timeout",
                "Timeout: request did not complete within requested timeout",
            ),
        }
    }
}

fn workload(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "metadata": { "name": name,
        "namespace": namespace, "uid": format!("{namespace}-{name}"), "resourceVersion": "1", "generation": 1,
        "finalizers": [WORKLOAD_CONTROLLER] },
        "spec": { "template": { "spec": {} }, "placements": [{ "name": "us", "cityCodes": ["DFW"],
            "scaleSettings": { "minReplicas": 1 } }] } })
}

/// A project's server that fails for what is written in namespace `a`.
struct Failing {
    fault: Fault,
    /// What it was asked, and the name of what was sent.
    asked: Mutex<Vec<(Instant, String, String)>>,
    deployments: Mutex<Vec<Value>>,
}

impl Failing {
    fn answer(&self, mut asked: Asked) -> Option<(u16, Value)> {
        let name = asked
            .body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.asked
            .lock()
            .unwrap()
            .push((Instant::now(), asked.line.clone(), name.to_owned()));
        if asked.line.contains("watch=") {
            return None;
        }
        if asked.line.starts_with("GET") {
            return Some((200, self.list(&asked.line)));
        }
        if self.fault != Fault::None && asked.line.contains("/namespaces/a/") {
            return self.fault.answer();
        }
        if asked.line.starts_with("POST") {
            asked.body["metadata"]["uid"] = json!(name);
            asked.body["metadata"]["resourceVersion"] = json!("9");
            self.deployments.lock().unwrap().push(asked.body.clone());
        }
        Some((201, asked.body))
    }

    fn list(&self, line: &str) -> Value {
        let binding = json!({ "metadata": { "name": "b", "resourceVersion": "1" },
            "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } });
        let items = match line {
            line if line.contains("/workloads?") => {
                (0..MANY).map(|number| workload("a", &format!("a-{number}"))).collect()
            }
            line if line.contains("/locationbindings?") => vec![binding],
            line if line.contains("/workloaddeployments?") => self.deployments.lock().unwrap().clone(),
            _ => Vec::new(),
        };
        json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "7" }, "items": items })
    }

    /// Whether a WorkloadDeployment of this Workload in namespace `b` was sent.
    fn has_made(&self, workload: &str) -> bool {
        let start = format!("{workload}-");
        let asked = self.asked.lock().unwrap();
        let mut made = asked
            .iter()
            .filter(|(_, line, _)| line.starts_with("POST") && line.contains("/namespaces/b/"));
        made.any(|(_, _, name)| name.starts_with(&start))
    }

    /// Writes that failed.
    fn writes_since(&self, since: Instant) -> usize {
        let asked = self.asked.lock().unwrap();
        let failed = |line: &str| !line.starts_with("GET") && line.contains("/namespaces/a/");
        asked.iter().filter(|(at, line, _)| *at > since && failed(line)).count()
    }
}

/// How long it took until each Workload of namespace `b` was carried on, the slowest first; and how many writes there were
/// in the last minute.
async fn carried(fault: Fault) -> (Vec<Duration>, usize) {
    let server = Arc::new(Failing {
        fault,
        asked: Mutex::default(),
        deployments: Mutex::default(),
    });
    let answering = Arc::clone(&server);
    let fixture = Fixture::answering(
        management(false),
        &["p"],
        Arc::new(move |asked| answering.answer(asked)),
    )
    .await;
    fixture.event_router.lead();
    let stop = CancellationToken::new();
    let queue = fixture.queued("workload").queue.clone();
    let reconciles = tokio::spawn(fixture.runner("workload").run(queue, stop.clone()));
    let mut times = Vec::new();
    for number in 0..12 {
        sleep(Duration::from_secs(10)).await;
        let (name, since) = (format!("b-{number}"), Instant::now());
        fixture.put(&project("p"), WORKLOAD, workload("b", &name));
        let is_made = async {
            while !server.has_made(&name) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(5), is_made).await.unwrap();
        times.push(since.elapsed());
    }
    let writes = server.writes_since(Instant::now() - Duration::from_mins(1));
    stop.cancel();
    reconciles.await.unwrap();
    times.sort();
    times.reverse();
    (times, writes)
}

#[tokio::test(start_paused = true)]
async fn fifty_objects_that_fail_in_one_namespace_do_not_delay_another() {
    let (quiet, _) = carried(Fault::None).await;
    assert!(quiet[0] <= UNCHANGED, "{quiet:?}");
    for fault in [
        Fault::Webhook,
        Fault::Denial,
        Fault::TooLarge,
        Fault::Body,
        Fault::Quota,
        Fault::Slow,
    ] {
        let (times, writes) = carried(fault).await;
        assert!(times[0] <= UNCHANGED, "{fault:?}: {times:?}");
        // A minute later they cost the server little. All are enqueued once then, since the watch is restarted, and each
        // attempt is the object and its status.
        assert!(writes <= 3 * MANY, "{fault:?}: {writes} writes in the last minute");
    }
}
