//! What is kept of a plane, and how much of it.
//!
//! Whoever may write to a project may fill it, and a cell may fill the hub: what is beyond a limit is kept by its address, its
//! lookups and its status only, which is enough to say so on it, and when that is much as well without its status. What counts
//! is the order of coming; an object that no room was left for is looked at again with a list, once there is room.
//!
//! Invariant: no payer takes another's room ([`Budget::payer`]). What a cell may write belongs to the tenants whose
//! Instances it runs: when it is used up, a namespace has an equal share of it all the same, so together they have twice
//! the limit at most.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::limits::{Excess, Limits, picked};
use popcell_core::object::{Fields, Object, ReadError};
use popcell_core::plan::Plane;

use super::SINGLE;
use crate::sync::lock;

/// A kind with objects that had no room is listed again so often at most, where that is one tenant's list.
const AGAIN: Duration = Duration::from_mins(1);
/// The same where it is everybody's.
const SHARED_AGAIN: Duration = Duration::from_mins(15);
/// Of what there is no room for, so much of what there is room for is kept together, before that is less, too.
const REST: usize = 8;
/// What an object takes beside its text, about.
const OVERHEAD: usize = 1024;

/// What is kept for one payer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Objects there is room for.
    pub(super) objects: usize,
    /// Their bytes.
    pub(super) bytes: usize,
    /// Bytes of the others.
    pub(super) rest: usize,
}

impl Usage {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            bytes: self.bytes + other.bytes,
            rest: self.rest + other.rest,
        }
    }

    pub(super) fn less(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
            rest: self.rest.saturating_sub(other.rest),
        }
    }
}

/// What is kept beside an object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    /// Of its kind, for its payer.
    pub(super) usage: Usage,
    /// The bytes of these that are of its namespace.
    pub(super) share: usize,
    /// How many namespaces they are of, its own included.
    pub(super) sharers: usize,
}

/// Whose room an object takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payers {
    /// Only single objects are limited: what is in a cell came through the hub, or is its own.
    None,
    /// A project's tenant.
    Tenant,
    /// The tenants of the namespaces of mode `single`.
    Namespaces,
    /// Cells, for what they write to the hub. The rest there came through a project.
    Cells,
}

/// By payer, and kind.
type Ledger = BTreeMap<String, Vec<(&'static str, Usage)>>;

/// The budget of a plane. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    payers: Payers,
    used: Option<Arc<Mutex<Ledger>>>,
}

/// Of a single kind that is no tenant's.
impl Default for Budget {
    fn default() -> Self {
        Self {
            limits: Limits::NONE,
            payers: Payers::None,
            used: None,
        }
    }
}

impl Budget {
    /// Of a plane.
    pub(crate) fn new(limits: Limits, plane: &Plane) -> Self {
        let payers = match plane {
            Plane::Project(id) if id == SINGLE => Payers::Namespaces,
            Plane::Project(_) => Payers::Tenant,
            Plane::Hub => Payers::Cells,
            Plane::Cell | Plane::Discovery => Payers::None,
        };
        Self {
            limits,
            payers,
            used: (payers != Payers::None).then(Arc::default),
        }
    }

    /// Makes an object what is kept of it, beside what else of its kind is kept for its payer. Says how many bytes there was no
    /// room for.
    ///
    /// # Errors
    /// It cannot be made small enough.
    pub(super) fn fit(
        &self,
        kind: Option<Kind>,
        object: &mut Object,
        beside: impl Fn(&str) -> Beside,
    ) -> Result<Option<usize>, ReadError> {
        let Some(kind) = kind else { return Ok(None) };
        let mut lacking = None;
        object.pick(picked(kind));
        let payer = self.payer(kind, object);
        let all = payer.map(|payer| self.all(kind, payer, beside(payer)));
        let all = all.unwrap_or_default();
        if let Some(excess) = self.excess(kind, all, object) {
            lacking = excess.is_of_room().then(|| self.needed(kind, object));
            object.exceeds(excess, kind)?;
            let rest = all.usage.rest.saturating_add(object.bytes());
            if excess.is_of_room() && rest > self.room() / REST {
                object.strip(kind)?;
                if all.usage.rest.saturating_add(object.bytes()) > 2 * (self.room() / REST) {
                    return Err(ReadError::NoRoom);
                }
            }
            object.pick(picked(kind));
        }
        // The store knows the kind.
        object.types = None;
        Ok(lacking)
    }

