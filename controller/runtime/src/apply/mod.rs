//! Carrying out plans: the only place that writes to a plane.
//!
//! Invariants: passes ask and write nothing without the permit, and write nothing in a dry run; nothing is sent that rests
//! on a write or proof that failed; every request ends within [`REQUEST_TIMEOUT`]; a server that is away is probed once in
//! [`crate::breaker::PROBE`], and what one object or namespace causes never counts as its fault ([`answer`]).

mod absence;
mod answer;
mod carry;
mod doors;
mod error;
mod event;
mod heard;
mod memory;
mod proof;
mod read;
mod request;
mod sent;
#[cfg(test)]
mod tests;
mod unwritten;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use popcell_api::kind::Kind;
use popcell_core::brake::Brakes;
use popcell_core::ledger::Ledger;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Delete, Event, Patch, Plane, Proof, Target};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, warn};

pub use absence::absent;
use answer::Text;
pub(crate) use carry::release_of;
use doors::{Access, Attempt, Doors, Place};
pub use error::{ApplyError, Failed, Refusal};
pub(crate) use event::tell;
pub use heard::{Heard, Spot};
use memory::Projections;
pub use proof::{ProjectAnswer, Unproven};
use sent::Sent;
use unwritten::Unwritten;
pub use words::Words;
pub(crate) use words::brief;

use crate::breaker::{Breaker, Server};
use crate::error::chain;
use crate::planes::{Change, Planes};

/// The longest time of one request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// Whether passes may go on: the Lease is held, or there is none to hold, and nobody has asked for a stop.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

/// Tells the [`Difference`] of a plane and kind.
pub type Differ<'a> = dyn Fn(&Plane, Kind) -> Difference + Send + Sync + 'a;

/// Who counts what was sent.
pub trait Meter: Send + Sync {
    /// A request that changes something was answered with this code; 0 where there was no answer.
    fn wrote(&self, target: &Target, verb: &'static str, code: u16);
    /// A request that changes something would have been sent but for the dry run.
    fn planned(&self, target: &Target, verb: &'static str);
    /// A delete was left out.
    fn suppressed(&self, target: &Target, why: &'static str);
    /// The brake of a plane and kind came on or opened.
    fn braked(&self, plane: &Plane, kind: &'static str, change: Braking);
    /// A release of the brake named nothing that is held. `held` says what is, for people.
    fn unreleased(&self, value: &str, held: &str);
}

/// What became of a brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Braking {
    /// It holds: so many of ours would be deleted.
    Held(Difference),
    /// It opened by itself: the world has recovered.
    Recovered,
    /// It was opened by the annotation on our Lease.
    Released,
    /// The versions of the plane went back: all its deletes are held.
    Rewound,
}

/// How many deletes the brake would count, over all keys of a reconciler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Objects of ours.
    pub ours: usize,
    /// Those that plans would delete.
    pub doomed: usize,
    /// Some keys could not be decided yet: there may be more.
    pub partial: bool,
}

/// What a plan did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing was to be done.
    Quiet,
    /// Something was to be done, but for the dry run.
    Planned,
    /// Something was written.
    Written,
    /// Deletes were left out because the brake holds; the rest was done.
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
    ledger: Ledger,
    projections: Projections,
    sent: Sent,
    brakes: Mutex<Brakes>,
    /// Proofs of what users did, and when they held.
    excuses: Mutex<Vec<(Proof, Instant)>>,
    breaker: Mutex<Breaker>,
    doors: Mutex<Doors>,
    /// Where something can be read again that was refused to others, too.
    opened: Mutex<Vec<Spot>>,
    unwritten: Mutex<Unwritten>,
}

impl Applier {
    /// Nothing was written yet.
    pub fn new(planes: Planes, options: Options, meter: Arc<dyn Meter>) -> Self {
        Self {
            planes,
            options,
            meter,
            ledger: Ledger::default(),
            projections: Projections::default(),
            sent: Sent::default(),
            brakes: Mutex::default(),
            excuses: Mutex::default(),
            breaker: Mutex::default(),
            doors: Mutex::default(),
            opened: Mutex::default(),
            unwritten: Mutex::default(),
        }
    }

