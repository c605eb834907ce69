//! Carrying out a plan: its writes in their order, what one that fails means for the rest, and what servers said to them, for
//! whoever shows it and for whoever waits for it.

use std::sync::Arc;

use popcell_api::events;
use popcell_core::object::Fields;
use popcell_core::plan::{Action, Delete, Event, Order, Patch, Plan, Plane, Severity, Target};
use popcell_core::rejection::Rejection;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::answer::Text;
use super::server::Server;
use super::{Applier, Differ, Done, event, request};
use crate::error::chain;
use crate::memory::Access;
use crate::refusal::{ApplyError, Failed, Refusal};
use crate::sync::lock;

/// What became of the actions of a plan.
#[derive(Default)]
struct Course {
    /// Deletes were skipped because the deletion guard holds.
    held: bool,
    /// What failed, and on which plane.
    failures: Vec<(Plane, ApplyError)>,
    /// Versions that were made of objects.
    made: Vec<(Target, String)>,
}

impl Course {
    /// Whether a status may be written. One on another plane than what failed says nothing of the plan's own writes; after
    /// a conflict it is decided again first, unless this was the `last` time.
    fn leaves(&self, status: &Patch, last: bool) -> bool {
        let other =
            |(plane, error): &(Plane, ApplyError)| *plane != status.target.plane && (last || error.stale().is_none());
        self.failures.iter().all(other)
    }

    /// The status on the version that this plan made of its object, where it did.
    fn follow(&self, status: &Patch) -> Patch {
        let made = self.made.iter().rev().find(|(target, _)| *target == status.target);
        let status = status.clone();
        match made {
            Some((_, version)) => status.on_version(version),
            None => status,
        }
    }

    fn end(self) -> Result<Done, ApplyError> {
        let mut failures = self.failures.into_iter().map(|(_, error)| error);
        let Some(first) = failures.next() else {
            return Ok(if self.held { Done::Held } else { Done::Written });
        };
        Err(failures.fold(first, |worst, next| {
            let (worst, other) = worst.or_worse(next);
            warn!(error = chain(&other), "a part of a plan failed");
            worst
        }))
    }
}

/// What was rejected of the status of a copy on the hub: it is told where that is shown, and users do not look there.
fn reported_elsewhere<'a>(status: &Patch, error: &'a ApplyError) -> Option<&'a Failed> {
    error.rejected().filter(|_| status.target.plane == Plane::Hub)
}

impl Applier {
    /// Carries out a plan. `difference` is asked for at deletes that the deletion guard counts. A plan is tried for the `last`
    /// time where it is not decided again at once after a conflict: a server that answers every write with one does not hide
    /// the status forever. What is rejected is `responses`, and the caller shows it by [`Applier::report`]: a status that
    /// does not say so yet is not written.
    ///
    /// # Errors
    /// The worst of what writes and proofs met that did not end well. What rests on such a one was not sent.
    pub async fn execute(
        &self,
        plan: &Plan,
        difference: &Differ<'_>,
        last: bool,
        responses: &mut WriteResponses,
    ) -> Result<Done, ApplyError> {
        responses.shown = plan.status.is_none() && plan.fallback_status.is_none();
        if plan.is_unchanged() {
            return Ok(Done::Unchanged);
        }
        if self.options.dry_run {
            self.log_planned(plan);
            return Ok(Done::Planned);
        }
        let mut course = self.act(plan, difference, responses).await;
        let mut reported = course.failures.is_empty();
        let fallback_status = plan.fallback_status.as_ref().filter(|_| !reported);
        let status = fallback_status.or(plan.status.as_ref());
        if let Some(status) = status.filter(|status| responses.rejections.is_empty() && course.leaves(status, last)) {
            let written = self.write_status(&course.follow(status)).await;
            reported = written.is_ok();
            if let Err(error) = written {
                if let Some(failed) = reported_elsewhere(status, &error) {
                    let words = failed.words_for(&status.target);
                    responses.rejections.push(Rejection::of_status(&status.target, &words));
                }
                course.failures.push((status.target.plane.clone(), error));
            }
        }
        if reported {
            for event in &plan.events {
                self.record_event(event).await;
            }
        }
        for action in &plan.best_effort {
            let written = self.write(action).await;
            responses.note(action, &written);
            match written {
                Ok(_) => info!(%action, "written"),
                Err(error) => course.failures.push((action.target().plane.clone(), error)),
            }
        }
        course.end()
    }

