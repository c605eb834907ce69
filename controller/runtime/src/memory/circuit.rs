//! One circuit breaker for each server: one that is unreachable costs a probe every 15 s, not a timeout for each of its
//! objects.
//!
//! Failed requests never open it, they only raise the question: a write may fail because of a webhook, a quota or its own
//! size, and a timeout does not say whether the server or a webhook behind it is slow. The answer is a probe, a read that
//! passes neither admission nor anything else that a tenant configures. Only a probe that fails opens the circuit.
//!
//! Time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// How often an unreachable server is probed.
pub(crate) const PROBE: Duration = Duration::from_secs(15);
/// So many requests in a row that failed for a reason which may be the server's ask for a probe.
pub(crate) const FAILURES: u32 = 5;
/// Requests that go on failing do not ask for another probe before.
pub(crate) const RECHECK: Duration = Duration::from_secs(5);
/// A `Retry-After` of the server itself is honoured up to this.
pub(crate) const LONGEST_REST: Duration = Duration::from_mins(1);

/// Whether a request may be sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may; report the answer by [`Circuit::answered`] or [`Circuit::failed`].
    Go,
    /// Only after a probe that succeeds; report it by [`Circuit::probed`].
    Probe,
    /// Not before this time: look again then, with the failures of the key as they are.
    Wait(Duration),
}

/// The circuit breaker of one server.
#[derive(Debug, Default)]
pub(crate) struct Circuit {
    failures: u32,
    /// A probe failed, and none has succeeded since.
    open: bool,
    /// No probe before: one runs, or ended lately. One that never reports its end is followed by another.
    check: Option<Instant>,
    /// No request before: the server itself asked for it.
    rest: Option<Instant>,
}

impl Circuit {
    /// Asks before a request. While the circuit is open one in [`PROBE`] has to probe.
    pub(crate) fn ask(&mut self, now: Instant) -> Admission {
        if let Some(delay) = self.wait(now) {
            return Admission::Wait(delay);
        }
        if self.open {
            self.check = Some(now + PROBE);
            return Admission::Probe;
        }
        Admission::Go
    }

    /// How long a request has to wait, without beginning a probe; `None` = it may be sent, or probe.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let closed = if self.open { left(self.check, now) } else { None };
        closed.max(left(self.rest, now))
    }

    /// The server answered, in whatever sense: a refusal comes from a server that works.
    pub(crate) fn answered(&mut self, now: Instant) {
        if left(self.rest, now).is_none() {
            *self = Self::default();
        }
        // Requests that were under way end after the one that was told to wait.
        (self.failures, self.open) = (0, false);
    }

    /// A request failed for a reason that may be the server's. Answers whether it is to be probed now.
    pub(crate) fn failed(&mut self, retry_after: Option<Duration>, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.rest = self.rest.max(retry_after.map(|rest| now + rest.min(LONGEST_REST)));
        let due = !self.open && self.failures >= FAILURES && left(self.check, now).is_none();
        if due {
            self.check = Some(now + PROBE);
        }
        due
    }

    /// A probe ended. Answers whether that opened or closed the circuit.
    pub(crate) fn probed(&mut self, works: bool, now: Instant) -> bool {
        let pause = if works { RECHECK } else { PROBE };
        (self.failures, self.check) = (0, Some(now + pause));
        std::mem::replace(&mut self.open, !works) == works
    }

    /// Whether requests wait for a probe that succeeds.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }
}

fn left(until: Option<Instant>, now: Instant) -> Option<Duration> {
    let until = until.filter(|until| *until > now)?;
    Some(until.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that has just opened.
    fn opened(now: Instant) -> Circuit {
        let mut circuit = Circuit::default();
        for number in 1..=FAILURES {
            assert_eq!(circuit.ask(now), Admission::Go);
            assert_eq!(circuit.failed(None, now), number == FAILURES);
        }
        assert_eq!(
            (circuit.ask(now), circuit.is_open()),
            (Admission::Go, false),
            "not probed yet"
        );
        assert!(circuit.probed(false, now));
        circuit
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn failures_in_a_row_open_the_circuit() {
        let now = Instant::now();
        let mut circuit = opened(now);
        assert_eq!(circuit.ask(now), Admission::Wait(PROBE));
        assert!(circuit.is_open());
    }

    #[test]
    fn an_answer_between_failures_keeps_it_closed() {
        let now = Instant::now();
        let mut circuit = Circuit::default();
        for _ in 0..3 {
            for _ in 1..FAILURES {
                assert!(!circuit.failed(None, now));
            }
            circuit.answered(now);
        }
        assert_eq!((circuit.ask(now), circuit.is_open()), (Admission::Go, false));
        assert_eq!(circuit.failures, 0);
    }

    #[test]
    fn failures_never_open_it_while_probes_succeed() {
        let start = Instant::now();
        let mut circuit = Circuit::default();
        let mut probes = 0;
        for tenth in 0..600 {
            let now = start + Duration::from_millis(100) * tenth;
            if circuit.failed(None, now) {
                probes += 1;
                assert!(!circuit.probed(true, now), "nothing opened or closed");
            }
            assert_eq!(circuit.ask(now), Admission::Go);
        }
        assert_eq!(
            (probes, circuit.is_open()),
            (12, false),
            "a minute of failures, one probe in 5 s"
        );
    }

    #[test]
    fn one_probe_goes_through_in_its_time() {
        let start = Instant::now();
        let mut circuit = opened(start);
        let at = |after| start + seconds(after);
        let wait = |after| Admission::Wait(seconds(after));
        for (after, permit) in [
            (14, wait(1)),
            (15, Admission::Probe),
            (15, wait(15)),
            (29, wait(1)),
            (30, Admission::Probe),
        ] {
            assert_eq!(circuit.ask(at(after)), permit, "after {after} s");
        }
        assert!(!circuit.probed(false, at(34)), "it was open before");
        assert_eq!(circuit.wait(at(40)), Some(seconds(9)));
        assert_eq!(circuit.wait(at(49)), None);
        assert_eq!(circuit.ask(at(40)), wait(9));
        assert_eq!(circuit.ask(at(49)), Admission::Probe);
        assert!(circuit.probed(true, at(49)));
        assert_eq!(circuit.ask(at(49)), Admission::Go);
        assert_eq!(circuit.ask(at(49)), Admission::Go);
    }

    #[test]
    fn requests_that_end_late_neither_delay_the_next_probe_nor_hide_an_answer() {
        let start = Instant::now();
        let mut circuit = opened(start);
        for _ in 0..50 {
            assert!(!circuit.failed(None, start + seconds(14)));
        }
        assert_eq!(circuit.ask(start + PROBE), Admission::Probe);
        circuit.answered(start + PROBE);
        assert_eq!(circuit.ask(start + PROBE), Admission::Go);
    }

    #[test]
    fn a_server_that_asks_for_a_rest_has_it() {
        let start = Instant::now();
        let mut circuit = Circuit::default();
        assert!(!circuit.failed(Some(seconds(3)), start));
        // A shorter one, and answers to what was under way, do not end it.
        circuit.failed(Some(seconds(1)), start);
        circuit.answered(start + seconds(1));
        assert_eq!(circuit.ask(start + seconds(1)), Admission::Wait(seconds(2)));
        assert_eq!(circuit.ask(start + seconds(3)), Admission::Go);
        assert!(!circuit.is_open());
        circuit.failed(Some(seconds(86_400)), start);
        assert_eq!(circuit.wait(start), Some(LONGEST_REST));
    }
}