    /// Whether anything may be written now.
    pub fn writes(&self) -> bool {
        !self.options.dry_run && (self.options.may_write)()
    }

    /// Whether nothing is written, so that nothing comes of a plan.
    pub fn is_rehearsal(&self) -> bool {
        self.options.dry_run
    }

    /// What servers made of earlier specs, for decisions. Hold it while deciding only.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Brakes on mass deletion.
    pub fn brakes(&self) -> MutexGuard<'_, Brakes> {
        lock(&self.brakes)
    }

    /// Where requests are accepted again that were refused, since the last call: whoever waits there may go on.
    pub(crate) fn opened(&self) -> Vec<Spot> {
        std::mem::take(&mut *lock(&self.opened))
    }

    /// A kind was listed anew: a plane that took nothing may be another now.
    pub fn relisted(&self, plane: &Plane, kind: Kind) {
        self.brakes().relisted(plane, kind);
        lock(&self.doors).open(plane);
    }

    /// A plane that was disengaged takes its memory along.
    pub fn retire(&self, plane: &Plane) {
        lock(&self.breaker).retire(plane);
        lock(&self.doors).retire(plane);
        lock(&self.unwritten).retire(plane);
        lock(&self.brakes).left(plane);
        self.ledger.forget_plane(plane);
        self.projections.retire(plane);
        self.sent.retire(plane);
    }

    /// A plane is another's from now on, or nobody's: what its versions were says nothing any more.
    pub fn forget_plane(&self, plane: &Plane) {
        lock(&self.brakes).forget(plane);
    }

    /// An object is gone, and what is remembered of it.
    pub fn forget(&self, target: &Target) {
        self.ledger.forget(target);
        lock(&self.unwritten).forget(target);
        self.projections.forget(target);
        self.sent.forget(target);
    }

    /// A kind is not watched any more on a plane: nobody would tell when its objects go.
    pub fn forget_kind(&self, plane: &Plane, kind: Kind) {
        self.ledger.forget_kind(plane, kind);
        lock(&self.unwritten).forget_kind(plane, kind);
        self.projections.forget_kind(plane, kind);
    }

    /// Answers the version that it made, where the server says so.
    async fn create(&self, target: &Target, object: &Object) -> Result<Option<String>, ApplyError> {
        let request = request::create(target, object);
        let sent = request::content(&request);
        self.sent.create(target);
        let answer = self.attempt(target, Access::Create, sent, request).await?;
        Ok(self.record(target, object.data.get("spec"), &answer))
    }

    /// The same.
    async fn patch(&self, patch: &Patch) -> Result<Option<String>, ApplyError> {
        let access = if patch.status { Access::Status } else { Access::Patch };
        let (request, sent) = (request::patch(patch), request::changes(patch));
        self.sent.patch(patch);
        let answer = self.attempt(&patch.target, access, sent, request).await?;
        Ok(self.record(&patch.target, patch.value_at("/spec"), &answer))
    }

    /// Whether an event brings nothing but an object that was made here.
    pub fn is_own_create(&self, plane: &Plane, kind: Kind, change: &Change) -> bool {
        self.sent.is_create(plane, kind, change)
    }

    /// Whether an event brings nothing but a status, or annotations, that were written here.
    pub fn is_own_report(&self, plane: &Plane, kind: Kind, change: &Change) -> bool {
        self.sent.is_report(plane, kind, change)
    }

    async fn delete(&self, delete: &Delete) -> Result<(), ApplyError> {
        let uid = &delete.on.uid;
        let answer = match self
            .attempt(&delete.target, Access::Delete, 0, request::delete(delete))
            .await
        {
            // Another client was faster: absent is what was wanted.
            Err(error) if error.is_absence() => None,
            answer => request::object(&answer?),
        };
        match answer {
            // Finalizers hold it.
            Some(object) if object.uid() == uid && object.deleting() => {
                self.wrote(&delete.target, &Arc::new(object));
            }
            _ => self.deleted(&delete.target, uid, &delete.on.resource_version),
        }
        Ok(())
    }

