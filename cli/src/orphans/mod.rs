//! `popcell orphans`: orphaned objects on the hub, which no project accounts for any more
//! (docs/decisions/14-orphans.md).
//!
//! Invariants: what is an orphan is the controller's own decision ([`popcell_core::orphans`]) on live answers only; what
//! belongs to a project that cannot be asked is never deleted; each delete is proven right before it is sent, and carries
//! uid and resourceVersion; a server that may be the wrong one is not believed, and nothing is written beside what was
//! agreed to.

mod census;
mod planes;
mod row;
mod subject;

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use popcell_core::{
    object::{Fields as _, Listed},
    plan::{Action, NAMESPACE, Plane, Target},
};

use crate::{
    args::{ListFormat, planes::Orphans},
    console::Console,
    exit::{Exit, Failure, Outcome as Ended},
};
use census::Census;
use planes::{Outcome, Planes};
use row::{OrphanState, Row, rows};
use subject::{Standing, Subject};

/// Between two looks while something is on its way out.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: &Orphans, console: &mut Console) -> Ended {
    let asks = args.delete && args.yes.is_none() && !args.dry_run;
    if asks && !std::io::stdin().is_terminal() {
        let text =
            "stdin is not a terminal: confirm with --yes=COUNT, the number of orphans in the list; --dry-run prints it";
        return Err(Failure::Usage(text.to_owned()));
    }
    crate::runtime()?.block_on(orphans(args, asks, console))
}

async fn orphans(args: &Orphans, asks: bool, console: &mut Console) -> Ended {
    let planes = Planes::open(args).await?;
    let namespaces = planes.namespaces().await?;
    let doubt = doubt(planes.census(&namespaces.objects), args.projects_gone)?;
    let strange = unreadable(&namespaces, args.namespace.as_deref());
    let subjects = planes.look(namespaces.objects, args.namespace.as_deref()).await?;
    let mut found = all_rows(&subjects);
    found.extend(strange);
    if let (Some(name), []) = (&args.namespace, found.as_slice())
        && subjects.is_empty()
    {
        writeln!(console.err, "no namespace {name} with our marker is on the hub")?;
    }
    if args.output == ListFormat::Text {
        row::table(&found, Timestamp::now(), &mut console.out)?;
        writeln!(console.err, "{}", row::summary(&found))?;
    }
    if let Some(wrong) = doubt.or_else(|| wrong_server(&subjects)) {
        if args.delete {
            return Err(Failure::Usage(wrong));
        }
        writeln!(console.err, "warning: {wrong}")?;
    }
    let agreed = orphaned(&found);
    let deletes = args.delete && !agreed.is_empty();
    if deletes && args.dry_run {
        would(args, &subjects, console)?;
        writeln!(console.err, "to delete all {0} orphans: --yes={0}", agreed.len())?;
    }
    if deletes && !args.dry_run {
        check_count(args.yes, agreed.len())?;
    }
    if !deletes || args.dry_run || (asks && !confirmed(agreed.len(), planes.hub.name(), console)?) {
        if args.output == ListFormat::Json {
            writeln!(console.out, "{:#}", row::json(planes.hub.name(), &found, None))?;
        }
        return Ok(orphan_state(&found));
    }
    let (done, left) = clean(args, &planes, subjects, &agreed, console).await?;
    match args.output {
        ListFormat::Json => writeln!(console.out, "{:#}", row::json(planes.hub.name(), &found, Some(&done)))?,
        ListFormat::Text => writeln!(console.err, "left: {}", row::summary(&left))?,
    }
    Ok(orphan_state(&left))
}

/// What is deleted: nothing that the list does not name.
fn orphaned(rows: &[Row]) -> Vec<Target> {
    let orphans = rows.iter().filter(|row| row.orphan_state == OrphanState::Orphan);
    orphans.map(|row| row.target.clone()).collect()
}

/// Who says how many they expect is refused where there are more or fewer: a script was written for another state.
fn check_count(expected: Option<usize>, found: usize) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != found => Err(Failure::Usage(format!(
            "--yes={expected} was given, and {found} objects are orphans: nothing was deleted; read the list, then confirm with \
             --yes={found}"
        ))),
        _ => Ok(()),
    }
}

/// Why discovery is not believed where it says that projects are gone.
fn doubt(census: Option<(Census, &str)>, agreed: Option<usize>) -> Result<Option<String>, Failure> {
    match census {
        Some((census, server)) => {
            census.check(agreed)?;
            Ok(census.wrong(server, agreed))
        }
        None if agreed.is_some() => Err(Failure::Usage(
            "--projects-gone is for --mode milo: in mode single no discovery server reports removed projects"
                .to_owned(),
        )),
        None => Ok(None),
    }
}

/// Why the kubeconfig of the project cannot be the right one: nothing on the hub is of its server.
fn wrong_server(subjects: &[Subject]) -> Option<String> {
    let is_of_it = |one: &Subject| matches!(one.standing(), Standing::Current | Standing::Outlived);
    if subjects.iter().any(is_of_it) {
        return None;
    }
    let doubtful = |one: &&Subject| matches!(one.standing(), Standing::Elsewhere | Standing::Unproven);
    let first = subjects.iter().find(doubtful)?;
    let why = row::why(first);
    Some(format!(
        "--project-kubeconfig leads to a server that nothing on the hub is of, so nothing can be deleted on its word. Namespace \
         {}: {why}. Give the kubeconfig of the project; if its old server is lost for good, set the annotation to the uid of \
         kube-system of this server",
        first.namespace.name()
    ))
}

