//! What is done around each request: counting, telling the application whom it serves, asking clients to leave.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use axum::http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::budget::{Budget, Charge, What};
use crate::connection::Protocol;
use crate::phase::Phase;
use crate::status::ListenerStatus;
use crate::tracked::{Part, Tracked};

/// An answer waits so long for memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection that a request came on; in the request's extensions.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The other end.
    pub address: SocketAddr,
    /// What was agreed with it.
    pub protocol: Protocol,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) tracked: Arc<Tracked>,
    /// What the request of this copy holds.
    held: Arc<Mutex<Option<Charge>>>,
}

impl Peer {
    pub(crate) fn new(
        address: SocketAddr,
        phase: watch::Receiver<Phase>,
        budget: Arc<Budget>,
        tracked: Arc<Tracked>,
    ) -> Self {
        Self {
            address,
            protocol: Protocol::Http1,
            phase,
            budget,
            tracked,
            held: Arc::default(),
        }
    }

    /// The same connection for another request.
    fn for_request(&self) -> Self {
        Self {
            held: Arc::default(),
            ..self.clone()
        }
    }

    /// Keeps what the request's body holds until its answer is made.
    pub(crate) fn keep(&self, charge: Charge) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
    }

    /// Gives back what the request's body held.
    fn release(&self) {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Counts one request for as long as it lives, also when its future is dropped with the connection.
struct Active {
    tracked: Arc<Tracked>,
    status: Arc<ListenerStatus>,
}

impl Active {
    fn enter(tracked: &Arc<Tracked>, status: &Arc<ListenerStatus>) -> Self {
        status.in_flight.fetch_add(1, Relaxed);
        tracked.asked();
        Self {
            tracked: Arc::clone(tracked),
            status: Arc::clone(status),
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.tracked.answered();
        self.status.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The application, as hyper calls it for one connection.
pub(crate) struct Application {
    pub(crate) router: Router,
    pub(crate) peer: Peer,
    pub(crate) status: Arc<ListenerStatus>,
}

impl hyper::service::Service<Request<Incoming>> for Application {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        use tower_service::Service;
        let active = Active::enter(&self.peer.tracked, &self.status);
        let peer = self.peer.for_request();
        let version = request.version();
        let part = match peer.protocol {
            Protocol::Http1 => Part::Answer,
            Protocol::Http2 => Part::Stream,
        };
        request.extensions_mut().insert(peer.clone());
        let mut router = self.router.clone();
        Box::pin(async move {
            let mut response = router.call(request).await?;
            // Now the body is gone, and an answer that waits for memory keeps none from other bodies.
            peer.release();
            let mut charge = Charge::none(&peer.budget, What::Answer);
            if !charge.resize(size(&response), PATIENCE).await {
                response = no_room();
            }
            // In HTTP/2 this header is forbidden; there the connection sends GOAWAY.
            if version <= Version::HTTP_11 && *peer.phase.borrow() >= Phase::Leaving {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let response = response.map(|body| Answer::new(body, charge, part, &peer.tracked));
            drop(active);
            Ok(response)
        })
    }
}

/// Answers are made whole, so that their size is known.
fn size(response: &Response<Body>) -> usize {
    let size = response.body().size_hint();
    usize::try_from(size.upper().unwrap_or(size.lower())).unwrap_or(usize::MAX)
}

/// Asks the client to come back.
fn no_room() -> Response<Body> {
    let mut response = Response::new(Body::from("too many large requests at once\n"));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
