//! What an action that fails means for the rest of its plan, and which deletes the deletion guard holds.

use std::collections::BTreeSet;
use std::time::Duration;

use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_api::events;
use popcell_api::kind::Kind;
use popcell_api::names::{DELETION_GUARD, LEASE};
use popcell_core::brake::{self, ALL_KINDS, Brakes};
use popcell_core::plan::{Action, Brake, Delete, Event, Order, Patch, Plan, Plane, Proof, Severity, Target};
use popcell_core::rejection::Rejection;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{Applier, ApplyError, Braking, Differ, Difference, Done, Failed, Heard, event, lock};
use crate::error::chain;

/// How long a proof that a user did something counts for the deletion guard.
const EXCUSED: Duration = Duration::from_secs(2);

/// So many planes that are held are named.
const NAMED: usize = 5;
/// So much of a value that names nothing is told.
const VALUE_CHARS: usize = 100;

/// For people: what releases what is held of a plane and nothing else, to be copied into a shell. Logs may be JSON, which has
/// no use for other quotes.
pub(crate) fn release_of(plane: &Plane) -> String {
    format!("{MASS_DELETE}='{plane}'")
}

/// For people: the one thing to do, with and without a Lease.
fn how_to_release(plane: &Plane) -> String {
    format!(
        "annotate Lease {LEASE} in the program's namespace with {}; with --leader-elect=false, create ConfigMap {DELETION_GUARD} \
         with that annotation there ({MASS_DELETE_ALLOW} releases all that is held, whatever it is)",
        release_of(plane)
    )
}

/// What became of the actions of a plan.
#[derive(Default)]
struct Course {
    /// Deletes were left out because the deletion guard holds.
    held: bool,
    /// What failed, and on which plane.
    failures: Vec<(Plane, ApplyError)>,
    /// Versions that were made of objects.
    made: Vec<(Target, String)>,
}

impl Course {
    /// Whether a status may be written. One on another plane than what failed says nothing of the plan's own writes; after
    /// a conflict it is decided anew first, unless this was the `last` time.
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
fn told_elsewhere<'a>(status: &Patch, error: &'a ApplyError) -> Option<&'a Failed> {
    error.rejected().filter(|_| status.target.plane == Plane::Hub)
}

impl Applier {
    /// Carries out a plan. `difference` is asked for at deletes that the deletion guard counts.
    ///
    /// # Errors
    /// The worst of what writes and proofs met that did not end well. What rests on such a one was not sent.
    pub async fn carry_out(&self, plan: &Plan, difference: &Differ<'_>) -> Result<Done, ApplyError> {
        self.carry(plan, difference, false, None).await
    }

    /// As [`Applier::carry_out`], for a plan that is not decided again at once after a conflict: a server that answers
    /// every write with one does not hide the status for ever.
    ///
    /// # Errors
    /// The same.
    pub async fn carry_out_at_last(&self, plan: &Plan, difference: &Differ<'_>) -> Result<Done, ApplyError> {
        self.carry(plan, difference, true, None).await
    }

    /// The same, where the caller shows what is rejected by [`Applier::report`]: a status that does not say so yet is not
    /// written. `last` as in [`Applier::carry_out_at_last`].
    ///
    /// # Errors
    /// The same.
    pub async fn carry_out_heard(
        &self,
        plan: &Plan,
        difference: &Differ<'_>,
        last: bool,
        heard: &mut Heard,
    ) -> Result<Done, ApplyError> {
        self.carry(plan, difference, last, Some(heard)).await
    }

    /// Of a plan only what is shown of it: the status, and the events that go with it.
    ///
    /// # Errors
    /// The status was not written.
    pub async fn report(&self, plan: &Plan) -> Result<(), ApplyError> {
        let Some(status) = plan.otherwise.as_ref().or(plan.status.as_ref()) else {
            return Ok(());
        };
        if self.options.dry_run {
            return Ok(());
        }
        self.write_status(status).await?;
        for event in &plan.events {
            self.tell(event).await;
        }
        Ok(())
    }