    /// Who pays for an object, and how much; `None` where none does.
    pub(super) fn cost<'a>(&self, kind: Option<Kind>, object: &'a Object) -> Option<(&'a str, Usage)> {
        let kind = kind?;
        let payer = self.payer(kind, object)?;
        let bytes = self.bytes(kind, object);
        let usage = match object.excess() {
            Some(excess) if excess.is_of_room() => Usage {
                rest: bytes,
                ..Usage::default()
            },
            _ => Usage {
                objects: 1,
                bytes,
                rest: 0,
            },
        };
        Some((payer, usage))
    }

    /// What a kind keeps for a payer from now on.
    pub(super) fn set(&self, kind: Option<Kind>, payer: &str, usage: Usage) {
        let (Some(kind), Some(mut used)) = (kind, self.used()) else {
            return;
        };
        let kinds = used.entry(payer.to_owned()).or_default();
        kinds.retain(|(other, _)| *other != kind.kind);
        if usage != Usage::default() {
            kinds.push((kind.kind, usage));
        }
        if kinds.is_empty() {
            used.remove(payer);
        }
    }

    /// What a kind keeps for all payers from now on.
    pub(super) fn set_all(&self, kind: Option<Kind>, usages: &BTreeMap<String, Usage>) {
        let before: Vec<String> = self.used().iter().flat_map(|used| used.keys().cloned()).collect();
        for payer in before.iter().filter(|payer| !usages.contains_key(*payer)) {
            self.set(kind, payer, Usage::default());
        }
        for (payer, usage) in usages {
            self.set(kind, payer, *usage);
        }
    }

    /// Whether there is room for an object of so many bytes.
    pub(super) fn has_room(&self, payer: &str, bytes: usize) -> bool {
        let used = self.used().map_or_else(Usage::default, |used| sum(&used, payer, None));
        let all = Beside {
            usage: used,
            ..Beside::default()
        };
        self.fits(all, bytes)
    }

    /// Whether namespaces share what a payer has.
    pub(super) fn is_shared(&self) -> bool {
        self.payers == Payers::Cells
    }

    /// How soon a kind whose objects had no room is listed again, once there is more.
    pub(super) fn again(&self) -> Duration {
        if self.payers == Payers::Tenant {
            AGAIN
        } else {
            SHARED_AGAIN
        }
    }

    fn payer<'a>(&self, kind: Kind, object: &'a Object) -> Option<&'a str> {
        match self.payers {
            Payers::Tenant => Some(""),
            Payers::Namespaces => Some(object.namespace()),
            // The shipped policy lets a cell write its own name only.
            Payers::Cells if kind == kind::INSTANCE => object.label(labels::SOURCE_CLUSTER),
            Payers::Cells if kind == kind::WORKLOAD_DEPLOYMENT => object.text("/spec/cityCode"),
            Payers::Cells | Payers::None => None,
        }
    }

    fn bytes(&self, kind: Kind, object: &Object) -> usize {
        match self.payers {
            Payers::Cells if kind == kind::WORKLOAD_DEPLOYMENT => object.field_bytes("status"),
            Payers::Cells => object.bytes() + OVERHEAD,
            Payers::None | Payers::Tenant | Payers::Namespaces => object.bytes(),
        }
    }

    fn room(&self) -> usize {
        match self.payers {
            Payers::Cells => self.limits.cell_bytes,
            Payers::None | Payers::Tenant | Payers::Namespaces => self.limits.project_bytes,
        }
    }

    /// What is used by a payer, with so much of one kind.
    fn all(&self, kind: Kind, payer: &str, mut beside: Beside) -> Beside {
        if let Some(used) = self.used() {
            beside.usage = beside.usage.plus(sum(&used, payer, Some(kind)));
        }
        beside
    }

    fn excess(&self, kind: Kind, all: Beside, object: &Object) -> Option<Excess> {
        let Limits {
            object_bytes: limit,
            project_objects,
            ..
        } = self.limits;
        let bytes = object.bytes();
        let of_itself = (is_carried(kind) && bytes > limit).then_some(Excess::Bytes { bytes, limit });
        if self.payer(kind, object).is_none() || self.fits(all, self.needed(kind, object)) {
            return of_itself;
        }
        let limit = self.room();
        Some(match self.payers {
            Payers::Cells => Excess::CellBytes { limit },
            _ if all.usage.objects >= project_objects => Excess::ProjectObjects { limit: project_objects },
            _ => Excess::ProjectBytes { limit },
        })
    }

    /// The bytes that an object takes of its payer's room. Of one that is too large by itself not all is kept.
    fn needed(&self, kind: Kind, object: &Object) -> usize {
        let bytes = self.bytes(kind, object);
        if is_carried(kind) && object.bytes() > self.limits.object_bytes {
            bytes.min(Excess::MOST_KEPT)
        } else {
            bytes
        }
    }

    fn fits(&self, all: Beside, bytes: usize) -> bool {
        let Beside { usage, share, sharers } = all;
        if usage.bytes.saturating_add(bytes) > self.room() {
            return sharers > 0 && share.saturating_add(bytes) <= self.room() / sharers;
        }
        self.is_shared() || usage.objects < self.limits.project_objects
    }

    fn used(&self) -> Option<MutexGuard<'_, Ledger>> {
        self.used.as_deref().map(lock)
    }
}

