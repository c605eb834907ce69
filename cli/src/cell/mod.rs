//! `popcell cell`: what people decide about cells. `remove` declares a cell gone, so that the management plane deletes its claims and copies
//! (docs/decisions/08-cells-that-are-gone.md).
//!
//! Invariants: the record is written before the Cluster is deleted, so that an interrupted run leaves nothing half decided; an
//! entry of the record keeps its time; the Cluster that is deleted is the one that was looked at; nothing else is touched.

mod decide;

use std::io::Write as _;

use jiff::Timestamp;
use kube::api::{ApiResource, Patch};
use popcell_api::{kind, names::REMOVED_CELLS};
use popcell_core::{
    object::{Fields as _, Object},
    plan::{CONFIG_MAP, Precondition},
};
use serde_json::json;

use crate::{
    args::hub::{Cell, CellCommand, Remove},
    console::Console,
    exit::{Exit, Failure, Outcome},
    planes::{Answer, PlaneError, Server},
};
use decide::{Course, Fate, Refusal, Seen, decide, id_of};

/// Tries of a write that meets a newer object.
const TRIES: usize = 5;

/// Runs the command.
pub fn run(args: &Cell, console: &mut Console) -> Outcome {
    match &args.command {
        CellCommand::Remove(args) => crate::runtime()?.block_on(remove(args, console)),
    }
}

async fn remove(args: &Remove, console: &mut Console) -> Outcome {
    let hub = Server::open(&args.cluster).await?;
    let name = &args.name;
    let cluster = find(&hub, name).await?;
    let record = hub
        .get(&CONFIG_MAP.resource(), Some(&args.namespace), REMOVED_CELLS)
        .await?;
    let seen = Seen {
        name,
        given: args.id.as_deref(),
        force: args.force,
        cluster: cluster.as_ref(),
        record: record.as_ref(),
    };
    let course = match decide(seen) {
        Ok(course) => course,
        Err(refusal @ Refusal::Ready) => return Err(Failure::Failed(refusal.message(name, &[]))),
        Err(refusal @ Refusal::Unknown) => {
            return Err(Failure::Usage(refusal.message(name, &known(&hub).await?)));
        }
    };
    if args.dry_run {
        return would(args, &course, console);
    }
    record_it(args, &hub, &course, record.is_some(), console).await?;
    match (course.cluster, cluster) {
        (Fate::Delete, Some(cluster)) => {
            delete(&hub, cluster).await?;
            writeln!(console.out, "Cluster {name}: deleted")?;
        }
        (Fate::Leaving, _) => writeln!(
            console.out,
            "Cluster {name}: is being deleted, Karmada takes its Works away first"
        )?,
        (Fate::Other, _) => writeln!(console.out, "Cluster {name}: left, it is another cell")?,
        (Fate::Delete | Fate::Gone, _) => writeln!(console.out, "Cluster {name}: gone already")?,
    }
    writeln!(console.err, "{}", follows(args, &course))?;
    Ok(Exit::Success)
}

async fn find(hub: &Server, name: &str) -> Result<Option<Object>, PlaneError> {
    hub.get(&kind::CLUSTER.resource(), None, name).await
}

async fn known(hub: &Server) -> Result<Vec<String>, PlaneError> {
    let all = hub.metadata(&kind::CLUSTER.resource(), None, "").await?;
    let unreadable = all.unreadable.into_iter().map(|one| one.name);
    Ok(all
        .objects
        .iter()
        .map(|one| one.name().to_owned())
        .chain(unreadable)
        .collect())
}

fn would(args: &Remove, course: &Course, console: &mut Console) -> Outcome {
    let name = &args.name;
    if let (Some(key), false) = (&course.key, course.recorded) {
        let place = place(args);
        writeln!(console.err, "would record {key} in {place}")?;
    }
    if course.cluster == Fate::Delete {
        writeln!(console.err, "would delete Cluster {name}")?;
    }
    if course.recorded && course.cluster != Fate::Delete {
        writeln!(console.err, "nothing to do: cell {name} was removed before")?;
    }
    Ok(Exit::Success)
}

fn place(args: &Remove) -> String {
    format!("ConfigMap {}/{REMOVED_CELLS}", args.namespace)
}