    async fn carry(
        &self,
        plan: &Plan,
        difference: &Differ<'_>,
        last: bool,
        mut heard: Option<&mut Heard>,
    ) -> Result<Done, ApplyError> {
        if plan.is_quiet() {
            return Ok(Done::Quiet);
        }
        if self.options.dry_run {
            self.rehearse(plan);
            return Ok(Done::Planned);
        }
        let mut course = self.act(plan, difference, heard.as_deref_mut()).await;
        let rejected = heard.as_deref().is_some_and(|heard| !heard.rejections.is_empty());
        let mut told = course.failures.is_empty();
        let otherwise = plan.otherwise.as_ref().filter(|_| !told);
        let status = otherwise.or(plan.status.as_ref());
        if let Some(status) = status.filter(|status| !rejected && course.leaves(status, last)) {
            let written = self.write_status(&course.follow(status)).await;
            told = written.is_ok();
            if let Err(error) = written {
                if let (Some(heard), Some(failed)) = (heard.as_deref_mut(), told_elsewhere(status, &error)) {
                    let words = failed.words_for(&status.target);
                    heard.rejections.push(Rejection::of_status(&status.target, &words));
                }
                course.failures.push((status.target.plane.clone(), error));
            }
        }
        if told {
            for event in &plan.events {
                self.tell(event).await;
            }
        }
        for action in &plan.aside {
            let written = self.write(action).await;
            if let Some(heard) = heard.as_deref_mut() {
                heard.note(action, &written);
            }
            match written {
                Ok(_) => info!(%action, "written"),
                Err(error) => course.failures.push((action.target().plane.clone(), error)),
            }
        }
        course.end()
    }

    /// Writes the status of the object that a plan is for. One that is rejected would be seen nowhere: an Event says so, where
    /// users look.
    async fn write_status(&self, status: &Patch) -> Result<(), ApplyError> {
        let (target, uid) = (&status.target, &status.on.uid);
        let written = self.patch(status).await;
        let Err(error) = &written else {
            lock(&self.unwritten).accepted(target, Instant::now());
            return Ok(());
        };
        if target.plane != Plane::Hub
            && let Some(failed) = error.rejected()
            && lock(&self.unwritten).is_news(target, uid, failed.cause(), Instant::now())
        {
            let message = Rejection::of_status(target, &failed.words_for(target)).message();
            let event = Event::of(target, uid, Severity::Warning, events::STATUS_REJECTED, &message);
            self.tell(&event).await;
        }
        written.map(|_| ())
    }

    async fn act(&self, plan: &Plan, difference: &Differ<'_>, mut heard: Option<&mut Heard>) -> Course {
        let (mut course, mut held, mut wrote) = (Course::default(), Vec::new(), false);
        for action in &plan.actions {
            if let Action::Delete(delete) = action
                && self.holds(delete, difference).await
            {
                course.held = true;
                held.push(action);
                continue;
            }
            let written = self.write(action).await;
            if let Some(heard) = heard.as_deref_mut() {
                heard.note(action, &written);
            }
            let error = match written {
                Ok(version) => {
                    info!(%action, "written");
                    wrote = true;
                    course
                        .made
                        .extend(version.map(|version| (action.target().clone(), version)));
                    continue;
                }
                Err(error) => error,
            };
            let ends = plan.order == Order::OneByOne || error == ApplyError::NotAllowed;
            course.failures.push((action.target().plane.clone(), error));
            if ends {
                break;
            }
        }
        for action in held {
            // A pass that writes nothing comes again each minute.
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
            Action::Create { target, object } => self.create(target, object).await,
            Action::Patch(patch) => self.patch(patch).await,
            Action::Delete(delete) => {
                for proof in &delete.proofs {
                    if let Err(error) = self.prove(proof).await {
                        self.meter.suppressed(&delete.target, "unproven");
                        return Err(error);
                    }
                }
                self.delete(delete).await.map(|()| None)
            }
        }
    }

    async fn holds(&self, delete: &Delete, difference: &Differ<'_>) -> bool {
        if delete.brake == Brake::Exempt {
            return false;
        }
        let holds = self.brakes().is_rewound(delete) || self.is_mass(delete, difference).await;
        if holds {
            self.meter.suppressed(&delete.target, "brake");
        }
        holds
    }

    async fn is_mass(&self, delete: &Delete, difference: &Differ<'_>) -> bool {
        let plane = &delete.target.plane;
        let kind = match &delete.brake {
            Brake::With(kind) => *kind,
            _ => delete.target.kind,
        };
        if self.brakes().passes(plane, kind) {
            return false;
        }
        if let Brake::Unless(proofs) = &delete.brake {
            for proof in proofs {
                if self.excuses(proof).await {
                    return false;
                }
            }
        }
        // Without a lock of the guard: it decides all keys anew.
        self.judge(plane, kind, difference(plane, kind))
    }