    /// A projection as it was last written, where that is its resourceVersion.
    pub fn remembered(&self, target: &Target, version: &str) -> Option<Arc<Object>> {
        self.projections.get(target, version)
    }

    /// The store of the object is not older than this from now on.
    fn wrote(&self, target: &Target, object: &Arc<Object>) {
        if let Some(engaged) = self.planes.get(&target.plane) {
            engaged.wrote(target.kind, object);
        }
    }

    fn deleted(&self, target: &Target, uid: &str, version: &str) {
        self.forget(target);
        let engaged = self.planes.get(&target.plane);
        if let Some(store) = engaged.as_ref().and_then(|engaged| engaged.store(target.kind)) {
            let namespace = target.namespace.as_deref().unwrap_or_default();
            store.deleted(namespace, &target.name, uid, version);
        }
    }

    fn record(&self, target: &Target, sent: Option<&Value>, answer: &Text) -> Option<String> {
        let object = request::object(answer).map(Arc::new)?;
        if let Some(sent) = sent {
            let stored = object.data.get("spec").unwrap_or(&Value::Null);
            self.ledger.record(target, sent, stored);
        }
        let held = object
            .metadata
            .finalizers
            .as_ref()
            .is_some_and(|finalizers| !finalizers.is_empty());
        if object.deleting() && !held {
            // The last finalizer was taken away: the answer is the object's last word.
            self.deleted(target, object.uid(), object.resource_version());
        } else {
            self.projections.put(target, &object);
            self.wrote(target, &object);
        }
        Some(object.resource_version().to_owned())
    }

    /// One write of an object, unless it or its place is not to be tried yet. `sent` tells contents apart.
    async fn attempt(
        &self,
        target: &Target,
        access: Access,
        sent: u64,
        request: Result<http::Request<Vec<u8>>, Refusal>,
    ) -> Result<Text, ApplyError> {
        let (place, name) = (Place::of(target, access), target.name.as_str());
        let attempt = Attempt {
            place: &place,
            name,
            sent: Some(sent),
        };
        if let Some((like, delay)) = lock(&self.doors).ask(attempt, Instant::now()) {
            return Err(ApplyError::Shut(Box::new(like), delay));
        }
        let answer = self.send(target, access.verb(), request).await;
        if lock(&self.doors).answered(attempt, &answer, Instant::now()) {
            lock(&self.opened).push(Spot::at(target, access.verb()));
        }
        answer
    }

    /// One request that changes something.
    async fn send(
        &self,
        target: &Target,
        verb: &'static str,
        request: Result<http::Request<Vec<u8>>, Refusal>,
    ) -> Result<Text, ApplyError> {
        let request = request.map_err(|refusal| ApplyError::of(target, verb, refusal))?;
        let client = self.client(&target.plane).await?;
        let answer = request::send(&client, request, request::OBJECT).await;
        let code = match &answer {
            Ok(_) => 200,
            Err(refusal) => refusal.code(),
        };
        self.meter.wrote(target, verb, code);
        let settled = self.settle(&Server::Of(target.plane.clone()), answer).await;
        settled.map_err(|refusal| {
            debug!(%target, verb, %refusal, "a write was not taken");
            ApplyError::of(target, verb, refusal)
        })
    }

    /// An Event is for people: one that is lost harms nobody, so its failure ends nothing.
    async fn tell(&self, event: &Event) {
        let (target, request) = event::request(event);
        let sent = self.send(&target, "create", request).await;
        if let Err(error) = sent {
            warn!(about = %event.about, reason = event.reason, error = chain(&error), "an event was not told");
        }
    }
}

// Each hold is one step of a map: there is no half-done state that a panic could leave.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
