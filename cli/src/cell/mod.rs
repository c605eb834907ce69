//! `popcell cell`: what people decide about cells. `remove` declares a cell gone, so that the management plane deletes its
//! claims and copies (docs/decisions/08-cells-that-are-gone.md).
//!
//! Invariants: the record is written before the Cluster is deleted, so that an interrupted run leaves nothing half decided; an
//! entry of the record keeps its time; the Cluster that is deleted is the one that was looked at; nothing else is touched.

use std::io::Write as _;

use jiff::Timestamp;
use kube::api::Patch;
use popcell_api::{kind, names::REMOVED_CELLS};
use popcell_core::{
    conditions::says,
    object::{Fields as _, Object},
    plan::{CONFIG_MAP, Precondition},
    removed_cells::{Source, record_key, removed},
};
use serde_json::json;

use crate::{
    args::planes::{Cell, CellCommand, Remove},
    console::Console,
    exit::{Exit, Failure, Outcome},
    planes::{Answer, Objects, PlaneError, Server, Write},
};

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
    let record = records(&hub, args).get(REMOVED_CELLS).await?;
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

fn records<'a>(hub: &'a Server, args: &Remove) -> Objects<'a> {
    hub.at(CONFIG_MAP, Some(&args.namespace))
}

async fn find(hub: &Server, name: &str) -> Result<Option<Object>, PlaneError> {
    hub.at(kind::CLUSTER, None).get(name).await
}

async fn known(hub: &Server) -> Result<Vec<String>, PlaneError> {
    let all = hub.at(kind::CLUSTER, None).metadata("").await?;
    let readable = all.objects.iter().map(|one| one.name().to_owned());
    Ok(readable.chain(all.unreadable.into_iter().map(|one| one.name)).collect())
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
    let records = records(hub, args);
    let data = json!({ key: format!("{:.0}", Timestamp::now()) });
    let mut last = String::new();
    for _ in 0..TRIES {
        let answer = if is_there {
            let entry = Patch::Merge(json!({ "data": data }));
            records.write(REMOVED_CELLS, Write::Patch(&entry)).await?
        } else {
            let record = json!({
                "apiVersion": CONFIG_MAP.api_version(), "kind": CONFIG_MAP.kind,
                "metadata": { "namespace": args.namespace, "name": REMOVED_CELLS }, "data": data,
            });
            records.write(REMOVED_CELLS, Write::Create(&record)).await?
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
        _ => "see the log of the hub's API server",
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
        match hub.at(kind::CLUSTER, None).write(&name, Write::Delete(&on)).await? {
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

/// What the management plane and Karmada do next, for people.
fn follows(args: &Remove, course: &Course) -> String {
    let name = &args.name;
    let mut text = format!(
        "next: the management plane deletes the claims of cell {name} in every project, then its copies on the hub."
    );
    if matches!(course.cluster, Fate::Delete | Fate::Leaving) {
        text.push_str(
            " Karmada deletes what it brought to the cell where it reaches it, otherwise workloads there keep \
             running until they are deleted; Karmada reschedules its objects to the city's other Cluster.",
        );
    }
    if let Some(key) = &course.key {
        let back = format!(
            " To take the cell back: delete {key} from {}, then join it again.",
            place(args)
        );
        text.push_str(&back);
    }
    text
}

/// What was asked for, and what was found.
#[derive(Clone, Copy)]
struct Seen<'a> {
    /// Name of the Cluster.
    name: &'a str,
    /// Uid of the cell's kube-system, where a person gave it.
    given: Option<&'a str>,
    /// Whether a Ready Cluster is removed.
    force: bool,
    /// The Cluster; `None` = NotFound.
    cluster: Option<&'a Object>,
    /// The record of removed cells; `None` = NotFound.
    record: Option<&'a Object>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Course {
    /// Key in the record, which every removed cell whose id is known has.
    key: Option<String>,
    /// Whether the record has it already.
    recorded: bool,
    /// What becomes of the Cluster.
    cluster: Fate,
}

/// What becomes of the Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is deleted.
    Delete,
    /// It is on its way out.
    Leaving,
    /// There is none.
    Gone,
    /// It is another cell's, and stays.
    Other,
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The Cluster is Ready: its cell answers.
    Ready,
    /// Nothing of this name is there, or was removed.
    Unknown,
}

/// Decides. A Cluster whose id Karmada has not read yet has no cell that writes: deleting it is all there is to do.
fn decide(seen: Seen<'_>) -> Result<Course, Refusal> {
    let living = |cluster: &Object| match seen.given {
        Some(id) => id == id_of(cluster) || id_of(cluster).is_empty(),
        None => true,
    };
    let fate = match seen.cluster {
        None => Fate::Gone,
        Some(cluster) if !living(cluster) => Fate::Other,
        Some(cluster) if says(cluster, "Ready", "True") && !seen.force => return Err(Refusal::Ready),
        Some(cluster) if cluster.deleting() => Fate::Leaving,
        Some(_) => Fate::Delete,
    };
    let of_cluster = seen.cluster.map(id_of).filter(|id| !id.is_empty());
    let recorded = |key: &str| seen.record.is_some_and(|record| has(record, key));
    if let Some(id) = seen.given.or(of_cluster) {
        let key = record_key(Source { name: seen.name, id });
        return Ok(Course {
            recorded: recorded(&key),
            key: Some(key),
            cluster: fate,
        });
    }
    let before = seen.record.and_then(|record| {
        let mut of_name = removed(record).filter(|source| source.name == seen.name);
        of_name.next().map(record_key)
    });
    if fate == Fate::Gone && before.is_none() {
        return Err(Refusal::Unknown);
    }
    let key = before.filter(|_| fate == Fate::Gone);
    Ok(Course {
        recorded: key.is_some(),
        key,
        cluster: fate,
    })
}

/// `spec.id`; empty until Karmada has read it.
fn id_of(cluster: &Object) -> &str {
    cluster.text("/spec/id").unwrap_or_default()
}

fn has(record: &Object, key: &str) -> bool {
    record.at("/data").and_then(|data| data.get(key)).is_some()
}

impl Refusal {
    /// For people, with the fix. `known` are the Clusters that there are.
    fn message(self, name: &str, known: &[String]) -> String {
        match self {
            Self::Ready => format!(
                "Cluster {name} is Ready, so its cell answers: nothing was done. Where the cell is down, wait until Karmada has \
                 noticed. To take a cell out of service that still runs, give --force: Karmada then deletes there what it \
                 brought, and the cell's claims are released. Let its controller run until no WorkloadDeployment is left there"
            ),
            Self::Unknown => {
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                format!(
                    "no Cluster {name} is on the hub, and ConfigMap {REMOVED_CELLS} names no cell {name} that was removed \
                     (Clusters that are there: {known}). A cell whose Cluster is gone is removed by its id: give --id, the uid of \
                     its kube-system namespace"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
