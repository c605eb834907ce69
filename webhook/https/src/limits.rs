//! What a peer may make long, large or many.

use std::time::Duration;

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
    /// Bytes of all larger bodies together that are being received or answered; at least `body` counts. A request that
    /// finds no room waits, so that slow uploads cannot eat the memory of the process.
    pub uploads: usize,
    /// Open connections. One more is closed as soon as it is accepted.
    pub connections: usize,
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
            body: 8 * 1024 * 1024,
            uploads: 64 * 1024 * 1024,
            connections: 2048,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(20),
        }
    }
}
