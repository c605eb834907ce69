//! Carrying out plans: the only place that writes to a plane.
//!
//! Invariants: reconciles ask and write nothing without the permit, and write nothing in a dry run; nothing is sent that rests
//! on a write or proof that failed; every request ends within [`REQUEST_TIMEOUT`]; a server that is unreachable is probed
//! once in [`crate::memory::PROBE`], and what one object or namespace causes never counts as its fault ([`answer`]).

mod answer;
mod event;
mod guard;
mod perform;
mod read;
mod request;
mod server;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kube::Client;
use popcell_api::kind::Kind;
use popcell_core::deletion_guard::DeletionGuards;
pub use popcell_core::deletion_guard::Difference;
use popcell_core::object::Object;
use popcell_core::plan::{Plane, Proof, Target};
use popcell_core::spec_echoes::ExplainSpec;
use tokio::time::Instant;
use tracing::debug;

pub use crate::refusal::{ApplyError, Failed, Refusal, ServerMessage};
use answer::Text;
pub(crate) use event::record_event;
pub(crate) use guard::release_of;
pub use perform::{WriteResponses, WriteScope};
pub use popcell_client::{ProjectAnswer, Unproven};
use request::{LIST, OBJECT};
use server::Server;

use crate::memory::{Access, Attempt, BreakerKey};
use crate::planes::{Change, Planes};
use crate::sync::lock;

/// The longest time of one request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// Whether reconciles may go on: the Lease is held, or there is none to hold, and no stop was requested.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

/// Tells the [`Difference`] of a plane and kind.
pub type Differ<'a> = dyn Fn(&Plane, Kind) -> Difference + Send + Sync + 'a;

