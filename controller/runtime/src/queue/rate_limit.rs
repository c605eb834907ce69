//! How often a key may come: a client that writes whenever we do must not keep a worker busy forever, and many that only tell
//! of progress must not come all at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use popcell_core::deployment::{PROGRESS, PROGRESS_AT_MOST, PROGRESS_EVERY};
use tokio::time::Instant;

use super::{Key, Tenant};

/// A pace for each key: so many reconciles at once, then one in a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Reconciles that need no rest between them.
    pub burst: u32,
    /// One more after this time.
    pub every: Duration,
}

impl RateLimit {
    /// For keys with an object that another writer answers to. The life of an Instance from its creation to Ready takes
    /// about ten reconciles; a provider that fights over a condition gets one a second.
    pub const OF_TWO_WRITERS: Self = Self {
        burst: 30,
        every: Duration::from_secs(1),
    };
    /// For keys that follow many objects. An Instance that starts or is replaced in its turn enqueues its
    /// WorkloadDeployment about eight times, and two reconciles do where they come late: at this pace a roll of any
    /// length is hardly slower.
    pub const OF_MANY_OBJECTS: Self = Self {
        burst: 1000,
        every: Duration::from_millis(40),
    };
}

/// Keys that had reconciles lately.
#[derive(Debug, Default)]
pub(super) struct RateLimits {
    rate_limit: Option<RateLimit>,
    /// When the reconciles that a key has had would have been due at the pace alone.
    spent: HashMap<Arc<Key>, Instant>,
    /// How many are held before those are dropped that are rested.
    room: usize,
}

impl RateLimits {
    pub(super) fn new(rate_limit: Option<RateLimit>) -> Self {
        Self {
            rate_limit,
            ..Self::default()
        }
    }

    /// A reconcile of the key begins.
    pub(super) fn charge(&mut self, key: &Arc<Key>, now: Instant) {
        let Some(rate_limit) = self.rate_limit else { return };
        let spent = self.spent.entry(Arc::clone(key)).or_insert(now);
        *spent = (*spent).max(now) + rate_limit.every;
        if self.spent.len() > self.room {
            self.spent.retain(|_, spent| *spent > now);
            self.room = 2 * self.spent.len() + 64;
        }
    }

    /// When the key may come next.
    pub(super) fn earliest(&self, key: &Key, now: Instant) -> Instant {
        let (Some(rate_limit), Some(spent)) = (self.rate_limit, self.spent.get(key)) else {
            return now;
        };
        let credit = rate_limit.every * rate_limit.burst.saturating_sub(1);
        spent.checked_sub(credit).map_or(now, |due| due.max(now))
    }
}

/// Turns of keys that only tell of progress: after [`PROGRESS`], and where many of one tenant do, [`PROGRESS_EVERY`] apart, within
/// [`PROGRESS_AT_MOST`]. Each tenant has turns of its own: one with many does not delay another.
#[derive(Debug, Default)]
pub(super) struct ProgressTurns {
    next: HashMap<Tenant, Instant>,
    /// How many are held before those are dropped that are past.
    room: usize,
}

impl ProgressTurns {
    /// When the next turn of a tenant is.
    pub(super) fn next(&self, tenant: &Tenant, now: Instant) -> Instant {
        let next = self.next.get(tenant).copied().unwrap_or(now);
        next.clamp(now + PROGRESS, now + PROGRESS_AT_MOST)
    }

    /// A key of the tenant has this turn.
    pub(super) fn take(&mut self, tenant: Tenant, at: Instant, now: Instant) {
        self.next.insert(tenant, at + PROGRESS_EVERY);
        if self.next.len() > self.room {
            self.next.retain(|_, next| *next > now);
            self.room = 2 * self.next.len() + 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use popcell_core::plan::Plane;

    use super::*;

    const PACE: RateLimit = RateLimit {
        burst: 3,
        every: Duration::from_secs(1),
    };

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_one_in_a_while() {
        let mut rate_limits = RateLimits::new(Some(PACE));
        let key = Arc::new(Key::new(&Plane::Cell, "n", "a"));
        let start = Instant::now();
        let mut now = start;
        let mut taken = Vec::new();
        for _ in 0..6 {
            now = rate_limits.earliest(&key, now);
            rate_limits.charge(&key, now);
            taken.push((now - start).as_secs());
        }
        assert_eq!(taken, [0, 0, 0, 1, 2, 3]);
        // Rested, it has its burst again; others are not held up meanwhile.
        assert_eq!(rate_limits.earliest(&Key::new(&Plane::Cell, "n", "b"), now), now);
        let later = now + Duration::from_secs(10);
        assert_eq!(rate_limits.earliest(&key, later), later);
    }

    #[tokio::test(start_paused = true)]
    async fn rested_keys_are_forgotten() {
        let mut rate_limits = RateLimits::new(Some(PACE));
        let start = Instant::now();
        for number in 0..10_000_u64 {
            let key = Arc::new(Key::new(&Plane::Cell, "n", &number.to_string()));
            rate_limits.charge(&key, start + Duration::from_millis(100 * number));
        }
        assert!(rate_limits.spent.len() < 200, "{}", rate_limits.spent.len());
    }
}
