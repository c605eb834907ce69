//! Counters for whoever exports metrics. Plain atomics: this crate knows no metrics library.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};

use arc_swap::ArcSwapOption;

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

/// The certificate that is served, and how reloading goes.
#[derive(Debug, Default)]
pub struct CertificateStatus {
    /// End of validity of the served certificate, in seconds since 1970.
    pub not_after: AtomicI64,
    /// How often another certificate has been taken.
    pub reloads: AtomicU64,
    /// How often looking for a new certificate failed, counted at each look.
    pub reload_errors: AtomicU64,
    /// Whether the last look failed.
    pub failing: AtomicBool,
    /// Why the last look failed.
    pub last_error: ArcSwapOption<String>,
}

impl CertificateStatus {
    pub(crate) fn failed(&self, message: String) {
        use std::sync::atomic::Ordering::Relaxed;
        self.reload_errors.fetch_add(1, Relaxed);
        self.failing.store(true, Relaxed);
        self.last_error.store(Some(Arc::new(message)));
    }

    pub(crate) fn succeeded(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        self.failing.store(false, Relaxed);
        self.last_error.store(None);
    }
}
