//! What is kept of a plane, and how much of it.
//!
//! Whoever may write to a project may fill it: what is beyond a limit is kept by its address, its lookups and its status
//! only, which is enough to say so on it. What counts is the order of coming; an object that no place was left for is
//! looked at again with the next list.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use popcell_api::kind::{self, Kind};
use popcell_core::limits::{Excess, Limits, lookups};
use popcell_core::object::Object;
use popcell_core::plan::Plane;

/// A kind with objects that had no place is listed again so often: some may have gone since.
pub(super) const AGAIN: Duration = Duration::from_mins(1);
/// Objects that are kept whole, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) objects: usize,
    pub(super) bytes: usize,
}

/// The budget of a plane. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limits: Limits,
    /// By kind; `None` where only single objects are limited.
    used: Option<Arc<Mutex<BTreeMap<&'static str, Usage>>>>,
}

impl Budget {
    /// Of a plane. Only in projects tenants make objects as they like: what is on the hub and in a cell has come through
    /// one.
    pub(crate) fn new(limits: Limits, plane: &Plane) -> Self {
        Self {
            limits,
            used: matches!(plane, Plane::Project(_)).then(Arc::default),
        }
    }

    /// Of a single kind that is no tenant's.
    pub(crate) fn unbounded() -> Self {
        Self {
            limits: Limits {
                object_bytes: usize::MAX,
                project_objects: usize::MAX,
                project_bytes: usize::MAX,
            },
            used: None,
        }
    }

    /// Makes an object what is kept of it, beside what is kept of its kind already.
    pub(super) fn fit(&self, kind: Option<Kind>, kept: Usage, object: &mut Object) {
        let Some(kind) = kind else { return };
        if let Some(excess) = self.excess(kind, kept, object.bytes()) {
            object.exceeds(excess, kind);
        }
        object.pick(lookups(kind));
        // The store knows the kind.
        object.types = None;
    }

    /// What a kind keeps from now on.
    pub(super) fn set(&self, kind: Option<Kind>, usage: Usage) {
        if let (Some(kind), Some(mut used)) = (kind, self.used()) {
            used.insert(kind.kind, usage);
        }
    }

    fn excess(&self, kind: Kind, kept: Usage, bytes: usize) -> Option<Excess> {
        let carried = [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE].contains(&kind);
        let limits = &self.limits;
        if carried && bytes > limits.object_bytes {
            let limit = limits.object_bytes;
            return Some(Excess::Bytes { bytes, limit });
        }
        let used = self.used()?;
        let others = used.iter().filter(|(other, _)| **other != kind.kind);
        let all = others.fold(kept, |sum, (_, usage)| Usage {
            objects: sum.objects + usage.objects,
            bytes: sum.bytes + usage.bytes,
        });
        if all.objects >= limits.project_objects {
            let limit = limits.project_objects;
            return Some(Excess::ProjectObjects { limit });
        }
        (all.bytes.saturating_add(bytes) > limits.project_bytes).then_some(Excess::ProjectBytes {
            limit: limits.project_bytes,
        })
    }

    // Each hold is one step of a map: there is no half-done state that a panic could leave.
    fn used(&self) -> Option<MutexGuard<'_, BTreeMap<&'static str, Usage>>> {
        let used = self.used.as_ref()?;
        Some(used.lock().unwrap_or_else(PoisonError::into_inner))
    }
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
        budget.fit(Some(kind::WORKLOAD_DEPLOYMENT), kept, &mut object);
        object
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
        let usage = |objects, bytes| Usage { objects, bytes };
        budget.set(Some(kind::WORKLOAD), usage(2, 5_000));
        budget.set(Some(kind::WORKLOAD_DEPLOYMENT), usage(9, 90_000));
        for (kept, bytes, excess) in [
            (usage(0, 0), 1_000, None),
            (usage(1, 0), 1_000, Some(Excess::ProjectObjects { limit: 3 })),
            (usage(0, 0), 5_000, Some(Excess::ProjectBytes { limit: 10_000 })),
        ] {
            assert_eq!(fitted(&budget, kept, bytes).excess(), excess);
        }
        let hub = Budget::new(limits, &Plane::Hub);
        assert_eq!(fitted(&hub, usage(9, 90_000), 5_000).excess(), None);
    }
}