/// Namespaces of ours that cannot be read; what is in them is not looked at.
fn unreadable(namespaces: &Listed, only: Option<&str>) -> Vec<Row> {
    let all = namespaces.unreadable.iter();
    let meant = all.filter(|one| only.is_none_or(|only| only == one.name));
    meant
        .map(|one| row::unreadable(Target::cluster(&Plane::Hub, NAMESPACE, &one.name), "", &one.why))
        .collect()
}

fn all_rows(subjects: &[Subject]) -> Vec<Row> {
    let now = Timestamp::now();
    subjects.iter().flat_map(|subject| rows(subject, now)).collect()
}

/// An orphan is a failed check; a project that cannot be asked is a failed cluster.
fn orphan_state(rows: &[Row]) -> Exit {
    let has = |orphan_state| rows.iter().any(|row| row.orphan_state == orphan_state);
    if has(OrphanState::Orphan) || has(OrphanState::Kept) {
        Exit::Failed
    } else if has(OrphanState::Unknown) {
        Exit::Environment
    } else {
        Exit::Success
    }
}

/// What --delete would send now; what waits for it, and what waits for the time of grace, is in the list only.
fn would(args: &Orphans, subjects: &[Subject], console: &mut Console) -> Result<(), Failure> {
    for subject in subjects {
        for action in wanted(args, subject) {
            writeln!(console.err, "would {}", row::intent(&action))?;
        }
    }
    Ok(())
}

fn wanted(args: &Orphans, subject: &Subject) -> Vec<Action> {
    let mut actions = subject.plan(args.project_grace, Timestamp::now()).actions;
    // That a project is back is for the controller to note.
    actions.retain(|action| matches!(action, Action::Delete(_)) || subject.standing() == Standing::Gone);
    actions
}

fn confirmed(count: usize, server: &str, console: &mut Console) -> Result<bool, Failure> {
    write!(console.err, "Delete {count} objects at {server}? [y/N] ")?;
    console.err.flush()?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the line is not ours to read.
    BufReader::with_capacity(1, &mut console.stdin)
        .read_until(b'\n', &mut answer)
        .map_err(|error| Failure::Environment(format!("failed to read the answer: {error}")))?;
    let answer = String::from_utf8_lossy(&answer).trim().to_ascii_lowercase();
    let yes = answer == "y" || answer == "yes";
    if !yes {
        writeln!(console.err, "nothing was deleted")?;
    }
    Ok(yes)
}

/// Deletes what was agreed to and can be deleted, looks again, and goes on while that changes something. Gives what was
/// done, and what is left.
async fn clean(
    args: &Orphans,
    planes: &Planes,
    mut subjects: Vec<Subject>,
    agreed: &[Target],
    console: &mut Console,
) -> Result<(Vec<(Target, Outcome)>, Vec<Row>), Failure> {
    let end = Instant::now().checked_add(args.wait);
    let mut done: Vec<(Target, Outcome)> = Vec::new();
    loop {
        let mut again = false;
        for subject in &subjects {
            let actions = wanted(args, subject).into_iter();
            for action in actions.filter(|action| is_agreed(action, agreed)) {
                let outcome = planes.carry_out(&action).await;
                let outcome = outcome.unwrap_or_else(|error| Outcome::Left(error.to_string()));
                let is_over = matches!(outcome, Outcome::Left(_));
                again |= !is_over;
                if keep(&mut done, action.target(), &outcome) && args.output == ListFormat::Text {
                    writeln!(console.out, "{}", row::outcome(action.target(), &outcome))?;
                }
                if is_over {
                    // What follows in the plan may rest on it.
                    break;
                }
            }
            again |= subject.is_moving() && matches!(subject.standing(), Standing::Outlived | Standing::Gone);
        }
        let is_late = end.is_none_or(|end| Instant::now() >= end);
        if again && !is_late {
            tokio::time::sleep(PAUSE).await;
        }
        let of_interest: BTreeSet<String> = subjects.iter().map(|one| one.namespace.name().to_owned()).collect();
        let namespaces = planes.namespaces().await?;
        let strange = unreadable(&namespaces, args.namespace.as_deref());
        subjects = planes.look(namespaces.objects, args.namespace.as_deref()).await?;
        // Objects that came since were not shown, so their deletion was not confirmed.
        subjects.retain(|one| of_interest.contains(one.namespace.name()));
        if !again || is_late {
            let left = all_rows(&subjects).into_iter().chain(strange);
            return Ok((done, left.collect()));
        }
    }
}

/// Whether an action deletes something of the list, or notes the end of the project of which something in the list is.
fn is_agreed(action: &Action, agreed: &[Target]) -> bool {
    let target = action.target();
    let is_within = |one: &Target| one.namespace.as_deref() == Some(&target.name);
    match action {
        Action::Delete(_) => agreed.contains(target),
        _ => agreed.iter().any(|one| one == target || is_within(one)),
    }
}

/// Notes what became of an object. Whether that is news.
fn keep(done: &mut Vec<(Target, Outcome)>, target: &Target, outcome: &Outcome) -> bool {
    if let Some((_, known)) = done.iter_mut().find(|(known, _)| known == target) {
        return *outcome != std::mem::replace(known, outcome.clone());
    }
    done.push((target.clone(), outcome.clone()));
    true
}

#[cfg(test)]
mod tests;