    /// Of a plan only what is shown of it: the status, and the events that go with it.
    ///
    /// # Errors
    /// The status was not written.
    pub async fn report(&self, plan: &Plan) -> Result<(), ApplyError> {
        let Some(status) = plan.fallback_status.as_ref().or(plan.status.as_ref()) else {
            return Ok(());
        };
        if self.options.dry_run {
            return Ok(());
        }
        self.write_status(status).await?;
        for event in &plan.events {
            self.record_event(event).await;
        }
        Ok(())
    }

    async fn act(&self, plan: &Plan, difference: &Differ<'_>, responses: &mut WriteResponses) -> Course {
        let (mut course, mut held, mut wrote) = (Course::default(), Vec::new(), false);
        let mut failed = Vec::new();
        for action in &plan.actions {
            let rests_on = |(this, on): &(Target, Target)| this == action.target() && failed.contains(&on);
            if plan.rests.iter().any(rests_on) {
                continue;
            }
            if let Action::Delete(delete) = action
                && self.holds(delete, difference).await
            {
                course.held = true;
                held.push(action);
                continue;
            }
            let written = self.write(action).await;
            responses.note(action, &written);
            let error = match written {
                Ok(version) => {
                    info!(%action, "written");
                    wrote = true;
                    let target = action.target();
                    course.made.extend(version.map(|version| (target.clone(), version)));
                    continue;
                }
                Err(error) => error,
            };
            let ends = plan.order == Order::Sequential || error == ApplyError::NotAllowed;
            course.failures.push((action.target().plane.clone(), error));
            failed.push(action.target());
            if ends {
                break;
            }
        }
        for action in held {
            // A reconcile that writes nothing comes again each minute.
            if wrote {
                info!(%action, "held by the deletion guard");
            } else {
                debug!(%action, "held by the deletion guard");
            }
        }
        course
    }

    /// Answers the version that it made of the object, where the server says so.
    async fn write(&self, action: &Action) -> Result<Option<String>, ApplyError> {
        match action {
            Action::Create { target, object } => {
                let server = self.server(&target.plane)?;
                server.memory.sent.create(target);
                let request = request::create(target, object);
                let sent = request::content(&request);
                let spec = object.data.get("spec");
                self.put(&server, (target, Access::Create), sent, request, spec).await
            }
            Action::Patch(patch) => self.patch(patch).await,
            Action::Delete(delete) => {
                for proof in &delete.proofs {
                    if let Err(error) = self.prove(proof).await {
                        self.meter.withheld(&delete.target, "unproven");
                        return Err(error);
                    }
                }
                self.delete(delete).await.map(|()| None)
            }
        }
    }

    /// Writes the status of the object that a plan is for. One that is rejected would be seen nowhere: an Event says so, where
    /// users look.
    async fn write_status(&self, status: &Patch) -> Result<(), ApplyError> {
        let (target, uid) = (&status.target, &status.on.uid);
        let written = self.patch(status).await.map(|_| ());
        let Some(engaged) = self.planes.get(&target.plane) else {
            return written;
        };
        let rejected_statuses = || lock(&engaged.memory().rejected_statuses);
        let Err(error) = &written else {
            rejected_statuses().accepted(target, Instant::now());
            return written;
        };
        if target.plane != Plane::Hub
            && let Some(failed) = error.rejected()
            && rejected_statuses().is_news(target, uid, failed.cause(), Instant::now())
        {
            let message = Rejection::of_status(target, &failed.words_for(target)).message();
            let event = Event::of(target, uid, Severity::Warning, events::STATUS_REJECTED, &message);
            self.record_event(&event).await;
        }
        written
    }

    async fn patch(&self, patch: &Patch) -> Result<Option<String>, ApplyError> {
        let access = if patch.status { Access::Status } else { Access::Patch };
        let server = self.server(&patch.target.plane)?;
        server.memory.sent.patch(patch);
        let (sent, spec) = (request::changes(patch), patch.value_at("/spec"));
        self.put(&server, (&patch.target, access), sent, request::patch(patch), spec)
            .await
    }

    /// Creates or changes an object. `sent` tells contents apart; `spec` is the part of it that the server may store otherwise.
    async fn put(
        &self,
        server: &Server,
        (target, access): (&Target, Access),
        sent: u64,
        request: Result<http::Request<Vec<u8>>, Refusal>,
        spec: Option<&Value>,
    ) -> Result<Option<String>, ApplyError> {
        let answer = self.attempt(server, (target, access), sent, request).await;
        let answer = answer.inspect_err(|_| server.memory.sent.forget(target))?;
        Ok(self.record(target, spec, &answer))
    }