/// Who counts what was sent.
pub trait Meter: Send + Sync {
    /// A request that changes something was answered with this code; 0 where there was no answer.
    fn wrote(&self, target: &Target, verb: &'static str, code: u16);
    /// A request that changes something would have been sent but for the dry run.
    fn planned(&self, target: &Target, verb: &'static str);
    /// A delete was skipped.
    fn withheld(&self, target: &Target, why: &'static str);
    /// The deletion guard of a plane and kind came on or opened.
    fn guard_changed(&self, plane: &Plane, kind: &'static str, change: GuardChange);
    /// A release of the deletion guard named nothing that is held. `held` says what is, for people.
    fn unreleased(&self, value: &str, held: &str);
}

/// What became of a deletion guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardChange {
    /// It holds: so many of ours would be deleted.
    Held(Difference),
    /// It opened by itself: the planes have recovered.
    Recovered,
    /// It was opened by the annotation on our Lease.
    Released,
    /// The versions of the plane went back: all its deletes are held.
    Rewound,
}

/// What a plan did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing was to be done.
    Unchanged,
    /// Something was to be done, but for the dry run.
    Planned,
    /// Something was written.
    Written,
    /// Deletes were skipped because the deletion guard holds; the rest was done.
    Held,
}

/// How plans are carried out.
#[derive(Clone)]
pub struct Options {
    /// Log plans and write nothing.
    pub dry_run: bool,
    /// See [`MayWrite`].
    pub may_write: MayWrite,
    /// The server that knows which projects there are, in mode `milo`.
    pub discovery: Option<(Client, Kind)>,
    /// Namespace of the record of removed cells on the hub.
    pub namespace: String,
}

/// Carries out plans. Shared by all reconcilers.
pub struct Applier {
    planes: Planes,
    options: Options,
    meter: Arc<dyn Meter>,
    discovery: Option<Server>,
    /// Of all planes: a delete on one may rest on another, and that the versions of one went back outlasts it.
    deletion_guards: Mutex<DeletionGuards>,
    /// Proofs of what users did, and when they held.
    excuses: Mutex<Vec<(Proof, Instant)>>,
    /// Where something can be read or written again that was refused to others, too.
    opened: Mutex<Vec<WriteScope>>,
}

impl Applier {
    /// Nothing was written yet.
    pub fn new(planes: Planes, options: Options, meter: Arc<dyn Meter>) -> Self {
        let discovery = options.discovery.clone();
        Self {
            planes,
            options,
            meter,
            discovery: discovery.map(|(client, kind)| Server::discovery(client, kind)),
            deletion_guards: Mutex::default(),
            excuses: Mutex::default(),
            opened: Mutex::default(),
        }
    }

    /// Whether anything may be written now.
    pub fn writes(&self) -> bool {
        !self.options.dry_run && (self.options.may_write)()
    }

    /// Whether nothing is written, so that nothing comes of a plan.
    pub fn is_dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// What servers made of earlier specs, for decisions.
    pub fn spec_echoes(&self) -> &dyn ExplainSpec {
        &self.planes
    }

    /// Deletion guards on mass deletion.
    pub fn deletion_guards(&self) -> MutexGuard<'_, DeletionGuards> {
        lock(&self.deletion_guards)
    }

    /// A projection as it was last written, where that is its resourceVersion.
    pub fn remembered(&self, target: &Target, version: &str) -> Option<Arc<Object>> {
        self.planes.get(&target.plane)?.memory().projection(target, version)
    }

    /// Where requests are accepted again that were refused, since the last call: whoever waits there may go on.
    pub(crate) fn opened(&self) -> Vec<WriteScope> {
        std::mem::take(&mut *lock(&self.opened))
    }

    /// Whether an object of the kind may be tried in the namespace now: for a reconcile that would read something else
    /// before.
    ///
    /// # Errors
    /// The server is unreachable, or has lately taken none there, and the next probe is not due yet.
    pub fn may_create(&self, target: &Target) -> Result<(), ApplyError> {
        let (now, server) = (Instant::now(), self.server(&target.plane)?);
        if let Some(delay) = lock(&server.memory.circuit).wait(now) {
            return Err(ApplyError::Unreachable(target.plane.clone(), delay));
        }
        let attempt = Attempt {
            place: &BreakerKey::of(target, Access::Create),
            name: &target.name,
            sent: None,
        };
        match lock(&server.memory.namespace_breakers).wait(attempt, now) {
            Some((like, delay)) => Err(ApplyError::CircuitOpen(Box::new(like), delay)),
            None => Ok(()),
        }
    }

    fn server(&self, plane: &Plane) -> Result<Server, ApplyError> {
        let found = match plane {
            Plane::Discovery => self.discovery.clone(),
            plane => self.planes.get(plane).map(|engaged| Server::of(&engaged)),
        };
        found.ok_or_else(|| ApplyError::Disengaged(plane.clone()))
    }

    /// Whether an event brings nothing but an object that was made here.
    pub fn is_own_create(&self, plane: &Plane, kind: Kind, change: &Change) -> bool {
        let engaged = self.planes.get(plane);
        engaged.is_some_and(|plane| plane.memory().sent.is_create(kind, change))
    }

    /// Whether an event brings nothing but a status, or annotations, that were written here.
    pub fn is_own_report(&self, plane: &Plane, kind: Kind, change: &Change) -> bool {
        let engaged = self.planes.get(plane);
        engaged.is_some_and(|plane| plane.memory().sent.is_report(kind, change))
    }

    /// One request about an object, unless it or its place is not to be tried yet. `sent` tells contents apart.
    async fn attempt(
        &self,
        server: &Server,
        (target, access): (&Target, Access),
        sent: u64,
        request: Result<http::Request<Vec<u8>>, Refusal>,
    ) -> Result<Text, ApplyError> {
        let attempt = Attempt {
            place: &BreakerKey::of(target, access),
            name: &target.name,
            sent: Some(sent),
        };
        if let Some((like, delay)) = lock(&server.memory.namespace_breakers).ask(attempt, Instant::now()) {
            return Err(ApplyError::CircuitOpen(Box::new(like), delay));
        }
        let answer = self.send(server, target, access, request).await;
        if lock(&server.memory.namespace_breakers).answered(attempt, &answer, Instant::now()) {
            lock(&self.opened).push(WriteScope::at(target, access.verb()));
        }
        answer
    }

    /// One request, unless the circuit of the server is open. Who may not write need not ask either: what a reconcile reads is read
    /// for a write.
    async fn send(
        &self,
        server: &Server,
        target: &Target,
        access: Access,
        request: Result<http::Request<Vec<u8>>, Refusal>,
    ) -> Result<Text, ApplyError> {
        let failed = |refusal| ApplyError::of(target, access.verb(), refusal);
        let request = request.map_err(failed)?;
        if !server.is_for_all && !(self.options.may_write)() {
            return Err(ApplyError::NotAllowed);
        }
        server.admit().await?;
        let most = if access == Access::List { LIST } else { OBJECT };
        let answer = server.send(request, most).await;
        if !access.reads() {
            let code = answer.as_ref().err().map_or(200, Refusal::code);
            self.meter.wrote(target, access.verb(), code);
            if let Err(refusal) = &answer {
                debug!(%target, verb = access.verb(), %refusal, "a write was not taken");
            }
        }
        answer.map_err(failed)
    }
}
