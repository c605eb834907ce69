//! One circuit breaker for each server: one that is unreachable costs a probe every 15 s, not a timeout for each of its
//! objects.
//!
//! Failed requests never open it, they only raise the question: a write may fail because of a webhook, a quota or its own
//! size, and a timeout does not say whether the server or a webhook behind it is slow. The answer is a probe, a read that
//! passes neither admission nor anything else that a tenant configures. Only a probe that fails opens the circuit.
//!
//! Time is an argument. Servers that answer are not held, so the map is as large as the trouble.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use popcell_core::plan::Plane;
use tokio::time::Instant;

/// How often an unreachable server is probed.
pub const PROBE: Duration = Duration::from_secs(15);
/// So many requests in a row that failed for a reason which may be the server's ask for a probe.
pub const FAILURES: u32 = 5;
/// Requests that go on failing do not ask for another probe before.
pub const RECHECK: Duration = Duration::from_secs(5);
/// A `Retry-After` of the server itself is honoured up to this.
pub const LONGEST_REST: Duration = Duration::from_mins(1);

/// Who answers or does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// The API server of a plane.
    Of(Plane),
    /// The server that knows which projects there are, in mode `milo`.
    Discovery,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(plane) => plane.fmt(f),
            Self::Discovery => f.write_str("discovery server"),
        }
    }
}

/// Whether a request may be sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It may; report the answer by [`Breaker::answered`] or [`Breaker::failed`].
    Go,
    /// Only after a probe that succeeds; report it by [`Breaker::probed`].
    Probe,
    /// Not before this time: look again then, with the failures of the key as they are.
    Wait(Duration),
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    /// A probe failed, and none has succeeded since.
    open: bool,
    /// No probe before: one runs, or ended lately. One that never reports its end is followed by another.
    check: Option<Instant>,
    /// No request before: the server itself asked for it.
    rest: Option<Instant>,
}

impl Circuit {
    fn rests(&self, now: Instant) -> Option<Duration> {
        left(self.rest, now)
    }
}

fn left(until: Option<Instant>, now: Instant) -> Option<Duration> {
    let until = until.filter(|until| *until > now)?;
    Some(until.saturating_duration_since(now))
}

/// The breakers of all servers.
#[derive(Debug, Default)]
pub struct Breaker {
    circuits: BTreeMap<Server, Circuit>,
}

impl Breaker {
    /// Asks before a request. While the circuit is open one in [`PROBE`] has to probe.
    pub fn ask(&mut self, server: &Server, now: Instant) -> Permit {
        if let Some(delay) = self.wait(server, now) {
            return Permit::Wait(delay);
        }
        match self.circuits.get_mut(server).filter(|circuit| circuit.open) {
            Some(circuit) => {
                circuit.check = Some(now + PROBE);
                Permit::Probe
            }
            None => Permit::Go,
        }
    }

    /// How long a request has to wait, without beginning a probe; `None` = it may be sent, or probe.
    pub fn wait(&self, server: &Server, now: Instant) -> Option<Duration> {
        let circuit = self.circuits.get(server)?;
        let closed = if circuit.open { left(circuit.check, now) } else { None };
        closed.max(circuit.rests(now))
    }

    /// The server answered, in whatever sense: a refusal comes from a server that works.
    pub fn answered(&mut self, server: &Server, now: Instant) {
        if let Some(circuit) = self.circuits.get_mut(server) {
            // Requests that were under way end after the one that was told to wait.
            (circuit.failures, circuit.open) = (0, false);
            if circuit.rests(now).is_none() {
                self.circuits.remove(server);
            }
        }
    }

    /// A request failed for a reason that may be the server's. Answers whether it is to be probed now.
    pub fn failed(&mut self, server: &Server, retry_after: Option<Duration>, now: Instant) -> bool {
        let circuit = self.circuits.entry(server.clone()).or_default();
        circuit.failures = circuit.failures.saturating_add(1);
        circuit.rest = circuit.rest.max(retry_after.map(|rest| now + rest.min(LONGEST_REST)));
        let due = !circuit.open && circuit.failures >= FAILURES && left(circuit.check, now).is_none();
        if due {
            circuit.check = Some(now + PROBE);
        }
        due
    }

    /// A probe ended. Answers whether that opened or closed the circuit.
    pub fn probed(&mut self, server: &Server, works: bool, now: Instant) -> bool {
        let circuit = self.circuits.entry(server.clone()).or_default();
        let pause = if works { RECHECK } else { PROBE };
        (circuit.failures, circuit.check) = (0, Some(now + pause));
        std::mem::replace(&mut circuit.open, !works) == works
    }

    /// Forgets a plane that is disengaged.
    pub fn retire(&mut self, plane: &Plane) {
        self.circuits.remove(&Server::Of(plane.clone()));
    }

