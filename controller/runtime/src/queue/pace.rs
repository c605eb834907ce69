//! How often a key may come: somebody who writes whenever we do must not keep a worker busy for ever.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Key;

/// A pace for each key: so many passes at once, then one in a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Passes that need no rest between them.
    pub burst: u32,
    /// One more after this time.
    pub every: Duration,
}

impl Pace {
    /// For keys with an object that another writer answers to. The life of an Instance from its creation to Ready takes
    /// about ten passes; a provider that fights over a condition gets one a second.
    pub const OF_TWO_WRITERS: Self = Self {
        burst: 30,
        every: Duration::from_secs(1),
    };
    /// For keys that follow many objects. An Instance that starts or is replaced in its turn wakes its WorkloadDeployment
    /// about eight times, and two passes do where they come late: at this pace a roll of any length is hardly slower.
    pub const OF_MANY_OBJECTS: Self = Self {
        burst: 1000,
        every: Duration::from_millis(40),
    };
}

/// Keys that had passes lately.
#[derive(Debug, Default)]
pub(super) struct Paces {
    pace: Option<Pace>,
    /// When the passes that a key has had would have been due at the pace alone.
    spent: HashMap<Arc<Key>, Instant>,
    /// How many are held before those are dropped that are rested.
    room: usize,
}

impl Paces {
    pub(super) fn new(pace: Option<Pace>) -> Self {
        Self {
            pace,
            ..Self::default()
        }
    }

    /// A pass of the key begins.
    pub(super) fn charge(&mut self, key: &Arc<Key>, now: Instant) {
        let Some(pace) = self.pace else { return };
        let spent = self.spent.entry(Arc::clone(key)).or_insert(now);
        *spent = (*spent).max(now) + pace.every;
        if self.spent.len() > self.room {
            self.spent.retain(|_, spent| *spent > now);
            self.room = 2 * self.spent.len() + 64;
        }
    }

    /// When the key may come next.
    pub(super) fn earliest(&self, key: &Key, now: Instant) -> Instant {
        let (Some(pace), Some(spent)) = (self.pace, self.spent.get(key)) else {
            return now;
        };
        let credit = pace.every * pace.burst.saturating_sub(1);
        spent.checked_sub(credit).map_or(now, |due| due.max(now))
    }
}

#[cfg(test)]
mod tests {
    use popcell_core::plan::Plane;

    use super::*;

    const PACE: Pace = Pace {
        burst: 3,
        every: Duration::from_secs(1),
    };

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_one_in_a_while() {
        let mut paces = Paces::new(Some(PACE));
        let key = Arc::new(Key::new(&Plane::Cell, "n", "a"));
        let start = Instant::now();
        let mut now = start;
        let mut taken = Vec::new();
        for _ in 0..6 {
            now = paces.earliest(&key, now);
            paces.charge(&key, now);
            taken.push((now - start).as_secs());
        }
        assert_eq!(taken, [0, 0, 0, 1, 2, 3]);
        // Rested, it has its burst again; others are not held up meanwhile.
        assert_eq!(paces.earliest(&Key::new(&Plane::Cell, "n", "b"), now), now);
        let later = now + Duration::from_secs(10);
        assert_eq!(paces.earliest(&key, later), later);
    }

    #[tokio::test(start_paused = true)]
    async fn rested_keys_are_forgotten() {
        let mut paces = Paces::new(Some(PACE));
        let start = Instant::now();
        for number in 0..10_000_u64 {
            let key = Arc::new(Key::new(&Plane::Cell, "n", &number.to_string()));
            paces.charge(&key, start + Duration::from_millis(100 * number));
        }
        assert!(paces.spent.len() < 200, "{}", paces.spent.len());
    }
}