    async fn delete(&self, delete: &Delete) -> Result<(), ApplyError> {
        let Delete { target, on, .. } = delete;
        let server = self.server(&target.plane)?;
        let request = request::delete(delete);
        let answer = match self.attempt(&server, (target, Access::Delete), 0, request).await {
            // Another client was faster: absent is what was wanted.
            Err(error) if error.is_absence() => None,
            answer => request::object(&answer?),
        };
        let Some(engaged) = self.planes.get(&target.plane) else {
            return Ok(());
        };
        match answer {
            // Finalizers hold it.
            Some(object) if object.uid() == on.uid && object.deleting() => {
                engaged.wrote(target.kind, &Arc::new(object));
            }
            _ => engaged.deleted(target, &on.uid, &on.resource_version),
        }
        Ok(())
    }

    /// Takes in the answer to a create or patch: the store of the object is not older than this from now on.
    fn record(&self, target: &Target, sent: Option<&Value>, answer: &Text) -> Option<String> {
        let object = request::object(answer)?;
        let version = object.resource_version().to_owned();
        let Some(engaged) = self.planes.get(&target.plane) else {
            return Some(version);
        };
        if let Some(sent) = sent {
            let stored = object.data.get("spec").unwrap_or(&Value::Null);
            engaged.memory().spec_echoes.record(target, sent, stored);
        }
        let is_held = object.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        engaged.memory().sent.created(target, object.uid());
        if object.deleting() && !is_held {
            // The last finalizer was taken away: the answer is the object's last word.
            engaged.deleted(target, object.uid(), object.resource_version());
        } else {
            engaged.memory().put_projection(target, &object);
            engaged.wrote(target.kind, &Arc::new(object));
        }
        Some(version)
    }

    /// An Event is for people: a lost one has no effect, so its failure ends nothing.
    async fn record_event(&self, event: &Event) {
        let (target, request) = event::request(event);
        let sent = match self.server(&target.plane) {
            Ok(server) => self.send(&server, &target, Access::Create, request).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            warn!(about = %event.about, reason = event.reason, error = chain(&error), "failed to record an event");
        }
    }

    /// Tells log and metrics what would be sent.
    fn log_planned(&self, plan: &Plan) {
        for action in plan.writes() {
            info!(%action, "dry run");
            self.meter.planned(action.target(), action.verb());
        }
        if let Some(status) = &plan.status {
            info!(action = %status, "dry run");
            self.meter.planned(&status.target, "patch");
        }
        for event in &plan.events {
            info!(about = %event.about, reason = event.reason, "dry run: event");
            self.meter.planned(&event::request(event).0, "create");
        }
    }
}

/// Writes of one kind of object in one namespace: what a policy, a webhook or a right is about. For those that were refused,
/// with what was said: only those that were refused alike are accepted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteScope {
    /// The server.
    pub plane: Plane,
    kind: &'static str,
    namespace: Option<String>,
    verb: &'static str,
    cause: Option<u64>,
}

impl WriteScope {
    /// Where something was refused.
    pub fn of(failed: &Failed) -> Self {
        Self {
            cause: Some(failed.cause()),
            ..Self::at(&failed.target, failed.verb)
        }
    }

    /// Where an object is written.
    pub fn at(target: &Target, verb: &'static str) -> Self {
        Self {
            plane: target.plane.clone(),
            kind: target.kind.kind,
            namespace: target.namespace.clone(),
            verb,
            cause: None,
        }
    }

    /// Whether these are the same writes, whatever was said of them.
    pub fn is_beside(&self, other: &Self) -> bool {
        let cause = self.cause;
        *self == Self { cause, ..other.clone() }
    }
}

/// What became of the writes of a plan, but for that of the status.
#[derive(Debug, Default)]
pub struct WriteResponses {
    /// What was rejected, and lasts until a change.
    pub rejections: Vec<Rejection>,
    /// The plan has no status to write: what it was decided on is shown already.
    pub shown: bool,
}

impl WriteResponses {
    /// A reconcile ended before its plan was carried out, since a write like its own was refused.
    pub(crate) fn note_error(&mut self, error: &ApplyError) {
        if let ApplyError::CircuitOpen(failed, _) = error
            && error.rejected().is_some()
            && !failed.reads()
        {
            let words = failed.words_for(&failed.target);
            self.rejections
                .push(Rejection::new(&failed.target, failed.verb, &words));
        }
    }

    fn note<T>(&mut self, action: &Action, written: &Result<T, ApplyError>) {
        // What was not tried is rejected in the words that another one heard, but for its name.
        if let Err(error) = written {
            let rejected = error.rejected();
            self.rejections.extend(
                rejected
                    .map(|failed| Rejection::new(action.target(), action.verb(), &failed.words_for(action.target()))),
            );
        }
    }
}
