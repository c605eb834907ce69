//! Whose turn it is among keys that are ready.
//!
//! Invariants: the line of a tenant is in the order in which its keys became ready; a tenant is in the ring once, and is
//! there while its line is not empty.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Key, Tenant};

/// One reconcile of this many goes to the key that has waited longest.
pub const AGEING: u64 = 4;

/// A place in the order in which keys became ready.
pub(super) type Place = (Instant, u64);

#[derive(Debug, Default)]
struct Line {
    ready: VecDeque<Place>,
    running: usize,
    in_ring: bool,
}

/// Ready keys, and how many reconciles each tenant has running.
#[derive(Debug, Default)]
pub(super) struct FairOrder {
    ready: BTreeMap<Place, Arc<Key>>,
    lines: HashMap<Tenant, Line>,
    ring: VecDeque<Tenant>,
    places: u64,
    picks: u64,
}

impl FairOrder {
    /// Puts a key that is in no line at the end of its tenant's.
    pub(super) fn push(&mut self, key: Arc<Key>, now: Instant) -> Place {
        self.places += 1;
        let place = (now, self.places);
        let tenant = key.tenant();
        self.ready.insert(place, key);
        let line = self.lines.entry(tenant.clone()).or_default();
        line.ready.push_back(place);
        if !line.in_ring {
            line.in_ring = true;
            self.ring.push_back(tenant);
        }
        place
    }

    /// Takes the key whose turn it is among tenants that run fewer than `share` reconciles, and counts its reconcile as
    /// running.
    pub(super) fn pop(&mut self, share: usize) -> Option<Arc<Key>> {
        let aged = (self.picks + 1).is_multiple_of(AGEING);
        let place = if aged {
            self.oldest_place(share)
        } else {
            self.next_place(share)
        }?;
        self.picks += 1;
        let key = self.remove(place)?;
        self.lines.entry(key.tenant()).or_default().running += 1;
        Some(key)
    }

    fn may_run(&self, tenant: &Tenant, share: usize) -> bool {
        self.lines.get(tenant).is_none_or(|line| line.running < share)
    }

    fn oldest_place(&self, share: usize) -> Option<Place> {
        let open = self.lines.values().filter(|line| line.running < share);
        open.filter_map(|line| line.ready.front().copied()).min()
    }

    /// The first of the line of the tenant whose turn it is. A tenant that uses its whole share keeps its turn.
    fn next_place(&mut self, share: usize) -> Option<Place> {
        let at = (0..self.ring.len()).find(|at| self.ring.get(*at).is_some_and(|each| self.may_run(each, share)))?;
        let tenant = self.ring.remove(at)?;
        let place = self.lines.get(&tenant)?.ready.front().copied();
        self.ring.push_back(tenant);
        place
    }

    /// Takes a key out of its line.
    pub(super) fn remove(&mut self, place: Place) -> Option<Arc<Key>> {
        let key = self.ready.remove(&place)?;
        let tenant = key.tenant();
        if let Some(line) = self.lines.get_mut(&tenant) {
            // Nearly always the first; a line may be long.
            if line.ready.front() == Some(&place) {
                line.ready.pop_front();
            } else {
                line.ready.retain(|each| *each != place);
            }
        }
        self.tidy(&tenant);
        Some(key)
    }

    /// A reconcile of this tenant's has ended.
    pub(super) fn ended(&mut self, tenant: &Tenant) {
        if let Some(line) = self.lines.get_mut(tenant) {
            line.running = line.running.saturating_sub(1);
        }
        self.tidy(tenant);
    }

    fn tidy(&mut self, tenant: &Tenant) {
        let Some(line) = self.lines.get_mut(tenant) else { return };
        if line.ready.is_empty() && line.in_ring {
            line.in_ring = false;
            self.ring.retain(|each| each != tenant);
        }
        if line.ready.is_empty() && line.running == 0 {
            self.lines.remove(tenant);
        }
    }

    /// How many keys are ready.
    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// How many keys became ready since the start.
    pub(super) fn pushed(&self) -> u64 {
        self.places
    }

    /// How long the oldest ready key has waited.
    pub(super) fn oldest(&self, now: Instant) -> Duration {
        let first = self.ready.first_key_value();
        first.map_or(Duration::ZERO, |((since, _), _)| now.saturating_duration_since(*since))
    }
}
