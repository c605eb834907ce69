//! What a review asks a project's API server, and the clients for it.
//!
//! Invariant: every question ends by the review's deadline, and whatever comes back instead of an answer becomes one
//! short text for the user. Addresses and causes go to the log only, and bodies nowhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use popcell_api::kind::{LOCATION_BINDING, WORKLOAD};
use popcell_client::{ConnectError, Transport};
use popcell_core::admission::{self, ObjectUse};
use popcell_core::object::{List, Object};
use popcell_core::plan::Plane;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::error::chain;
use crate::sync::lock;

/// Where reviews of access are sent.
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// Questions of one review that are under way at once: over HTTP/1.1 each has a connection of its own.
const AT_ONCE: usize = 16;
/// The largest list of LocationBindings in bytes.
const LIST: usize = 16 * 1024 * 1024;
/// The largest Workload in bytes: more than a store takes.
const OBJECT: usize = 4 * 1024 * 1024;
/// The largest review of access in bytes.
const REVIEW: usize = 64 * 1024;

/// Clients of projects that are kept.
pub(super) const MOST: usize = 256;
/// One that has not been used for so long is dropped; a server closes an idle connection sooner.
pub(super) const IDLE: Duration = Duration::from_mins(5);

/// A SubjectAccessReview, as far as it is looked at.
#[derive(Deserialize)]
struct Review {
    status: Access,
}

#[derive(Deserialize)]
struct Access {
    allowed: bool,
}

/// Why a question has no answer. Its text is for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AskError {
    /// Credentials, most often.
    #[error("no client can be made for the project's API server")]
    NoClient,
    /// Nothing takes the request.
    #[error("the project's API server cannot be reached")]
    Unreachable,
    /// The review's time is up.
    #[error("the project's API server did not answer in time")]
    Late,
    /// It answers with an error.
    #[error("the project's API server answered {0}")]
    Refused(StatusCode),
    /// It answers with success and something else than was asked for, or breaks off.
    #[error("the project's API server gave an answer that cannot be read")]
    Unreadable,
}

/// Asks one project.
pub(super) struct Asker<'a> {
    plane: &'a Plane,
    client: Result<Client, AskError>,
    by: Instant,
    room: Semaphore,
}

impl<'a> Asker<'a> {
    /// Every question ends at `by`. Without a client every question has that error.
    pub(super) fn new(plane: &'a Plane, client: Result<Client, ConnectError>, by: Instant) -> Self {
        let client = client.map_err(|error| {
            warn!(%plane, error = chain(&error), "no client for a review");
            AskError::NoClient
        });
        Self {
            plane,
            client,
            by,
            room: Semaphore::new(AT_ONCE),
        }
    }

    /// The LocationBindings that there are now, of all namespaces: the same request on servers that have them in the
    /// cluster. One that cannot be read is skipped.
    pub(super) async fn bindings(&self) -> Result<Vec<Object>, AskError> {
        let kind = LOCATION_BINDING;
        let path = format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural);
        let list: List = self.ask(Request::get(path), Vec::new(), LIST).await?;
        let read = list.items.into_iter().flatten().filter_map(|raw| match raw.object {
            Ok(object) => Some(*object),
            Err(error) => {
                warn!(plane = %self.plane, error, "a LocationBinding cannot be read");
                None
            }
        });
        Ok(read.collect())
    }

    /// The Workload of that name as it lives now; `None` where there is none.
    pub(super) async fn workload(&self, namespace: &str, name: &str) -> Result<Option<Object>, AskError> {
        let kind = WORKLOAD;
        let path = format!(
            "/apis/{}/{}/namespaces/{namespace}/{}/{name}",
            kind.group, kind.version, kind.plural
        );
        match self.ask(Request::get(path), Vec::new(), OBJECT).await {
            Ok(workload) => Ok(Some(workload)),
            Err(AskError::Refused(StatusCode::NOT_FOUND)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the user may use each of these objects, in their order.
    pub(super) async fn accesses(&self, user: &Value, objects: &[ObjectUse]) -> Vec<Result<bool, AskError>> {
        join_all(objects.iter().map(|object| self.access(user, object))).await
    }

    async fn access(&self, user: &Value, object: &ObjectUse) -> Result<bool, AskError> {
        let body = admission::access_review(user, object).to_string().into_bytes();
        let request = Request::post(ACCESS_REVIEWS).header("content-type", "application/json");
        let review: Review = self.ask(request, body, REVIEW).await?;
        Ok(review.status.allowed)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
        most: usize,
    ) -> Result<T, AskError> {
        let client = self.client.as_ref().map_err(|error| *error)?;
        let asking = async {
            // Never closed: it waits or has room.
            let _room = self.room.acquire().await;
            if Instant::now() >= self.by {
                return Err(AskError::Late);
            }
            self.answer(client, request, body, most).await
        };
        let answer = timeout_at(self.by, asking).await.unwrap_or(Err(AskError::Late));
        if let Err(AskError::Late) = answer {
            warn!(plane = %self.plane, "no answer in time for a review");
        }
        answer
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        client: &Client,
        request: http::request::Builder,
        body: Vec<u8>,
        most: usize,
    ) -> Result<T, AskError> {
        let unreachable = |error: &(dyn std::error::Error + 'static)| {
            warn!(plane = %self.plane, error = chain(error), "no answer for a review");
            AskError::Unreachable
        };
        let request = request.body(body.into()).map_err(|error| unreachable(&error))?;
        let response = client.send(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if !status.is_success() {
            warn!(plane = %self.plane, %status, "the project's API server rejected a request of a review");
            return Err(AskError::Refused(status));
        }
        let body = Limited::new(response.into_body(), most).collect().await;
        let body = body
            .map_err(|_| self.unreadable("it breaks off, or is too large"))?
            .to_bytes();
        serde_json::from_slice(&body).map_err(|_| self.unreadable("no JSON of the form that was asked for"))
    }

    /// What was sent is not logged: it may be a secret.
    fn unreadable(&self, error: &str) -> AskError {
        warn!(plane = %self.plane, error, "an answer for a review cannot be read");
        AskError::Unreadable
    }
}

/// Clients of projects, made on demand: at most [`MOST`] are kept, and none that was unused for [`IDLE`] when another
/// is asked for. One that is dropped here lives on in the reviews that use it.
pub(super) struct Clients {
    transport: Arc<dyn Transport>,
    held: Mutex<BTreeMap<Plane, CachedClient>>,
}

struct CachedClient {
    client: Client,
    used: Instant,
}

impl Clients {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            held: Mutex::default(),
        }
    }

    /// The client of a plane; a new one where none is held. One that cannot be made is tried again at the next review.
    pub(super) fn get(&self, plane: &Plane) -> Result<Client, ConnectError> {
        let now = Instant::now();
        // Held while a client is made, so that two reviews of one project share it. Each access is one step of a map.
        let mut held = lock(&self.held);
        held.retain(|_, one| now.duration_since(one.used) < IDLE);
        if let Some(one) = held.get_mut(plane) {
            one.used = now;
            return Ok(one.client.clone());
        }
        let client = self.transport.client(plane)?;
        if held.len() >= MOST
            && let Some(oldest) = held.iter().min_by_key(|(_, one)| one.used)
        {
            let oldest = oldest.0.clone();
            held.remove(&oldest);
        }
        let one = CachedClient {
            client: client.clone(),
            used: now,
        };
        held.insert(plane.clone(), one);
        Ok(client)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.held).len()
    }
}
