//! Connections and the certificate, read at the moment of the scrape.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use popcell_https::{CertificateStatus, ListenerStatus, log};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::{counter, gauge};

#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listener: Arc<ListenerStatus>,
    pub(super) certificate: Arc<CertificateStatus>,
}

impl Collector for Listening {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let out = &mut encoder;
        let Self { listener, certificate } = self;
        let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("connections", "Open connections", signed(listener.open.load(Relaxed))),
            (
                "requests_in_flight",
                "Requests being answered",
                signed(listener.in_flight.load(Relaxed)),
            ),
            (
                "request_memory_bytes",
                "Memory that requests and answers hold, until they are written",
                signed(listener.held.load(Relaxed)),
            ),
            (
                "certificate_not_after_seconds",
                "End of validity of the served certificate, in seconds since 1970",
                certificate.not_after.load(Relaxed),
            ),
            (
                "certificate_reload_failing",
                "1 when the last look for a new certificate failed",
                i64::from(certificate.failing.load(Relaxed)),
            ),
        ] {
            gauge(out, name, help, value)?;
        }
        counter(
            out,
            "log_lines_lost",
            "Log lines that could not be written to standard error",
            log::lost(),
        )?;
        for (name, help, value) in [
            ("connections_accepted", "Accepted connections", &listener.accepted),
            (
                "connections_refused",
                "Connections closed because too many were open and all were being served",
                &listener.refused,
            ),
            (
                "connections_evicted",
                "Connections closed because they kept a place or memory from others",
                &listener.evicted,
            ),
            (
                "connections_unread",
                "Connections cut because an answer was not read in time",
                &listener.unread,
            ),
            (
                "requests_without_memory",
                "Requests answered 429 for want of memory",
                &listener.no_room,
            ),
            (
                "connections_silent",
                "Connections closed because no request came",
                &listener.silent,
            ),
            ("connections_cut", "Connections cut at the stop", &listener.cut),
            (
                "accept_errors",
                "Failures to accept a connection",
                &listener.accept_errors,
            ),
            (
                "handshake_errors",
                "TLS handshakes that failed or took too long",
                &listener.handshake_errors,
            ),
            ("certificate_reloads", "New certificates taken", &certificate.reloads),
            (
                "certificate_reload_errors",
                "Failed looks for a new certificate",
                &certificate.reload_errors,
            ),
        ] {
            counter(out, name, help, value.load(Relaxed))?;
        }
        Ok(())
    }
}