/// Whether a limit for single objects is for this kind.
fn is_carried(kind: Kind) -> bool {
    [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE].contains(&kind)
}

/// What a payer uses, of all kinds but one.
fn sum(used: &Ledger, payer: &str, but: Option<Kind>) -> Usage {
    let kinds = used.get(payer).into_iter().flatten();
    let others = kinds.filter(|(kind, _)| but.is_none_or(|but| but.kind != *kind));
    others.fold(Usage::default(), |sum, (_, usage)| sum.plus(*usage))
}

#[cfg(test)]
mod tests {
    use popcell_core::object::Fields;
    use serde_json::json;

    use super::*;

    fn budget(limits: Limits) -> Budget {
        Budget::new(limits, &Plane::Project("p".to_owned()))
    }

    fn object(bytes: usize) -> Object {
        let value = json!({ "metadata": { "name": "web" }, "spec": { "cityCode": "DFW", "pad": "x".repeat(bytes) },
            "status": { "replicas": 1 } });
        Object::read(&value.to_string()).unwrap()
    }

    fn fitted(budget: &Budget, kept: Usage, bytes: usize) -> Object {
        let mut object = object(bytes);
        budget
            .fit(Some(kind::WORKLOAD_DEPLOYMENT), &mut object, |_| beside(kept))
            .unwrap();
        object
    }

    fn beside(usage: Usage) -> Beside {
        Beside {
            usage,
            ..Beside::default()
        }
    }

    fn usage(objects: usize, bytes: usize) -> Usage {
        Usage {
            objects,
            bytes,
            rest: 0,
        }
    }

