//! Random choices that another run can repeat.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Sets the seed; it is printed by each run.
const SEED: &str = "POPCELL_SEED";

/// Splitmix64: good enough, and the same on every machine.
pub struct Dice(u64);

impl Dice {
    /// From the environment or else from the clock; says which, beginning with the test's own word.
    #[must_use]
    pub fn seeded(test: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or(now.as_secs());
        eprintln!("{test}: {SEED}={seed}");
        Self(seed)
    }

    /// The same in each run.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Others, for what goes on at the same time: who is asked first then decides nothing.
    #[must_use]
    pub fn others(&self) -> Self {
        Self(self.0 ^ 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) >> 32).unwrap_or_default() % limit
    }

    /// So many milliseconds, from `from` to less than `to`.
    pub fn pause(&mut self, from: u64, to: u64) -> Duration {
        let range = usize::try_from(to - from).unwrap_or_default();
        Duration::from_millis(from + u64::try_from(self.below(range)).unwrap_or_default())
    }
}
