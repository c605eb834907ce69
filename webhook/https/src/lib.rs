//! A listener for webhooks: TLS with certificates that reload, limits on everything a peer can make long or large, and a
//! stop that loses no call.
//!
//! Invariants
//! - A served certificate always has its own key, and a bad file on disk never replaces a good pair in memory.
//! - No client holds a connection without a bound: handshake, first request, idle time, upload, the time to take an answer
//!   and number are limited, the number for each peer address too.
//! - All that clients make a listener hold has one bound in bytes, counted as it arrives and until it is written. Where it
//!   is reached, those who keep much for long lose it first.
//! - After the stop signal every answer asks its client to close the connection; a request of which only a part has arrived is
//!   cut when the grace ends, a request that is being answered is not.
//!
//! Why not a library: `axum-server` 0.8 treats every connection alike at a graceful stop (one that has sent half a request
//! holds the exit as long as one that is being answered), does not say how far a connection is, bounds neither their
//! number nor what they hold, and has no thread for each core, which was measured (docs/benchmarks.md). The limits of
//! `tower` 0.5 and `tower-http` 0.7 count requests, or bytes of one request; here bytes of all of them have one bound.
//! What is served is an axum `Router`, so layers fit around it.
//!
//! The crypto provider is aws-lc-rs, given explicitly, so that no process-wide default is needed.

#![forbid(unsafe_code)]

pub mod body;
mod budget;
mod certificate;
mod connection;
pub mod health;
mod limits;
mod listener;
pub mod log;
mod registry;
mod service;
mod threads;
pub mod timeout;
mod tls;
mod tracked;

pub use certificate::{CertificateError, CertificateStatus, Certificates, FilePair, SelfSigned, Source};
pub use limits::{Limits, ListenerStatus, PER_HTTP2};
pub use listener::{Drained, ListenError, Listener};