    #[test]
    fn of_an_object_that_is_too_large_lookups_and_status_are_kept() {
        let budget = budget(Limits::DEFAULT);
        let small = fitted(&budget, Usage::default(), 1_000);
        assert_eq!((small.excess(), small.at("/spec/pad").is_some()), (None, true));
        let large = fitted(&budget, Usage::default(), 300_000);
        assert!(matches!(
            large.excess(),
            Some(Excess::Bytes {
                bytes: 300_000..,
                limit: 262_144
            })
        ));
        assert_eq!(
            (large.text("/spec/cityCode"), large.int("/status/replicas")),
            (Some("DFW"), Some(1))
        );
        assert!(large.at("/spec/pad").is_none() && large.data_bytes() < 200);
    }

    #[test]
    fn a_project_has_so_many_objects_and_bytes_over_all_kinds() {
        let limits = Limits {
            project_objects: 3,
            project_bytes: 10_000,
            ..Limits::DEFAULT
        };
        let budget = budget(limits);
        budget.set(Some(kind::WORKLOAD), "", usage(2, 5_000));
        budget.set(Some(kind::WORKLOAD_DEPLOYMENT), "", usage(9, 90_000));
        for (kept, bytes, excess) in [
            (usage(0, 0), 1_000, None),
            (usage(1, 0), 1_000, Some(Excess::ProjectObjects { limit: 3 })),
            (usage(0, 0), 5_000, Some(Excess::ProjectBytes { limit: 10_000 })),
        ] {
            assert_eq!(fitted(&budget, kept, bytes).excess(), excess);
        }
    }

    #[test]
    fn in_mode_single_each_namespace_has_the_room_of_a_project() {
        let budget = Budget::new(Limits::DEFAULT, &Plane::Project(SINGLE.to_owned()));
        budget.set(Some(kind::WORKLOAD), "filled", usage(20_000, 0));
        for (namespace, excess) in [
            ("filled", Some(Excess::ProjectObjects { limit: 20_000 })),
            ("another", None),
        ] {
            let mut object = object(10).within(namespace);
            budget
                .fit(Some(kind::WORKLOAD_DEPLOYMENT), &mut object, |_| Beside::default())
                .unwrap();
            assert_eq!(object.excess(), excess, "{namespace}");
        }
    }

    /// What a cell writes to the hub.
    fn of_cell(cell: &str, city: &str, status: usize) -> Object {
        let value = json!({ "metadata": { "name": "web", "labels": { "compute.datumapis.com/source-cluster": cell } },
            "spec": { "cityCode": city, "pad": "x".repeat(1_000) }, "status": { "pad": "x".repeat(status) } });
        Object::read(&value.to_string()).unwrap()
    }

    #[test]
    fn on_the_hub_a_cell_takes_no_room_of_other_cells_and_cities() {
        let limits = Limits {
            cell_bytes: 10_000,
            project_objects: 1,
            project_bytes: 1,
            ..Limits::DEFAULT
        };
        let budget = Budget::new(limits, &Plane::Hub);
        let excess = Some(Excess::CellBytes { limit: 10_000 });
        let full = BTreeMap::from([("dfw", usage(1, 7_000)), ("DFW", usage(1, 7_000))]);
        for (kind, cell, city, status, expected) in [
            (kind::INSTANCE, "dfw", "DFW", 2_000, excess),
            (kind::INSTANCE, "ord", "DFW", 2_000, None),
            (kind::WORKLOAD_DEPLOYMENT, "dfw", "DFW", 4_000, excess),
            // What it is to be came through a project.
            (kind::WORKLOAD_DEPLOYMENT, "dfw", "DFW", 1_000, None),
            (kind::WORKLOAD_DEPLOYMENT, "dfw", "ORD", 4_000, None),
            (kind::PROPAGATION_POLICY, "dfw", "DFW", 40_000, None),
        ] {
            let mut object = of_cell(cell, city, status);
            budget
                .fit(Some(kind), &mut object, |payer| {
                    beside(full.get(payer).copied().unwrap_or_default())
                })
                .unwrap();
            assert_eq!(object.excess(), expected, "{} of {cell}, {city}", kind.kind);
        }
    }
}
