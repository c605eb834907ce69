//! `popcell reinterpret`: bumps an annotation on objects on the hub, so that Karmada interprets them again.
//! After an upgrade of a module or an outage of the webhook nothing else makes Karmada ask every operation
//! (docs/karmada.md#events-and-calls).
//!
//! Invariants: nothing but one annotation is written; one object that cannot be written stops no other; never faster than
//! the rate.

use std::{
    fmt,
    io::{IsTerminal as _, Write as _},
};

use jiff::Timestamp;
use kube::api::{ApiResource, Patch};
use popcell_api::annotations::REINTERPRETED_AT;
use popcell_core::object::{Fields as _, Object};
use serde_json::json;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval};

use crate::{
    args::planes::Reinterpret,
    console::{self, Console, address},
    exit::{Exit, Failure, Outcome},
    planes::{Answer, PlaneError, Server, Write},
};

/// After so many writes in a row without an answer the server counts as away.
const SILENCES: usize = 3;
/// Between two lines of progress where no terminal shows them.
const QUIET: Duration = Duration::from_secs(5);

/// Runs the command.
pub fn run(args: &Reinterpret, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(reinterpret(args, console))
}

async fn reinterpret(args: &Reinterpret, console: &mut Console) -> Outcome {
    let hub = Server::open(&args.cluster).await?;
    let (resource, namespaced) = hub.resource(&args.kind).await?;
    if args.namespace.is_some() && !namespaced {
        let kind = &resource.kind;
        return Err(Failure::Usage(format!(
            "{kind} is not in namespaces: leave --namespace out"
        )));
    }
    let begun = Timestamp::now();
    let found = hub
        .at(resource.clone(), args.namespace.as_deref())
        .metadata(&args.selector)
        .await?;
    for one in &found.unreadable {
        writeln!(
            console.err,
            "{}/{} cannot be read, skipped: {}",
            one.namespace, one.name, one.why
        )?;
    }
    let (mut objects, is_whole) = (found.objects, found.unreadable.is_empty());
    let all = objects.len();
    objects.retain(|one| is_due(one, args.since));
    let left_out = all - objects.len();
    let mut count = Count {
        kind: resource.kind.clone(),
        all,
        left_out,
        ..Count::default()
    };
    if args.dry_run {
        for one in &objects {
            writeln!(console.out, "{}", named(one))?;
        }
        writeln!(console.err, "{} would be bumped, {left_out} skipped", objects.len())?;
        return Ok(verdict(is_whole));
    }
    writeln!(
        console.err,
        "{} {} at {}; to resume after an interrupt: --since {begun:.6}",
        objects.len(),
        resource.plural,
        hub.name()
    )?;
    bump_all(args, &hub, &resource, &objects, &mut count, console).await?;
    writeln!(console.out, "{count}")?;
    Ok(verdict(is_whole && count.failed == 0))
}

fn verdict(is_whole: bool) -> Exit {
    if is_whole { Exit::Success } else { Exit::Environment }
}

/// What is being deleted is not changed, and what was bumped at `since` or later.
fn is_due(object: &Object, since: Option<Timestamp>) -> bool {
    let bumped = object
        .annotation(REINTERPRETED_AT)
        .and_then(|at| at.parse::<Timestamp>().ok());
    let done = matches!((since, bumped), (Some(since), Some(bumped)) if bumped >= since);
    !done && !object.deleting()
}

fn named(object: &Object) -> String {
    address(object.namespace(), object.name())
}

async fn bump_all(
    args: &Reinterpret,
    hub: &Server,
    resource: &ApiResource,
    objects: &[Object],
    count: &mut Count,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut ticks = interval(args.rate.0);
    // A slow answer is not made up for by a burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let terminal = std::io::stderr().is_terminal();
    let mut reported: Option<Instant> = None;
    let mut silences = 0;
    console::leave(format!("interrupted: {count}"));
    for object in objects {
        ticks.tick().await;
        let answer = bump(hub, resource, object).await;
        silences = if answer.is_err() { silences + 1 } else { 0 };
        let (fate, complaint) = fate(answer);
        count.note(fate);
        console::leave(format!("interrupted: {count}"));
        if let Some(complaint) = complaint {
            let clear = if terminal { "\r\x1b[K" } else { "" };
            writeln!(console.err, "{clear}{}: {complaint}", named(object))?;
        }
        // One line that is written over: indicatif would bring five crates for it.
        if terminal {
            write!(console.err, "\r\x1b[K{}", count.progress())?;
            console.err.flush()?;
        } else if reported.is_none_or(|reported| reported.elapsed() >= QUIET) {
            writeln!(console.err, "{}", count.progress())?;
            reported = Some(Instant::now());
        }
        if fate == Fate::Forbidden || silences == SILENCES {
            end_line(terminal, console)?;
            return Err(Failure::Environment(format!("gave up: {count}")));
        }
    }
    end_line(terminal, console)
}

fn end_line(terminal: bool, console: &mut Console) -> Result<(), Failure> {
    if terminal {
        writeln!(console.err)?;
    }
    Ok(())
}

async fn bump(hub: &Server, resource: &ApiResource, object: &Object) -> Result<Answer, PlaneError> {
    // Fractions, so that two runs in one second are two changes.
    let now = format!("{:.6}", Timestamp::now());
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { REINTERPRETED_AT: now } } }));
    let namespace = object.metadata.namespace.as_deref();
    hub.at(resource.clone(), namespace)
        .write(object.name(), Write::Patch(&patch))
        .await
}

/// What an answer counts as, and what there is to complain of.
fn fate(answer: Result<Answer, PlaneError>) -> (Fate, Option<String>) {
    match answer {
        Ok(Answer::Done) => (Fate::Bumped, None),
        Ok(Answer::Gone) => (Fate::Gone, None),
        Ok(Answer::Changed(message)) => (Fate::Failed, Some(format!("409 {message}"))),
        Ok(Answer::Refused { code, message }) => {
            // The next would be answered the same.
            let fate = if matches!(code, 401 | 403) {
                Fate::Forbidden
            } else {
                Fate::Failed
            };
            (fate, Some(format!("{code} {message}")))
        }
        Err(error) => (Fate::Failed, Some(error.to_string())),
    }
}

/// What became of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The annotation is set.
    Bumped,
    /// It was deleted meanwhile.
    Gone,
    /// It was not written.
    Failed,
    /// It was not written, and no other could be.
    Forbidden,
}

/// Objects of one run, by what became of them.
#[derive(Clone, Debug, Default)]
struct Count {
    kind: String,
    all: usize,
    left_out: usize,
    bumped: usize,
    gone: usize,
    failed: usize,
}

impl Count {
    fn note(&mut self, fate: Fate) {
        match fate {
            Fate::Bumped => self.bumped += 1,
            Fate::Gone => self.gone += 1,
            Fate::Failed | Fate::Forbidden => self.failed += 1,
        }
    }

    /// One line while it runs.
    fn progress(&self) -> String {
        let done = self.left_out + self.bumped + self.gone + self.failed;
        format!("{done} of {}", self.all)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            all,
            left_out,
            bumped,
            gone,
            failed,
        } = self;
        write!(
            f,
            "{kind}: {bumped} of {all} bumped, {left_out} skipped, {gone} gone meanwhile, {failed} failed"
        )
    }
}

#[cfg(test)]
mod tests;
