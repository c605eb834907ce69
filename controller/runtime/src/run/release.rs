//! Releasing the deletion guard of a program without a Lease: there is no renewal that would find an annotation, so a
//! ConfigMap in the program's namespace is looked for while the guard holds anything.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use popcell_api::annotations::MASS_DELETE;
use popcell_api::names::DELETION_GUARD;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::apply::REQUEST_TIMEOUT;
use crate::error::chain;

/// How often it is looked for.
const AGAIN: Duration = Duration::from_secs(10);

/// Where a person says it.
pub(super) struct ByConfigMap {
    api: Api<ConfigMap>,
}

impl ByConfigMap {
    /// In the program's namespace, on the server that it runs on.
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
        }
    }

    /// Waits until a person releases what is held, and gives the value of the annotation. Sends no request while nothing
    /// is.
    pub(super) async fn next(&self, is_held: impl Fn() -> bool) -> String {
        let mut reported = None;
        loop {
            sleep(AGAIN).await;
            if !is_held() {
                continue;
            }
            match timeout(REQUEST_TIMEOUT, self.take()).await {
                Ok(Ok(Some(value))) => return value,
                Ok(Ok(None)) => reported = None,
                Ok(Err(error)) => record_event(&mut reported, chain(&error)),
                Err(_) => record_event(&mut reported, "no answer".to_owned()),
            }
        }
    }

    /// Takes the ConfigMap away, so that it releases once, and gives what it says; also where that names nothing that is
    /// held, so that it does not release what comes to be held later. One without the annotation is being made.
    async fn take(&self) -> kube::Result<Option<String>> {
        let Some(found) = self.api.get_opt(DELETION_GUARD).await? else {
            return Ok(None);
        };
        let mut annotations = found.metadata.annotations.unwrap_or_default();
        let Some(value) = annotations.remove(MASS_DELETE) else {
            return Ok(None);
        };
        let exactly = DeleteParams::default().preconditions(Preconditions {
            uid: found.metadata.uid,
            resource_version: found.metadata.resource_version,
        });
        self.api.delete(DELETION_GUARD, &exactly).await.map(|_| Some(value))
    }
}

/// Once for each reason.
fn record_event(reported: &mut Option<String>, error: String) {
    if reported.as_ref() != Some(&error) {
        warn!(
            error,
            "failed to read ConfigMap {DELETION_GUARD} in the program's namespace: the deletion guard cannot be released"
        );
        *reported = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    type Asked = Arc<Mutex<Vec<(String, Value)>>>;

    /// Answers every read with this.
    fn release(found: Option<Value>) -> (ByConfigMap, Asked) {
        let asked = Asked::default();
        let log = Arc::clone(&asked);
        let answer = move |request: Request<Body>| {
            let (log, found) = (Arc::clone(&log), found.clone());
            async move {
                let line = format!("{} {}", request.method(), request.uri().path());
                let body = request.into_body().collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                log.lock().unwrap().push((line, body));
                let code = if found.is_some() { 200 } else { 404 };
                let absent = json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound" });
                let body = Body::from(found.unwrap_or(absent).to_string().into_bytes());
                Ok::<_, std::io::Error>(Response::builder().status(code).body(body).unwrap())
            }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        (ByConfigMap::new(client, "compute-system"), asked)
    }

    fn config_map(value: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": DELETION_GUARD, "uid": "u",
            "resourceVersion": "7", "annotations": { MASS_DELETE: value } } })
    }

    const PATH: &str = "/api/v1/namespaces/compute-system/configmaps/popcell-deletion-guard";

    #[tokio::test(start_paused = true)]
    async fn a_config_map_says_once_what_is_released_and_is_asked_for_only_while_something_is_held() {
        let (release, asked) = release(Some(config_map("project a")));
        let held = AtomicBool::new(false);
        let waits = timeout(10 * AGAIN, release.next(|| held.load(Ordering::Relaxed)));
        assert!(waits.await.is_err() && asked.lock().unwrap().is_empty());
        held.store(true, Ordering::Relaxed);
        let value = timeout(2 * AGAIN, release.next(|| held.load(Ordering::Relaxed))).await;
        assert_eq!(value.unwrap(), "project a");
        let asked = asked.lock().unwrap();
        let lines: Vec<&str> = asked.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(lines, [format!("GET {PATH}"), format!("DELETE {PATH}")]);
        assert_eq!(
            asked[1].1["preconditions"],
            json!({ "uid": "u", "resourceVersion": "7" })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_config_map_that_says_nothing_releases_nothing() {
        let mut silent = config_map("");
        silent["metadata"]["annotations"] = json!({ "other": "x" });
        for found in [None, Some(silent)] {
            let (release, asked) = release(found);
            assert!(timeout(3 * AGAIN, release.next(|| true)).await.is_err());
            assert!(asked.lock().unwrap().iter().all(|(line, _)| line.starts_with("GET ")));
        }
    }
}
