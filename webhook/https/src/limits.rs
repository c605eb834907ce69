//! What a peer may make long, large or many; and what happened on a listener, as plain atomics: this crate knows no metrics
//! library.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The largest head of a request over HTTP/1.
pub(crate) const HEAD: usize = 32 * KIB;
/// The largest list of headers over HTTP/2, where each stream has one. What API servers and Karmada send is far below.
pub(crate) const HEADERS: u32 = 8 * 1024;
/// Streams that one connection over HTTP/2 may have at once.
pub(crate) const STREAMS: u32 = 32;
/// So much of all bodies of a connection over HTTP/2 may arrive before it is asked for.
pub(crate) const WINDOW: u32 = 64 * 1024;
/// So much of an answer may be encrypted ahead of the socket.
pub(crate) const ENCRYPTED: usize = 32 * KIB;
/// What is asked of the kernel for what is sent and for what arrives, each, for one connection. The kernel takes twice as
/// much. In 1 ms, the way there and back inside a cluster, 32 KiB are 30 MB each second.
pub(crate) const SOCKET: u32 = 32 * 1024;
/// The largest segment. A receiver acknowledges every second one at once and others after 40 ms; over the loopback interface,
/// where a sidecar calls from, one may be 64 KiB, and the buffer would be empty before the second.
pub(crate) const SEGMENT: u32 = 8 * 1024;

/// What one connection takes at most beside the bodies and answers of its requests: buffers of TLS and a head or, over
/// HTTP/2, a window; and what the kernel has of it, which counts for the pod.
const PER_CONNECTION: usize = 96 * KIB + 4 * SOCKET as usize;

/// What one connection over HTTP/2 takes at most beside that: 32 heads, and buffers of 16 KiB of which something is kept, if
/// only a byte: a path in the table of headers, or a small piece of a body that waits for memory.
pub const PER_HTTP2: usize = 6 * MIB;

/// Limits of one listener. The defaults suit Karmada's client (25 kept-alive connections for each process, 90 s idle).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time from the end of the handshake to the head of the first request.
    pub first_request: Duration,
    /// Time between two requests on one connection, the head of the next one included. Above 90 s, so that Go's client
    /// is the one that closes: a server that closes first races with the next POST, which the client does not repeat.
    pub idle: Duration,
    /// Time from a request's head to the end of its body.
    pub upload: Duration,
    /// Size of a request body in bytes.
    pub body: usize,
    /// Time for a client to take an answer. The connection of one that takes longer is cut.
    pub write: Duration,
    /// Bytes of memory for bodies from their arrival until their answer is made; at least enough for the largest in a quarter
    /// of it. What connections take is beside that, and beside [`Limits::answers`]: [`Limits::memory`].
    pub bodies: usize,
    /// Bytes of memory for answers until they are written.
    pub answers: usize,
    /// Open connections. One more takes the place of one that asks for nothing, or is closed where there is none.
    pub connections: usize,
    /// Open connections of one peer address, by the same rule.
    pub connections_per_peer: usize,
    /// Open connections that speak HTTP/2, which takes much more memory. To one more only HTTP/1.1 is offered.
    pub http2_connections: usize,
    /// How long the listener goes on accepting after the stop signal, while each answer asks its client to leave.
    pub grace: Duration,
    /// How long calls that are being answered may go on after the grace.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            idle: Duration::from_mins(2),
            upload: Duration::from_secs(30),
            body: 8 * MIB,
            write: Duration::from_secs(30),
            bodies: 48 * MIB,
            answers: 48 * MIB,
            connections: 1024,
            connections_per_peer: 256,
            http2_connections: 16,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// Limits of a port for probes and scrapers, beside one that does the work: they are few and short, send no bodies, and
    /// may not be kept out by connections that ask for nothing. A process has one or two such ports, so they take little of
    /// its memory: 14 MiB for connections, and 10 MiB for answers, of which one that is larger is written alone.
    pub fn for_scrapers() -> Self {
        Self {
            connections: 64,
            connections_per_peer: 64,
            http2_connections: 0,
            bodies: 0,
            answers: 10 * MIB,
            grace: Duration::ZERO,
            drain: Duration::from_secs(1),
            body: 0,
            ..Self::default()
        }
    }

    /// What bodies may take together.
    pub(crate) fn bodies(&self) -> usize {
        self.bodies.max(self.body.saturating_mul(4))
    }

    /// Bytes that the listener takes at most for its clients, those in the kernel included, however many they are and
    /// whatever they do.
    pub fn memory(&self) -> usize {
        let connections = self.connections.saturating_mul(PER_CONNECTION);
        let http2 = self.http2_connections.saturating_mul(PER_HTTP2);
        [connections, http2, self.bodies(), self.answers]
            .into_iter()
            .fold(0, usize::saturating_add)
    }
}

/// What happened on one listener since it was bound.
#[derive(Debug, Default)]
pub struct ListenerStatus {
    /// Connections that are open now.
    pub open: AtomicUsize,
    /// Requests that are being answered now.
    pub in_flight: AtomicUsize,
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Connections closed unanswered because too many were open and all of them were being served.
    pub refused: AtomicU64,
    /// Connections closed because they made others wait: for a place, or for memory.
    pub evicted: AtomicU64,
    /// Connections cut because their clients did not take an answer in time.
    pub unread: AtomicU64,
    /// Requests sent away because there was no memory for them or for their answers.
    pub no_room: AtomicU64,
    /// Bytes that bodies and answers hold now.
    pub held: AtomicUsize,
    /// The most that they have held so far.
    pub most_held: AtomicUsize,
    /// Failures of accept itself, for example for want of file descriptors.
    pub accept_errors: AtomicU64,
    /// TLS handshakes that failed or took too long.
    pub handshake_errors: AtomicU64,
    /// Connections closed because no request head arrived in time.
    pub silent: AtomicU64,
    /// Connections cut at a stop, with half a request or past the drain time.
    pub cut: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_of_one_process_take_little_more_than_the_one_that_works() {
        let (work, scrapers) = (Limits::default(), Limits::for_scrapers());
        // As the documentation says.
        assert_eq!((work.memory() / MIB, scrapers.memory() / MIB), (416, 24));
    }
}
