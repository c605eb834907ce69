//! One circuit breaker for each project (design.md 7.3): a server that is away costs one probe every 15 s, not a timeout
//! for each of its objects.
//!
//! Time is an argument. Servers that answer are not held, so the map is as large as the trouble.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use popcell_core::plan::Plane;
use tokio::time::Instant;

/// How often a server that is away is asked whether it is back.
pub const PROBE: Duration = Duration::from_secs(15);
/// So many passes in a row that the server let down open the circuit.
pub const FAILURES: u32 = 5;

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

/// Whether a pass may send requests to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It may; tell what became of it by [`Breaker::answered`] or [`Breaker::failed`].
    Go,
    /// Not before this time: look again then, with the failures of the key as they are.
    Wait(Duration),
}

#[derive(Debug)]
struct Circuit {
    failures: u32,
    /// When the next probe may start; a probe that never tells its end is followed by another.
    probe: Option<Instant>,
}

/// The breakers of all servers.
#[derive(Debug, Default)]
pub struct Breaker {
    circuits: BTreeMap<Server, Circuit>,
}

impl Breaker {
    /// Asks before a pass. While the circuit is open one pass in [`PROBE`] goes through.
    pub fn ask(&mut self, server: &Server, now: Instant) -> Permit {
        if let Some(delay) = self.wait(server, now) {
            return Permit::Wait(delay);
        }
        if let Some(probe) = self.circuits.get_mut(server).and_then(|circuit| circuit.probe.as_mut()) {
            *probe = now + PROBE;
        }
        Permit::Go
    }

    /// How long a pass has to wait, without beginning a probe; `None` = it may ask.
    pub fn wait(&self, server: &Server, now: Instant) -> Option<Duration> {
        let probe = self.circuits.get(server)?.probe.filter(|at| *at > now)?;
        Some(probe.saturating_duration_since(now))
    }

    /// The server answered, in whatever sense: refusals come from a server that is there.
    pub fn answered(&mut self, server: &Server) {
        self.circuits.remove(server);
    }

    /// The server did not answer, or answered that it cannot (429, 5xx, a timeout).
    pub fn failed(&mut self, server: &Server, now: Instant) {
        let circuit = self.circuits.entry(server.clone()).or_insert(Circuit {
            failures: 0,
            probe: None,
        });
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures >= FAILURES {
            circuit.probe = Some(now + PROBE);
        }
    }

    /// Forgets a plane that is disengaged.
    pub fn retire(&mut self, plane: &Plane) {
        self.circuits.remove(&Server::Of(plane.clone()));
    }

    /// Servers whose circuit is open, for metrics.
    pub fn open(&self) -> usize {
        self.circuits.values().filter(|circuit| circuit.probe.is_some()).count()
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
        for _ in 0..FAILURES {
            assert_eq!(breaker.ask(&project("p"), now), Permit::Go);
            breaker.failed(&project("p"), now);
        }
        breaker
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
                breaker.failed(&project("p"), now);
            }
            breaker.answered(&project("p"));
        }
        assert_eq!((breaker.ask(&project("p"), now), breaker.open()), (Permit::Go, 0));
    }

    #[test]
    fn one_probe_goes_through_in_its_time() {
        let start = Instant::now();
        let mut breaker = opened(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let wait = |seconds| Permit::Wait(Duration::from_secs(seconds));
        for (seconds, permit) in [
            (14, wait(1)),
            (15, Permit::Go),
            (15, wait(15)),
            (29, wait(1)),
            (30, Permit::Go),
        ] {
            assert_eq!(breaker.ask(&project("p"), at(seconds)), permit, "after {seconds} s");
        }
        breaker.failed(&project("p"), at(34));
        assert_eq!(breaker.wait(&project("p"), at(40)), Some(Duration::from_secs(9)));
        assert_eq!(breaker.wait(&project("p"), at(49)), None);
        assert_eq!(breaker.ask(&project("p"), at(40)), wait(9));
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Go);
        breaker.answered(&project("p"));
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Go);
        assert_eq!(breaker.ask(&project("p"), at(49)), Permit::Go);
    }

    #[test]
    fn a_plane_that_comes_back_starts_anew() {
        let now = Instant::now();
        let mut breaker = opened(now);
        breaker.retire(&Plane::Project("p".to_owned()));
        assert_eq!((breaker.ask(&project("p"), now), breaker.open()), (Permit::Go, 0));
    }
}
