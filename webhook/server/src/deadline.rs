//! How long a request may take.
//!
//! Karmada sends `?timeout=` with what its client will wait ([`popcell_https::timeout`]). A module's own cap holds always,
//! whatever the client says.

use std::time::{Duration, Instant};

use popcell_https::timeout;

/// The time of one request.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    received: Instant,
    asked: Option<Duration>,
    cap: Duration,
}

impl Deadline {
    /// For a request whose head arrived at `received`. `cap` is the longest time of a call in a module.
    pub fn new(received: Instant, query: Option<&str>, cap: Duration) -> Self {
        Self {
            received,
            asked: timeout::asked(query),
            cap,
        }
    }

    /// How long the client waits, less a tenth, counted from the request's head; `None` when it did not say.
    pub fn asked(&self) -> Option<Duration> {
        self.asked
    }

    /// The longest time from a complete request to its answer. A call waits at most a quarter of its time for room, so
    /// with a third more than the cap a module still gets all of the cap.
    pub fn longest(cap: Duration) -> Duration {
        cap + cap / 3
    }

    /// When the answer has to be there, for a request that was complete at `complete`. A call waits at most a quarter of
    /// its time for room, so with a third more than the cap a module still gets all of it.
    pub fn answer_by(&self, complete: Instant) -> Instant {
        let own = complete + Self::longest(self.cap);
        self.asked.map_or(own, |asked| own.min(self.received + asked))
    }

    /// What a module gets when nothing was lost before: one that had (nearly) as much is to blame when it was too slow.
    pub fn fair_share(&self) -> Duration {
        self.asked.map_or(self.cap, |asked| asked.min(self.cap)) / 10 * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_unreadable_and_absent_mean_the_cap_only() {
        let now = Instant::now();
        let cap = Duration::from_millis(1500);
        for query in [
            None,
            Some(""),
            Some("timeout="),
            Some("timeout=0s"),
            Some("timeout=abc"),
            Some("x=1"),
        ] {
            let deadline = Deadline::new(now, query, cap);
            assert_eq!(deadline.asked(), None, "{query:?}");
            assert_eq!(deadline.answer_by(now), now + Duration::from_secs(2), "{query:?}");
            assert_eq!(deadline.fair_share(), Duration::from_millis(1350), "{query:?}");
        }
    }

    #[test]
    fn the_smaller_of_timeout_and_cap_holds() {
        let now = Instant::now();
        let cap = Duration::from_secs(3);
        let short = Deadline::new(now, Some("a=b&timeout=1s"), cap);
        assert_eq!(short.answer_by(now), now + Duration::from_millis(900));
        let long = Deadline::new(now, Some("timeout=30s"), cap);
        assert_eq!(long.answer_by(now), now + Duration::from_secs(4));
    }

    #[test]
    fn the_client_waits_from_the_head_and_the_cap_runs_from_the_end_of_the_body() {
        let head = Instant::now();
        let complete = head + Duration::from_millis(1200);
        let cap = Duration::from_secs(3);
        assert_eq!(
            Deadline::new(head, Some("timeout=2s"), cap).answer_by(complete),
            head + Duration::from_millis(1800)
        );
        assert_eq!(
            Deadline::new(head, None, cap).answer_by(complete),
            complete + Duration::from_secs(4)
        );
    }
}