    /// Servers whose circuit is open, for metrics.
    pub fn open(&self) -> usize {
        self.circuits.values().filter(|circuit| circuit.open).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str) -> Server {
        Server::Of(Plane::Project(id.to_owned()))
    }

    /// A breaker whose circuit to `p` has just opened.
    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for number in 1..=FAILURES {
            assert_eq!(breaker.ask(&project("p"), now), Permit::Go);
            assert_eq!(breaker.failed(&project("p"), None, now), number == FAILURES);
        }
        assert_eq!(
            (breaker.ask(&project("p"), now), breaker.open()),
            (Permit::Go, 0),
            "not probed yet"
        );
        assert!(breaker.probed(&project("p"), false, now));
        breaker
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn failures_in_a_row_open_the_circuit_of_their_plane_only() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert_eq!(breaker.ask(&project("p"), now), Permit::Wait(PROBE));
        assert_eq!(breaker.ask(&project("q"), now), Permit::Go);
        assert_eq!(breaker.open(), 1);
    }

    #[test]
    fn an_answer_between_failures_keeps_it_closed() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            for _ in 1..FAILURES {
                assert!(!breaker.failed(&project("p"), None, now));
            }
            breaker.answered(&project("p"), now);
        }
        assert_eq!((breaker.ask(&project("p"), now), breaker.open()), (Permit::Go, 0));
        assert!(breaker.circuits.is_empty());
    }

    #[test]
    fn failures_never_open_it_while_probes_succeed() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        let mut probes = 0;
        for tenth in 0..600 {
            let now = start + Duration::from_millis(100) * tenth;
            if breaker.failed(&project("p"), None, now) {
                probes += 1;
                assert!(!breaker.probed(&project("p"), true, now), "nothing opened or closed");
            }
            assert_eq!(breaker.ask(&project("p"), now), Permit::Go);
        }
        assert_eq!(
            (probes, breaker.open()),
            (12, 0),
            "a minute of failures, one probe in 5 s"
        );
    }

    #[test]
    fn one_probe_goes_through_in_its_time() {
        let start = Instant::now();
        let mut breaker = opened(start);
        let at = |after| start + seconds(after);
        let wait = |after| Permit::Wait(seconds(after));
        for (after, permit) in [
            (14, wait(1)),
            (15, Permit::Probe),
            (15, wait(15)),
            (29, wait(1)),
            (30, Permit::Probe),
        ] {
            assert_eq!(breaker.ask(&project("p"), at(after)), permit, "after {after} s");
        }
        assert!(!breaker.probed(&project("p"), false, at(34)), "it was open before");
        assert_eq!(breaker.wait(&project("p"), at(40)), Some(seconds(9)));
        assert_eq!(breaker.wait(&project("p"), at(49)), None);
        assert_eq!(breaker.ask(&project("p"), at(40)), wait(9));
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Probe);
        assert!(breaker.probed(&project("p"), true, at(49)));
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Go);
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Go);
    }

    #[test]
    fn requests_that_end_late_neither_delay_the_next_probe_nor_hide_an_answer() {
        let start = Instant::now();
        let mut breaker = opened(start);
        for _ in 0..50 {
            assert!(!breaker.failed(&project("p"), None, start + seconds(14)));
        }
        assert_eq!(breaker.ask(&project("p"), start + PROBE), Permit::Probe);
        breaker.answered(&project("p"), start + PROBE);
        assert_eq!(breaker.ask(&project("p"), start + PROBE), Permit::Go);
    }

    #[test]
    fn a_server_that_asks_for_a_rest_has_it_and_no_other_does() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        assert!(!breaker.failed(&project("p"), Some(seconds(3)), start));
        // A shorter one, and answers to what was under way, do not end it.
        breaker.failed(&project("p"), Some(seconds(1)), start);
        breaker.answered(&project("p"), start + seconds(1));
        assert_eq!(breaker.ask(&project("p"), start + seconds(1)), Permit::Wait(seconds(2)));
        assert_eq!(breaker.ask(&project("q"), start), Permit::Go);
        assert_eq!(breaker.ask(&project("p"), start + seconds(3)), Permit::Go);
        assert_eq!(breaker.open(), 0);
        breaker.failed(&project("p"), Some(seconds(86_400)), start);
        assert_eq!(breaker.wait(&project("p"), start), Some(LONGEST_REST));
    }

    #[test]
    fn a_plane_that_comes_back_starts_anew() {
        let now = Instant::now();
        let mut breaker = opened(now);
        breaker.retire(&Plane::Project("p".to_owned()));
        assert_eq!((breaker.ask(&project("p"), now), breaker.open()), (Permit::Go, 0));
    }
}
