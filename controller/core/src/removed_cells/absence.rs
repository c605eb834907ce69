//! Cells whose Cluster is absent, or another cell's, and that is not declared removed: since when that is so.
//!
//! A hub that was restored from a backup older than a cell's join has no such Cluster, and neither has one on which an
//! operator unjoins a cell to join it again. Both come back. So an absence is noted first, in the ConfigMap
//! `popcell-absent-cells` on the hub, and what the cell has is released when the grace is over; a Cluster that is back takes
//! its note away.
//!
//! Sources are what objects say of themselves, which a stolen cell or a project may choose. So only what can be a cell is noted,
//! and not too much of it: what one writes must not keep the absence of others from being noted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use popcell_api::names::ABSENT_CELLS;
use serde_json::{Map, Value, json};

use super::{Source, is_gone, record_key};
use crate::conditions::{age, seconds};
use crate::edit;
use crate::names::is_dns_label;
use crate::object::Object;
use crate::observed::Observed;
use crate::plan::{Action, Plan, Plane};

/// How long the Cluster of a cell must have been absent before what the cell has is released (default of `--cell-grace`).
pub const CELL_GRACE: Duration = Duration::from_hours(1);

/// Most sources of one name that are noted: a cell that was set up again has another id each time.
const OF_A_NAME: usize = 16;
/// Most that are noted. Each takes less than 200 bytes, so that the ConfigMap stays below the size that one object may have.
const ALL: usize = 1024;

/// Which notes stay first, where there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its grace runs, or something of it is looked for.
    Noted,
    New,
    Over,
}

/// How sources stand that are only absent. Where the notes were not read, none is noted.
#[derive(Clone, Debug, Default)]
pub struct Graces<'a> {
    /// What is left of the grace of those that are noted.
    pub(super) left: BTreeMap<Source<'a>, Duration>,
    /// Those that are not noted, nor going to be: no cell can have such a name or id, or there are too many.
    pub(super) misplaced: BTreeSet<Source<'a>>,
}

impl Graces<'_> {
    /// What is left of the grace of a source; `None` where its absence is not noted yet.
    pub fn left(&self, source: Source<'_>) -> Option<Duration> {
        self.left.get(&source).copied()
    }

    /// Whether the absence of a source is never noted.
    pub fn is_misplaced(&self, source: Source<'_>) -> bool {
        self.misplaced.contains(&source)
    }
}

/// The notes, read live.
#[derive(Clone, Copy, Debug)]
pub struct Absences<'a> {
    /// The ConfigMap; `None` = NotFound.
    pub record: Option<&'a Object>,
    /// Its namespace: the program's.
    pub namespace: &'a str,
    /// See [`CELL_GRACE`].
    pub grace: Duration,
    /// The time of the reconcile.
    pub now: Timestamp,
}

