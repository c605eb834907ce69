//! `sources`: what cells that are gone have left; see [`popcell_core::sources`].

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_api::names::REMOVED_CELLS;
use popcell_core::object::Object;
use popcell_core::observed::Observed;
use popcell_core::plan::{Plan, Plane, Target};
use popcell_core::sources::{self, Observation, Source};

use super::events;
use crate::apply::{ApplyError, CONFIG_MAP};
use crate::pass::{Live, Reconciler, Sight, refs};
use crate::planes::Change;
use crate::queue::Key;
use crate::world::World;

/// Key: name of a Karmada Cluster, whatever its id: of that name all sources that are gone. Without a name, those of the
/// record of removed cells.
#[derive(Clone, Copy, Debug)]
pub struct Sources;

const RECORDED: &str = "";

impl Sources {
    async fn read(world: &World, live: &mut Live, key: &Key) -> Result<(), ApplyError> {
        let found = found_sources(&Sight::new(world, live), key);
        if found.is_empty() && key.name != RECORDED {
            return Ok(());
        }
        let record = world.applier.removed_cells().await?;
        live.put(&record_target(), record);
        let names: BTreeSet<String> = gone(&Sight::new(world, live), key)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for name in names {
            for project in events::projects(world) {
                let selector = format!("{}={name}", labels::SOURCE_CLUSTER);
                let claims = match world
                    .applier
                    .list(&project, kind::RESOURCE_CLAIM, None, &selector)
                    .await
                {
                    Ok(claims) => claims,
                    // The project has no quota.
                    Err(error) if error.is_not_found() => Vec::new(),
                    Err(error) => return Err(error),
                };
                for claim in claims {
                    live.put(&Target::of(&project, kind::RESOURCE_CLAIM, &claim), Some(claim));
                }
            }
        }
        Ok(())
    }
}

fn record_target() -> Target {
    Target::namespaced(&Plane::Hub, CONFIG_MAP, "", REMOVED_CELLS)
}

impl Reconciler for Sources {
    fn name(&self) -> &'static str {
        "sources"
    }

    fn prepare<'a>(
        &'a self,
        world: &'a World,
        live: &'a mut Live,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(Self::read(world, live, key))
    }

    fn decide(&self, sight: &Sight<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let clusters = sight.all(&Plane::Hub, kind::CLUSTER);
        let clusters = clusters.as_ref().map(|all| refs(all));
        let copies = sight.all(&Plane::Hub, kind::INSTANCE).known()?;
        let copies = refs(&copies);
        let claims = sight.live_of(kind::RESOURCE_CLAIM);
        let claims: Vec<(&str, &Object)> = claims
            .iter()
            .filter_map(|(plane, claim)| match plane {
                Plane::Project(id) => Some((id.as_str(), claim.as_ref())),
                Plane::Hub | Plane::Cell => None,
            })
            .collect();
        let mut plan = Plan::independent();
        for (name, id) in gone(sight, key) {
            let cleaned = sources::clean(&Observation {
                source: Source { name: &name, id: &id },
                clusters: clusters.as_ref().map(Vec::as_slice),
                removed: is_removed(sight, &name, &id),
                claims: &claims,
                copies: &copies,
            });
            plan.actions.extend(cleaned.actions);
            plan.notes.extend(cleaned.notes);
        }
        // Claims are not watched here: copies go when no claim is left.
        if plan
            .actions
            .iter()
            .any(|action| action.target().kind == kind::RESOURCE_CLAIM)
        {
            plan.requeue_within(std::time::Duration::from_secs(1));
        }
        Some(plan)
    }

    fn wake(&self, world: &World, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::CLUSTER | kind::INSTANCE) if events::is_listed(change) => self.keys(world, plane),
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, name)| vec![Key::new(plane, "", name), Key::new(plane, "", RECORDED)])
                .unwrap_or_default(),
            (Plane::Hub, kind::INSTANCE) if events::comes_or_goes(change) => events::both(change)
                .filter_map(|copy| sources::of(copy).map(|source| Key::new(plane, "", source.name)))
                .collect(),
            // A project that is engaged later may hold claims of a cell that is gone.
            (Plane::Project(_), kind::WORKLOAD) if events::is_listed(change) => {
                vec![Key::new(&Plane::Hub, "", RECORDED)]
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, world: &World, plane: &Plane) -> Vec<Key> {
        let copies = events::stored(world, plane, kind::INSTANCE, None);
        let names: BTreeSet<&str> = copies
            .iter()
            .filter_map(|copy| Some(sources::of(copy)?.name))
            .chain([RECORDED])
            .collect();
        names.into_iter().map(|name| Key::new(&Plane::Hub, "", name)).collect()
    }
}

/// Sources of a key that may be gone, as far as stores say: those of copies whose Cluster is not theirs.
fn found_sources(sight: &Sight<'_>, key: &Key) -> BTreeSet<(String, String)> {
    let (Observed::Known(copies), Observed::Known(clusters)) = (
        sight.all(&Plane::Hub, kind::INSTANCE),
        sight.all(&Plane::Hub, kind::CLUSTER),
    ) else {
        return BTreeSet::new();
    };
    let clusters = refs(&clusters);
    let named = copies.iter().filter_map(|copy| sources::of(copy));
    named
        .filter(|source| source.name == key.name)
        .filter(|source| sources::is_gone(*source, Observed::Known(&clusters), false) == Some(true))
        .map(|source| (source.name.to_owned(), source.id.to_owned()))
        .collect()
}

/// Sources of a key that are gone, by stores or by the record.
fn gone(sight: &Sight<'_>, key: &Key) -> BTreeSet<(String, String)> {
    let mut found = found_sources(sight, key);
    if let Some(Some(record)) = sight.read_live(&Plane::Hub, CONFIG_MAP, "", REMOVED_CELLS) {
        let recorded = sources::removed(&record).filter(|source| key.name == RECORDED || source.name == key.name);
        found.extend(recorded.map(|source| (source.name.to_owned(), source.id.to_owned())));
    }
    found
}

fn is_removed(sight: &Sight<'_>, name: &str, id: &str) -> bool {
    let record = sight.read_live(&Plane::Hub, CONFIG_MAP, "", REMOVED_CELLS).flatten();
    record.is_some_and(|record| sources::is_removed(&record, Source { name, id }))
}
