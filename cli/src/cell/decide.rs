//! What is to be done about one cell, by what the hub says of it. Pure.

use popcell_api::names::REMOVED_CELLS;
use popcell_core::{
    conditions::says,
    object::{Fields as _, Object},
    removed_cells::{Source, record_key, removed},
};

/// What was asked for, and what was found.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    /// Name of the Cluster.
    pub(super) name: &'a str,
    /// Uid of the cell's kube-system, where a person gave it.
    pub(super) given: Option<&'a str>,
    /// Whether a Ready Cluster is removed.
    pub(super) force: bool,
    /// The Cluster; `None` = NotFound.
    pub(super) cluster: Option<&'a Object>,
    /// The record of removed cells; `None` = NotFound.
    pub(super) record: Option<&'a Object>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Course {
    /// Key in the record, which every removed cell whose id is known has.
    pub(super) key: Option<String>,
    /// Whether the record has it already.
    pub(super) recorded: bool,
    /// What becomes of the Cluster.
    pub(super) cluster: Fate,
}

/// What becomes of the Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
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
pub(super) enum Refusal {
    /// The Cluster is Ready: its cell answers.
    Ready,
    /// Nothing of this name is there, or was removed.
    Unknown,
}

/// Decides. A Cluster whose id Karmada has not read yet has no cell that writes: deleting it is all there is to do.
pub(super) fn decide(seen: Seen<'_>) -> Result<Course, Refusal> {
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
pub(super) fn id_of(cluster: &Object) -> &str {
    cluster.text("/spec/id").unwrap_or_default()
}

fn has(record: &Object, key: &str) -> bool {
    record.at("/data").and_then(|data| data.get(key)).is_some()
}

impl Refusal {
    /// For people, with the fix. `known` are the Clusters that there are.
    pub(super) fn message(self, name: &str, known: &[String]) -> String {
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
