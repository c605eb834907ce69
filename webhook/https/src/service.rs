//! What is done around each request: counting, telling the application whom it serves, asking clients to leave.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, Response, Version};
use hyper::body::Incoming;
use tokio::sync::{Notify, watch};

use crate::body::Uploads;
use crate::connection::Protocol;
use crate::phase::Phase;
use crate::status::ListenerStatus;

/// The connection that a request came on; in the request's extensions.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The other end.
    pub address: SocketAddr,
    /// What was agreed with it.
    pub protocol: Protocol,
    pub(crate) phase: watch::Receiver<Phase>,
    /// Room for larger bodies, shared by all connections of the listener.
    pub(crate) uploads: Arc<Uploads>,
}

/// How far the requests of one connection are.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Requests whose head has arrived and whose answer is not made yet.
    active: AtomicUsize,
    served: AtomicUsize,
    /// Told once, at the first request.
    pub(crate) first: Notify,
}

impl Progress {
    pub(crate) fn idle(&self) -> bool {
        self.active.load(Acquire) == 0
    }
}

/// Counts one request for as long as it lives, also when its future is dropped with the connection.
struct Active {
    progress: Arc<Progress>,
    status: Arc<ListenerStatus>,
}

impl Active {
    fn enter(progress: &Arc<Progress>, status: &Arc<ListenerStatus>) -> Self {
        progress.active.fetch_add(1, AcqRel);
        status.in_flight.fetch_add(1, Relaxed);
        if progress.served.fetch_add(1, AcqRel) == 0 {
            progress.first.notify_one();
        }
        Self {
            progress: Arc::clone(progress),
            status: Arc::clone(status),
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.progress.active.fetch_sub(1, AcqRel);
        self.status.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The application, as hyper calls it for one connection.
pub(crate) struct Application {
    pub(crate) router: Router,
    pub(crate) peer: Peer,
    pub(crate) progress: Arc<Progress>,
    pub(crate) status: Arc<ListenerStatus>,
}

impl hyper::service::Service<Request<Incoming>> for Application {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        use tower_service::Service;
        let active = Active::enter(&self.progress, &self.status);
        let phase = self.peer.phase.clone();
        let version = request.version();
        request.extensions_mut().insert(self.peer.clone());
        let answer = self.router.clone().call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            // In HTTP/2 this header is forbidden; there the connection sends GOAWAY.
            if version <= Version::HTTP_11 && *phase.borrow() >= Phase::Leaving {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            drop(active);
            Ok(response)
        })
    }
}
