//! How long a key rests after a reconcile that failed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Delays that double from `first` up to `cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// Never longer.
    pub cap: Duration,
}

impl Backoff {
    /// What ends by itself: 429, 5xx, timeouts, a conflict that came three times.
    pub const TRANSIENT: Self = Self {
        first: Duration::from_millis(250),
        cap: Duration::from_mins(1),
    };
    /// Lasts until a change, and no user waits for it: kinds that are not served, requests that cannot be made.
    pub const REFUSED: Self = Self {
        first: Duration::from_secs(1),
        cap: Duration::from_mins(15),
    };

    /// A write that is refused: by a webhook, an admission policy, a quota, a schema, for a right or a namespace that is
    /// missing; and a read for which a right is missing. Its end brings no event, and users wait for it; what this costs where many are refused is bounded, since
    /// those that are refused alike share one attempt ([`crate::apply`]).
    pub const ADMISSION: Self = Self {
        first: Duration::from_millis(500),
        cap: Duration::from_secs(8),
    };

    /// What only a change of the object can end, which is an event, or another limit of the server: one that is too
    /// large. Each attempt costs the server tens of milliseconds of a processor, which others wait for.
    pub const TOO_LARGE: Self = Self {
        first: Duration::from_mins(15),
        cap: Duration::from_mins(15),
    };

    /// The delay after this many failures in a row, the last one counted; at least 1.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.cap)
    }

    /// [`Self::delay`], shortened by up to a quarter that depends on the subject: keys that failed together, as when a
    /// server went away, do not come back together.
    pub(super) fn spread_delay(&self, failures: u32, subject: &impl Hash) -> Duration {
        let delay = self.delay(failures);
        delay.saturating_sub(jitter(delay / 4, &(subject, failures)))
    }
}

/// A part of `whole`, from none to all of it, that depends on the subject alone: what begins together, as when a server went
/// away, must not go on together.
pub(crate) fn jitter(whole: Duration, subject: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let share = u32::from(hasher.finish().to_le_bytes()[0]);
    whole * share / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap() {
        let seconds = |failures| Backoff::REFUSED.delay(failures).as_secs();
        assert_eq!([1, 2, 3, 4, 10, 11, 12].map(seconds), [1, 2, 4, 8, 512, 900, 900]);
        assert_eq!(Backoff::TRANSIENT.delay(u32::MAX), Duration::from_mins(1));
    }

    #[test]
    fn keys_that_failed_together_come_back_apart() {
        let delays: Vec<Duration> = (0..100)
            .map(|subject| Backoff::TRANSIENT.spread_delay(20, &subject))
            .collect();
        let (least, most) = (Duration::from_secs(45), Duration::from_mins(1));
        assert!(delays.iter().all(|delay| (least..=most).contains(delay)));
        let distinct: std::collections::HashSet<_> = delays.iter().collect();
        assert!(distinct.len() > 50, "{}", distinct.len());
    }
}
