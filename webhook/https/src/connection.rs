//! One connection from its handshake to its end.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use crate::limits::{ENCRYPTED, HEAD, HEADERS, Limits, STREAMS, WINDOW};
use crate::phase::{Phase, reached};
use crate::service::{Application, Peer};
use crate::socket::Socket;
use crate::status::ListenerStatus;
use crate::tls::Handshakes;
use crate::tracked::Tracked;

/// After the grace an idle connection has this long to take what was written and to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);
/// A client of HTTP/2 that is asked to leave an idle connection has so long to do it.
const GOODBYE: Duration = Duration::from_secs(5);
/// How often a silent HTTP/2 client is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_mins(1);

/// What was agreed with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What all connections of a listener share.
pub(crate) struct Shared {
    pub(crate) router: Router,
    pub(crate) tls: Option<Handshakes>,
    pub(crate) limits: Limits,
    pub(crate) status: Arc<ListenerStatus>,
}

/// Waits for the first byte, where nothing else is computed; false when it does not come. Every client speaks first.
pub(crate) async fn speaks(shared: &Shared, stream: &TcpStream, peer: &Peer) -> bool {
    let (limit, late) = match shared.tls {
        Some(_) => (shared.limits.handshake, &shared.status.handshake_errors),
        None => (shared.limits.first_request, &shared.status.silent),
    };
    let mut phase = peer.phase.clone();
    let mut first = [0; 1];
    let spoken = tokio::select! {
        spoken = timeout(limit, stream.peek(&mut first)) => spoken,
        () = reached(&mut phase, Phase::Stopping) => return false,
        () = peer.tracked.cut.cancelled() => return false,
    };
    if let Ok(size) = spoken {
        peer.tracked.unsent(false);
        size.is_ok_and(|size| size > 0)
    } else {
        late.fetch_add(1, Relaxed);
        false
    }
}

/// Serves one accepted socket until either side ends it.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, mut peer: Peer) {
    // Without it Nagle's algorithm and delayed acknowledgements add 40 ms to an answer of two segments.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(peer = %peer.address, %error, "failed to set TCP_NODELAY");
    }
    let socket = match Socket::here(stream, &peer.tracked) {
        Ok(socket) => socket,
        Err(error) => {
            shared.status.accept_errors.fetch_add(1, Relaxed);
            tracing::warn!(%error, "failed to take over a connection");
            return;
        }
    };
    let Some(handshakes) = &shared.tls else {
        return speak(&shared, socket, peer).await;
    };
    let mut phase = peer.phase.clone();
    let handshake = timeout(shared.limits.handshake, handshakes.accept(socket));
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = reached(&mut phase, Phase::Stopping) => return,
        () = peer.tracked.cut.cancelled() => return,
    };
    match outcome {
        Ok(Ok((mut stream, http2_place))) => {
            stream.get_mut().1.set_buffer_limit(Some(ENCRYPTED));
            if http2_place.is_some() {
                peer.protocol = Protocol::Http2;
            }
            speak(&shared, stream, peer).await;
            drop(http2_place);
        }
        Ok(Err(error)) => {
            shared.status.handshake_errors.fetch_add(1, Relaxed);
            tracing::debug!(peer = %peer.address, %error, "TLS handshake failed");
        }
        Err(_) => {
            shared.status.handshake_errors.fetch_add(1, Relaxed);
            tracing::debug!(peer = %peer.address, "TLS handshake took too long");
        }
    }
}

/// Speaks the agreed protocol on a stream that is ready for it.
async fn speak<S>(shared: &Shared, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let application = Application {
        router: shared.router.clone(),
        peer: peer.clone(),
        status: Arc::clone(&shared.status),
    };
    let io = TokioIo::new(stream);
    let end = match peer.protocol {
        Protocol::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(shared.limits.idle)
                .max_buf_size(HEAD)
                .serve_connection(io, application);
            drive(pin!(connection), &shared.limits, &peer).await
        }
        Protocol::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .max_concurrent_streams(STREAMS)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .max_header_list_size(HEADERS)
                .max_send_buf_size(HEAD)
                .serve_connection(io, application);
            drive(pin!(connection), &shared.limits, &peer).await
        }
    };
    match end {
        End::Peer | End::Told => {}
        End::Silent => drop(shared.status.silent.fetch_add(1, Relaxed)),
        End::Cut => drop(shared.status.cut.fetch_add(1, Relaxed)),
    }
    tracing::trace!(peer = %peer.address, ?end, "connection ended");
}

#[derive(Debug)]
enum End {
    /// Closed by the client, by an error on the wire, or by us after an answer that said so.
    Peer,
    /// No request came.
    Silent,
    /// Told to end for the sake of others, and counted by who said so; or idle for too long.
    Told,
    /// Ended by the stop before it was done.
    Cut,
}

/// A hyper connection: a future that can be asked to finish.
trait Graceful: Future<Output = hyper::Result<()>> {
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<S> Graceful for http1::Connection<TokioIo<S>, Application>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        http1::Connection::graceful_shutdown(self);
    }
}

impl<S> Graceful for http2::Connection<TokioIo<S>, Application, TokioExecutor>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        http2::Connection::graceful_shutdown(self);
    }
}

async fn drive<C: Graceful>(mut connection: Pin<&mut C>, limits: &Limits, peer: &Peer) -> End {
    let tracked: &Tracked = &peer.tracked;
    let mut phase = peer.phase.clone();
    phase.mark_changed();
    let mut first_seen = false;
    let mut farewell = None;
    let first_deadline = Instant::now() + limits.first_request;
    loop {
        // While nothing but requests happens, a wake-up polls the connection and three futures that only look at a flag.
        tokio::select! {
            biased;
            () = tracked.cut.cancelled() => return End::Told,
            _ = connection.as_mut() => return End::Peer,
            () = tracked.first.notified(), if !first_seen => first_seen = true,
            () = sleep_until(first_deadline), if !first_seen => return End::Silent,
            changed = phase.changed() => if changed.is_err() { return End::Cut },
            () = sleep_until(farewell.unwrap_or(first_deadline)), if farewell.is_some() => {
                if tracked.idle() {
                    return if *phase.borrow() >= Phase::Stopping { End::Cut } else { End::Told };
                }
                farewell = None;
            }
            // HTTP/1 has a timer of its own for this.
            () = tracked.dismissed.notified(), if peer.protocol == Protocol::Http2 => {
                connection.as_mut().graceful_shutdown();
                farewell = farewell.or_else(|| Some(Instant::now() + GOODBYE));
            }
        }
        match *phase.borrow_and_update() {
            Phase::Open => {}
            // A connection over HTTP/1 that is idle now may carry a request at this very moment, which would be lost if
            // we closed: its next answer closes it. GOAWAY has no such race, but before the first request it would make
            // a fresh connection useless.
            Phase::Leaving => {
                if peer.protocol == Protocol::Http2 && first_seen {
                    connection.as_mut().graceful_shutdown();
                }
            }
            Phase::Stopping => {
                connection.as_mut().graceful_shutdown();
                farewell = farewell.or_else(|| Some(Instant::now() + FAREWELL));
            }
            Phase::Aborted => return End::Cut,
        }
    }
}
