//! Gauges that are computed when they are asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::CLUSTER;
use popcell_api::names::LEASE;
use popcell_core::metrics::{self as table, plane_kind};
use popcell_core::object::Fields;
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use popcell_core::sources;

use crate::apply::MayWrite;
use crate::memory::Counts;
use crate::metrics::{Metrics, observe_planes, observe_queue};
use crate::reconcilers::Lane;
use crate::world::World;

type Rows = Vec<(Vec<String>, f64)>;

/// Adds what the world and its queues tell.
pub(super) fn add(metrics: &Metrics, world: Arc<World>, lanes: Vec<Lane>, may_write: MayWrite) {
    metrics.before_scrape(Box::new(move |metrics| {
        let leads = may_write();
        let leading = f64::from(u8::from(leads));
        metrics.set(&table::LEADER, &[], leading);
        metrics.set(&table::MASTER, &[LEASE], leading);
        for lane in lanes.iter().filter(|_| leads) {
            observe_queue(metrics, lane.reconciler.name(), &lane.queue.stats());
        }
        let stats = world.planes.stats();
        let excessive = stats.excessive_by_plane.iter();
        let excessive = excessive.map(|(plane, count)| (vec![plane.to_string()], number(*count)));
        metrics.replace(&table::OVER_LIMIT, excessive.collect());
        observe_planes(metrics, &stats);
        observe_world(metrics, &world, stats.unreadable_by_sort);
    }));
}

fn observe_world(metrics: &Metrics, world: &World, mut unreadable: Counts) {
    let tallied = world.tallied();
    for (sort, count) in &tallied.undecodable {
        *unreadable.entry(*sort).or_default() += count;
    }
    metrics.replace(&table::UNDECODABLE, rows(&unreadable));
    metrics.replace(&table::SKEW, rows(&tallied.skews));
    metrics.replace(&table::ORPHANS, by_kind(&tallied.orphans, &[]));
    metrics.replace(&table::FOREIGN, by_kind(&tallied.foreign, &["Foreign"]));
    let brakes = world.applier.brakes();
    let held = brakes
        .held()
        .map(|(plane, kind)| (vec![plane.to_string(), kind.to_owned()], 1.0));
    metrics.replace(&table::BRAKE, held.collect());
    drop(brakes);
    metrics.replace(&table::OLDEST_DELETION, oldest_deletions(world, Timestamp::now()));
    let clusters = match world.planes.get(&Plane::Hub) {
        Some(hub) => hub.store(CLUSTER).map_or(Observed::Unknown, |store| store.all()),
        None => Observed::Unknown,
    };
    if let Observed::Known(clusters) = clusters {
        let clusters = crate::world::refs(&clusters);
        let crowded = sources::crowded_cities(&clusters).len();
        metrics.set(&table::CITY_CLUSTERS, &[], number(crowded));
        let twins = sources::twins(&clusters).into_values().map(|names| names.len()).sum();
        metrics.set(&table::CELL_TWINS, &[], number(twins));
        let silent = clusters.iter().filter_map(|cluster| {
            let since = sources::silent_since(cluster)?;
            Some((
                vec![cluster.name().to_owned()],
                age(since, Timestamp::now()).as_secs_f64(),
            ))
        });
        metrics.replace(&table::STATUS_AGE, silent.collect());
    }
}

/// Ages by kind of plane and kind: one series for each, whatever the number of projects.
fn oldest_deletions(world: &World, now: Timestamp) -> Rows {
    let mut oldest: BTreeMap<(&'static str, &'static str), Duration> = BTreeMap::new();
    for plane in world.planes.planes() {
        let Some(engaged) = world.planes.get(&plane) else {
            continue;
        };
        for (kind, store) in engaged.stores() {
            let Observed::Known(objects) = store.all() else {
                continue;
            };
            let deletions = objects
                .iter()
                .filter_map(|one| one.metadata.deletion_timestamp.as_ref());
            if let Some(age) = deletions.map(|since| age(since.0, now)).max() {
                let known = oldest.entry((plane_kind(&plane), kind.kind)).or_default();
                *known = age.max(*known);
            }
        }
    }
    let rows = oldest.into_iter();
    rows.map(|((plane, kind), age)| (vec![plane.to_owned(), kind.to_owned()], age.as_secs_f64()))
        .collect()
}

/// A clock that is behind sees the future: that is no age at all.
fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

fn rows(counts: &Counts) -> Rows {
    let rows = counts.iter();
    rows.map(|((plane, kind), count)| (vec![(*plane).to_owned(), (*kind).to_owned()], number(*count)))
        .collect()
}

fn by_kind(counts: &Counts, more: &[&str]) -> Rows {
    let mut summed: BTreeMap<&str, usize> = BTreeMap::new();
    for ((_, kind), count) in counts {
        *summed.entry(kind).or_default() += count;
    }
    let labels = |kind: &str| [&[kind], more].concat().into_iter().map(str::to_owned).collect();
    summed
        .into_iter()
        .map(|(kind, count)| (labels(kind), number(count)))
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}
