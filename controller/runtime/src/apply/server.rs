//! A server as requests meet it: its client, and the circuit breaker that they pass.

use std::sync::Arc;

use http::Request;
use kube::Client;
use popcell_api::kind::Kind;
use popcell_core::plan::Plane;
use tokio::time::Instant;
use tracing::{info, warn};

use super::answer::Text;
use super::request::{self, OBJECT};
use crate::memory::{Admission, Memory, PROBE};
use crate::planes::Engaged;
use crate::refusal::{self, ApplyError, Refusal};
use crate::sync::lock;

/// A server, and what is remembered of it.
#[derive(Clone)]
pub(super) struct Server {
    plane: Plane,
    client: Client,
    /// A kind that is watched there: a list of it is the probe.
    watched: Option<Kind>,
    /// Whether a replica that does not lead may ask, too: what it reads is not for a reconcile.
    pub(super) is_for_all: bool,
    pub(super) memory: Arc<Memory>,
}

impl Server {
    /// The server of a plane that is engaged.
    pub(super) fn of(engaged: &Engaged) -> Self {
        Self {
            plane: engaged.plane().clone(),
            client: engaged.client().clone(),
            watched: engaged.stores().next().map(|(kind, _)| kind),
            is_for_all: false,
            memory: Arc::clone(engaged.memory()),
        }
    }

    /// The server that knows which projects there are.
    pub(super) fn discovery(client: Client, kind: Kind) -> Self {
        Self {
            plane: Plane::Discovery,
            client,
            watched: Some(kind),
            is_for_all: false,
            memory: Arc::default(),
        }
    }

    /// Passes where the circuit is closed, or is closed by a probe now.
    pub(super) async fn admit(&self) -> Result<(), ApplyError> {
        let permit = lock(&self.memory.circuit).ask(Instant::now());
        let waits = match permit {
            Admission::Go => None,
            Admission::Wait(delay) => Some(delay),
            Admission::Probe => {
                self.probe().await;
                lock(&self.memory.circuit).wait(Instant::now())
            }
        };
        waits.map_or(Ok(()), |delay| Err(ApplyError::Unreachable(self.plane.clone(), delay)))
    }

    /// Sends a request and reads the answer, of at most so many bytes. Where that leaves a doubt about the server, it is probed.
    pub(super) async fn send(&self, request: Request<Vec<u8>>, most: usize) -> Result<Text, Refusal> {
        let answer = request::send(&self.client, request, most).await;
        self.answered(answer.as_ref().err()).await;
        answer
    }

    /// Reports to the circuit what became of a request, and probes the server where that leaves a doubt.
    pub(super) async fn answered(&self, refusal: Option<&Refusal>) {
        let is_doubtful = {
            let (mut circuit, now) = (lock(&self.memory.circuit), Instant::now());
            match refusal {
                Some(refusal) if refusal.may_be_the_server() => circuit.failed(refusal.server_rest(), now),
                _ => {
                    circuit.answered(now);
                    false
                }
            }
        };
        if is_doubtful {
            self.probe().await;
        }
    }

    /// Asks for something that no object and no webhook can spoil: this alone opens the circuit, and closes it unless a late
    /// answer of the server has.
    async fn probe(&self) {
        let answer = match request::probe(self.watched) {
            Ok(request) => request::send(&self.client, request, OBJECT).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = answer.err().filter(Refusal::may_be_the_server);
        let (mut circuit, now) = (lock(&self.memory.circuit), Instant::now());
        if let Some(rest) = refusal.as_ref().and_then(Refusal::server_rest) {
            circuit.failed(Some(rest), now);
        }
        if circuit.probed(refusal.is_none(), now) {
            let server = refusal::server(&self.plane);
            if let Some(refusal) = refusal {
                let seconds = PROBE.as_secs();
                warn!(%server, %refusal, "circuit breaker opened: the server is unreachable, probed every {seconds} s");
            } else {
                info!(%server, "circuit breaker closed: the server is reachable");
            }
        }
    }
}