impl Absences<'_> {
    /// Notes these sources in a plan, which comes again when their graces are over.
    pub fn review<'s>(&self, absent: &BTreeSet<Source<'s>>, clusters: &[&Object], plan: &mut Plan) -> Graces<'s> {
        plan.actions.extend(self.note(absent, clusters));
        let left: BTreeMap<Source<'s>, Duration> = absent
            .iter()
            .filter_map(|source| Some((*source, self.left(*source)?)))
            .collect();
        if left.len() < absent.len() {
            plan.requeue_within(self.grace);
        }
        Graces {
            left,
            misplaced: self.misplaced(absent, clusters),
        }
    }

    fn left(&self, source: Source<'_>) -> Option<Duration> {
        let key = record_key(source);
        let since: Timestamp = edit::data(self.record)?.get(&key)?.as_str()?.parse().ok()?;
        Some(self.grace.saturating_sub(age(since, self.now)))
    }

    /// Whether the grace of any source runs: a record of its removal would end it early.
    pub fn runs(&self) -> bool {
        let keys = edit::data(self.record).into_iter().flat_map(Map::keys);
        let mut sources = keys.filter_map(|key| super::of_record_key(key));
        sources.any(|source| self.left(source).is_some_and(|left| !left.is_zero()))
    }

    fn misplaced<'s>(&self, absent: &BTreeSet<Source<'s>>, clusters: &[&Object]) -> BTreeSet<Source<'s>> {
        let notes = self.notes(absent, clusters);
        let is_noted = |source: &&Source<'_>| notes.contains_key(&record_key(**source));
        absent.iter().filter(|source| !is_noted(source)).copied().collect()
    }

    /// The notes as they are to be: these sources, and what is noted of others that are still absent. Where there are too many
    /// the oldest stay.
    fn notes(&self, absent: &BTreeSet<Source<'_>>, clusters: &[&Object]) -> Map<String, Value> {
        let old = edit::data(self.record);
        let noted = old
            .into_iter()
            .flat_map(Map::keys)
            .filter_map(|key| super::of_record_key(key));
        let all: BTreeSet<Source<'_>> = noted.chain(absent.iter().copied()).collect();
        let mut ranked: Vec<_> = all
            .into_iter()
            .filter(|source| is_dns_label(source.name) && is_dns_label(source.id))
            .filter(|source| is_gone(*source, Observed::Known(clusters), false) == Some(true))
            .filter_map(|source| match self.left(source) {
                Some(left) if left.is_zero() && !absent.contains(&source) => Some((Rank::Over, left, source)),
                Some(left) => Some((Rank::Noted, left, source)),
                None => absent.contains(&source).then_some((Rank::New, self.grace, source)),
            })
            .collect();
        ranked.sort();
        let mut of_name: BTreeMap<&str, usize> = BTreeMap::new();
        let fits = ranked.into_iter().map(|(_, _, source)| source).filter(|source| {
            let count = of_name.entry(source.name).or_default();
            *count += 1;
            *count <= OF_A_NAME
        });
        let since = |key: &str| old.and_then(|old| old.get(key)).cloned();
        fits.take(ALL)
            .map(|source| {
                let key = record_key(source);
                let since = self.left(source).and_then(|_| since(&key));
                (key, since.unwrap_or_else(|| json!(seconds(self.now))))
            })
            .collect()
    }

    /// Notes these sources, and takes away the notes of those whose Cluster is there; `None` where all is noted.
    fn note(&self, absent: &BTreeSet<Source<'_>>, clusters: &[&Object]) -> Option<Action> {
        let data = self.notes(absent, clusters);
        edit::config_map(&Plane::Hub, self.record, self.namespace, ABSENT_CELLS, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Fields;
    use crate::plan::CONFIG_MAP;
    use crate::testing::{FakeServers, object};

    const DFW: Source<'static> = Source {
        name: "dfw-01",
        id: "k1",
    };
    const NOON: &str = "2026-01-01T12:00:00Z";

    fn cluster(id: &str) -> Object {
        object(json!({ "metadata": { "name": "dfw-01" }, "spec": { "id": id } }))
    }

    fn at(servers: &FakeServers, now: &str, view: impl FnOnce(&Absences<'_>) -> Option<Action>) -> Plan {
        let found = servers.get(&Plane::Hub, CONFIG_MAP, "compute-system", ABSENT_CELLS);
        let action = view(&Absences {
            record: found,
            namespace: "compute-system",
            grace: CELL_GRACE,
            now: now.parse().unwrap(),
        });
        Plan {
            actions: action.into_iter().collect(),
            ..Plan::default()
        }
    }

    fn left(servers: &FakeServers, now: &str) -> Option<Duration> {
        let mut found = None;
        at(servers, now, |seen| {
            found = seen.left(DFW);
            None
        });
        found
    }

    fn runs(servers: &FakeServers, now: &str) -> bool {
        let mut found = false;
        at(servers, now, |seen| {
            found = seen.runs();
            None
        });
        found
    }

    #[test]
    fn an_absence_is_noted_once_and_counts_from_then() {
        let mut servers = FakeServers::default();
        assert_eq!(left(&servers, NOON), None);
        let absent = BTreeSet::from([DFW]);
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        assert_eq!(left(&servers, NOON), Some(CELL_GRACE));
        servers.settle(|servers| at(servers, "2026-01-01T12:20:00Z", |seen| seen.note(&absent, &[])));
        assert_eq!(left(&servers, "2026-01-01T12:20:00Z"), Some(Duration::from_mins(40)));
        assert_eq!(left(&servers, "2026-01-01T13:00:00Z"), Some(Duration::ZERO));
        assert!(runs(&servers, NOON) && runs(&servers, "2026-01-01T12:59:59Z"));
        assert!(!runs(&servers, "2026-01-01T13:00:00Z") && !runs(&FakeServers::default(), NOON));
        // A clock that is behind makes it no shorter.
        assert_eq!(left(&servers, "2026-01-01T11:00:00Z"), Some(CELL_GRACE));
    }

    #[test]
    fn a_cluster_that_is_back_has_its_whole_grace_again() {
        let mut servers = FakeServers::default();
        let absent = BTreeSet::from([DFW]);
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        // Another cell under its name, or one whose id Karmada has not read yet: only the first is an absence.
        for (id, noted) in [("k9", true), ("", false)] {
            let mut servers = servers.clone();
            servers.settle(|servers| at(servers, NOON, |seen| seen.note(&BTreeSet::new(), &[&cluster(id)])));
            assert_eq!(left(&servers, NOON).is_some(), noted, "id {id:?}");
        }
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&BTreeSet::new(), &[&cluster("k1")])));
        assert_eq!(left(&servers, NOON), None);
    }

    #[test]
    fn what_one_name_says_keeps_no_other_absence_from_being_noted() {
        let ids: Vec<String> = (0..4000)
            .map(|number| format!("{number:04}-{}", "x".repeat(50)))
            .collect();
        let names: Vec<String> = (0..4000).map(|number| format!("cell-{number:04}")).collect();
        let thiefs = ids.iter().map(|id| Source { name: "ord-01", id });
        let odd = ["a b", "", "x_y", "ü", "-"].map(|id| Source { name: "lhr-01", id });
        let tenants = names.iter().map(|name| Source { name, id: "k" });
        let mut absent: BTreeSet<Source<'_>> = thiefs.chain(odd).collect();
        let mut servers = FakeServers::default();
        let data = |servers: &FakeServers| {
            let record = servers
                .get(&Plane::Hub, CONFIG_MAP, "compute-system", ABSENT_CELLS)
                .unwrap();
            record.at("/data").unwrap().as_object().unwrap().clone()
        };
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        assert_eq!(data(&servers).len(), OF_A_NAME);
        absent.insert(DFW);
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        assert_eq!(
            (data(&servers).len(), left(&servers, NOON)),
            (OF_A_NAME + 1, Some(CELL_GRACE))
        );
        at(&servers, NOON, |seen| {
            let misplaced = seen.misplaced(&absent, &[]);
            assert_eq!(misplaced.len(), absent.len() - OF_A_NAME - 1);
            assert!(!misplaced.contains(&DFW) && odd.iter().all(|one| misplaced.contains(one)));
            None
        });
        // However many there are in all, the ConfigMap stays one that can be written and read.
        absent.extend(tenants);
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        assert_eq!(data(&servers).len(), ALL);
        assert!(serde_json::to_string(&data(&servers)).unwrap().len() < 200 * ALL);
        assert_eq!(left(&servers, NOON), Some(CELL_GRACE));
        // What is over, and looked for no more, makes room.
        let another = BTreeSet::from([Source {
            name: "ord-01",
            id: "another",
        }]);
        let later = "2026-01-01T14:00:00Z";
        servers.settle(|servers| at(servers, later, |seen| seen.note(&another, &[])));
        assert!(data(&servers).contains_key("ord-01_another"));
        assert_eq!(data(&servers).len(), ALL);
    }

    #[test]
    fn a_note_that_cannot_be_read_is_made_again() {
        let mut servers = FakeServers::default();
        let damaged = object(
            json!({ "metadata": { "name": ABSENT_CELLS, "namespace": "compute-system", "uid": "u",
            "resourceVersion": "1" }, "data": { "dfw-01_k1": "yesterday", "nonsense": "" } }),
        );
        servers.put(&Plane::Hub, CONFIG_MAP, damaged);
        assert_eq!(left(&servers, NOON), None);
        let absent = BTreeSet::from([DFW]);
        servers.settle(|servers| at(servers, NOON, |seen| seen.note(&absent, &[])));
        assert_eq!(left(&servers, NOON), Some(CELL_GRACE));
    }
}