async fn record_it(
    args: &Remove,
    hub: &Server,
    course: &Course,
    is_there: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let (name, place) = (&args.name, place(args));
    let Some(key) = &course.key else {
        return Ok(writeln!(
            console.err,
            "Cluster {name} has no spec.id, so no cell writes under its name, and there is nothing to record"
        )?);
    };
    if course.recorded {
        return Ok(writeln!(
            console.out,
            "cell {name}: recorded before, as {key} in {place}"
        )?);
    }
    write_record(args, hub, key, is_there).await?;
    Ok(writeln!(console.out, "cell {name}: recorded as {key} in {place}")?)
}

/// Adds an entry. Whoever makes or deletes the ConfigMap at the same moment changes nothing.
async fn write_record(args: &Remove, hub: &Server, key: &str, mut is_there: bool) -> Result<(), Failure> {
    let (resource, namespace): (ApiResource, _) = (CONFIG_MAP.resource(), args.namespace.as_str());
    let data = json!({ key: format!("{:.0}", Timestamp::now()) });
    let mut last = String::new();
    for _ in 0..TRIES {
        let answer = if is_there {
            let entry = Patch::Merge(json!({ "data": data }));
            hub.patch(&resource, Some(namespace), REMOVED_CELLS, &entry).await?
        } else {
            let record = json!({
                "apiVersion": CONFIG_MAP.api_version(), "kind": CONFIG_MAP.kind,
                "metadata": { "namespace": namespace, "name": REMOVED_CELLS }, "data": data,
            });
            hub.create(&resource, Some(namespace), REMOVED_CELLS, &record).await?
        };
        match answer {
            Answer::Done => return Ok(()),
            Answer::Gone => is_there = false,
            Answer::Changed(message) => {
                is_there = true;
                last = message;
            }
            Answer::Refused { code, message } => return Err(not_recorded(args, code, &message)),
        }
    }
    Err(not_recorded(args, 409, &last))
}

fn not_recorded(args: &Remove, code: u16, message: &str) -> Failure {
    let fix = match code {
        401 | 403 => "the user needs get, create and patch of ConfigMaps there, and get, list and delete of Clusters",
        404 => "create the namespace, or name the program's with --namespace",
        409 => "another client keeps modifying it: retry",
        _ => "look at what the hub says",
    };
    let place = place(args);
    Failure::Environment(format!(
        "failed to record cell {} in {place}: {code} {message}; {fix}. Its Cluster was not changed",
        args.name
    ))
}

/// Deletes the Cluster as the cell that it was when it was looked at.
async fn delete(hub: &Server, mut cluster: Object) -> Result<(), Failure> {
    let name = cluster.name().to_owned();
    let failed = |why: &str| {
        Failure::Environment(format!(
            "failed to delete Cluster {name} at {}: {why}; the cell is recorded: run the command again",
            hub.name()
        ))
    };
    for _ in 0..TRIES {
        let on = Precondition::of(&cluster);
        match hub.delete(&kind::CLUSTER.resource(), None, &name, &on).await? {
            Answer::Done | Answer::Gone => return Ok(()),
            Answer::Refused { code, message } => return Err(failed(&format!("{code} {message}"))),
            // Karmada writes its status all the time.
            Answer::Changed(_) => {}
        }
        match find(hub, &name).await? {
            Some(found) if found.uid() == cluster.uid() && id_of(&found) == id_of(&cluster) => cluster = found,
            Some(_) => return Err(failed("it has become another cell meanwhile")),
            None => return Ok(()),
        }
    }
    Err(failed("another client keeps modifying it"))
}

/// What others do now, for people.
fn follows(args: &Remove, course: &Course) -> String {
    let name = &args.name;
    let mut text = format!(
        "what follows: the management plane deletes the claims of cell {name} in every project, then its copies on the hub."
    );
    if matches!(course.cluster, Fate::Delete | Fate::Leaving) {
        text.push_str(
            " Karmada deletes what it brought to the cell where it reaches it, otherwise workloads there keep \
             running until they are deleted; Karmada reschedules its objects to the city's other Cluster.",
        );
    }
    if let Some(key) = &course.key {
        text.push_str(" To take the cell back: delete ");
        text.push_str(key);
        text.push_str(" from ");
        text.push_str(&place(args));
        text.push_str(", then join it again.");
    }
    text
}
