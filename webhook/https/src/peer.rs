//! What all connections of a listener share, and the one connection that a request came on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, Charge};
use crate::limits::Limits;
use crate::registry::Registry;
use crate::status::ListenerStatus;
use crate::tls::Handshakes;
use crate::tracked::Tracked;

/// What all connections of a listener share.
pub(crate) struct Shared {
    pub(crate) router: Router,
    /// None on a port without TLS, which speaks HTTP/1 only.
    pub(crate) tls: Option<Handshakes>,
    pub(crate) limits: Limits,
    pub(crate) status: Arc<ListenerStatus>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) stop: Stop,
}

/// How far the stop of a listener is. Each step comes after the one before it, and none is taken back.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The signal has come: the listener still accepts, but every answer asks its client to leave.
    pub(crate) leaving: CancellationToken,
    /// The grace is over: what is being answered is finished, everything else ends.
    pub(crate) ending: CancellationToken,
    /// Time is up.
    pub(crate) over: CancellationToken,
}

/// The connection that a request came on; in the request's extensions.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) tracked: Arc<Tracked>,
    /// What the request of this copy holds.
    held: Arc<Mutex<Option<Charge>>>,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, shared: Arc<Shared>, tracked: Arc<Tracked>) -> Self {
        Self {
            address,
            shared,
            tracked,
            held: Arc::default(),
        }
    }

    /// The same connection for another request.
    pub(crate) fn for_request(&self) -> Self {
        Self::new(self.address, Arc::clone(&self.shared), Arc::clone(&self.tracked))
    }

    /// Resolves when the connection has to end although it has no request.
    pub(crate) async fn dispensable(&self) {
        tokio::select! {
            () = self.shared.stop.ending.cancelled() => {}
            () = self.tracked.cut.cancelled() => {}
        }
    }

    /// Keeps what the request's body holds until its answer is made.
    pub(crate) fn keep(&self, charge: Charge) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
    }

    /// Gives back what the request's body held.
    pub(crate) fn release(&self) {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