    /// Whether a live answer says that a user did what a delete follows from. Many deletes follow from one deed: what was
    /// proven is not asked about again for a moment. What a delete itself rests on is proven each time.
    async fn excuses(&self, proof: &Proof) -> bool {
        let now = Instant::now();
        let proven = {
            let mut excuses = lock(&self.excuses);
            excuses.retain(|(_, at)| now.duration_since(*at) < EXCUSED);
            excuses.iter().any(|(known, _)| known == proof)
        };
        if proven {
            return true;
        }
        match self.prove(proof).await {
            Ok(()) => {
                lock(&self.excuses).push((proof.clone(), now));
                true
            }
            Err(error) => {
                debug!(%error, "the deletion guard counts a delete");
                false
            }
        }
    }

    /// The versions of a plane went back, as after the restore of a backup: nothing is deleted there, nor because of what it
    /// does not have, until the deletion guard is released.
    pub fn rewound(&self, plane: &Plane) {
        if self.brakes().rewound(plane) {
            warn!(%plane, "the resourceVersions of this server went back: it was restored from a backup, or is another one. \
                It is listed anew, and nothing is deleted there or because of what it does not have. Once it has what it \
                should have, release the deletion guard: {}", how_to_release(plane));
            self.meter.braked(plane, ALL_KINDS, Braking::Rewound);
        }
    }

    /// Whether the deletion guard of a plane and kind holds, given the whole difference.
    pub fn judge(&self, plane: &Plane, kind: Kind, difference: Difference) -> bool {
        let Difference { ours, doomed, partial } = difference;
        if partial && !brake::is_mass(kind, ours, doomed) {
            // A small part of a difference neither opens the brake for the rest nor lets go what it holds.
            return self.brakes().is_held(plane, kind);
        }
        let (was_held, verdict) = {
            let mut brakes = self.brakes();
            (brakes.is_held(plane, kind), brakes.judge(plane, kind, ours, doomed))
        };
        match verdict {
            brake::Verdict::Hold { first: true } => {
                warn!(%plane, kind = kind.kind, ours, doomed, "the deletion guard holds: none of these is deleted. Look for a \
                    list that is wrong first (a restored backup, credentials of another installation); only if the deletes \
                    are meant, release it: {}", how_to_release(plane));
                self.meter.braked(plane, kind.kind, Braking::Held(difference));
            }
            brake::Verdict::Go if was_held => {
                info!(%plane, kind = kind.kind, ours, doomed, "the deletion guard opens: all planes are consistent again");
                self.meter.braked(plane, kind.kind, Braking::Recovered);
            }
            _ => {}
        }
        verdict != brake::Verdict::Go
    }

    /// Opens the guards that hold and that the value of the annotation names ([`Brakes::release`]), and says whether there is
    /// one.
    pub fn release_brakes(&self, value: &str) -> bool {
        let value = value.trim();
        let (released, held) = {
            let mut brakes = self.brakes();
            (brakes.release(value), held(&brakes))
        };
        for (plane, kind) in &released {
            warn!(%plane, kind, "the deletion guard is released");
            self.meter.braked(plane, kind, Braking::Released);
        }
        if released.is_empty() {
            let value: String = value.chars().take(VALUE_CHARS).collect();
            warn!(
                value,
                held,
                "{MASS_DELETE} names nothing that the deletion guard holds: nothing is released. Give one of what is held, as \
                it is written here, or {MASS_DELETE_ALLOW} for all of it"
            );
            self.meter.unreleased(&value, &held);
        }
        !released.is_empty()
    }

    /// Tells log and metrics what would be sent.
    fn rehearse(&self, plan: &Plan) {
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

/// Planes of which something is held, for people.
fn held(brakes: &Brakes) -> String {
    let planes: BTreeSet<&Plane> = brakes.held().map(|(plane, _)| plane).collect();
    let mut names: Vec<String> = planes.iter().take(NAMED).map(|plane| format!("'{plane}'")).collect();
    match planes.len().saturating_sub(NAMED) {
        0 if names.is_empty() => names.push("nothing".to_owned()),
        0 => {}
        more => names.push(format!("{more} more")),
    }
    names.join(", ")
}
