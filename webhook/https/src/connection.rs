//! One connection from its handshake to its end, and its socket, which notes whose turn it is.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::limits::{ENCRYPTED, HEAD, HEADERS, STREAMS, WINDOW};
use crate::service::{Application, Peer};
use crate::tracked::{Part, Tracked};

/// After the grace an idle connection has this long to take what was written and to say goodbye.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// A client of HTTP/2 that is asked to leave an idle connection has so long to do it.
const GOODBYE: Duration = Duration::from_secs(5);
/// How often a silent HTTP/2 client is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_mins(1);

/// What was agreed with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// HTTP/1.1 or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Waits for the first byte, where nothing else is computed; false when it does not come. Every client speaks first.
pub(crate) async fn speaks(stream: &TcpStream, peer: &Peer) -> bool {
    let (limits, status) = (&peer.shared.limits, &peer.shared.status);
    let (limit, late) = match peer.shared.tls {
        Some(_) => (limits.handshake, &status.handshake_errors),
        None => (limits.first_request, &status.silent),
    };
    let mut first = [0; 1];
    let spoken = tokio::select! {
        spoken = timeout(limit, stream.peek(&mut first)) => spoken,
        () = peer.dispensable() => return false,
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
pub(crate) async fn serve(stream: TcpStream, peer: Peer) {
    let (limits, status) = (&peer.shared.limits, &peer.shared.status);
    // Without it Nagle's algorithm and delayed acknowledgements add 40 ms to an answer of two segments.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(peer = %peer.address, %error, "failed to set TCP_NODELAY");
    }
    let socket = match Socket::here(stream, &peer.tracked) {
        Ok(socket) => socket,
        Err(error) => {
            status.accept_errors.fetch_add(1, Relaxed);
            tracing::warn!(%error, "failed to take over a connection");
            return;
        }
    };
    let Some(handshakes) = &peer.shared.tls else {
        return speak(socket, Protocol::Http1, &peer).await;
    };
    let outcome = tokio::select! {
        outcome = timeout(limits.handshake, handshakes.accept(socket)) => outcome,
        () = peer.dispensable() => return,
    };
    match outcome.unwrap_or_else(|late| Err(io::Error::other(late))) {
        Ok((mut stream, http2_place)) => {
            stream.get_mut().1.set_buffer_limit(Some(ENCRYPTED));
            let protocol = match http2_place {
                Some(_) => Protocol::Http2,
                None => Protocol::Http1,
            };
            speak(stream, protocol, &peer).await;
            drop(http2_place);
        }
        Err(error) => {
            status.handshake_errors.fetch_add(1, Relaxed);
            tracing::debug!(peer = %peer.address, %error, "TLS handshake failed");
        }
    }
}

/// Speaks the agreed protocol on a stream that is ready for it.
async fn speak<S>(stream: S, protocol: Protocol, peer: &Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (limits, status) = (&peer.shared.limits, &peer.shared.status);
    let application = |part| Application {
        peer: peer.clone(),
        part,
    };
    let io = TokioIo::new(stream);
    let end = match protocol {
        Protocol::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.idle)
                .max_buf_size(HEAD)
                .serve_connection(io, application(Part::Answer));
            drive(pin!(connection), protocol, peer).await
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
                .serve_connection(io, application(Part::Stream));
            drive(pin!(connection), protocol, peer).await
        }
    };
    match end {
        End::Peer | End::Dismissed => {}
        End::Silent => drop(status.silent.fetch_add(1, Relaxed)),
        End::Cut => drop(status.cut.fetch_add(1, Relaxed)),
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
    Dismissed,
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

/// What the timer of a connection runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// Its first request.
    Request,
    /// That its client leaves.
    Farewell,
}

async fn drive<C: Graceful>(mut connection: Pin<&mut C>, protocol: Protocol, peer: &Peer) -> End {
    let (tracked, stop) = (&*peer.tracked, &peer.shared.stop);
    // The stop may have begun before.
    tracked.signal.notify_one();
    let mut signal = pin!(tracked.signal.notified());
    let mut timer = pin!(sleep(peer.shared.limits.first_request));
    let mut awaited = Some(Awaited::Request);
    loop {
        // While nothing but requests happens, a wake-up polls the connection and a future that only looks at a flag.
        tokio::select! {
            biased;
            _ = connection.as_mut() => return End::Peer,
            () = signal.as_mut() => signal.set(tracked.signal.notified()),
            () = timer.as_mut(), if awaited.is_some() => match awaited.take() {
                Some(Awaited::Request) if tracked.is_new() => return End::Silent,
                Some(Awaited::Farewell) if tracked.idle() => {
                    return if stop.ending.is_cancelled() { End::Cut } else { End::Dismissed };
                }
                _ => {}
            },
        }
        if tracked.cut.is_cancelled() {
            return End::Dismissed;
        }
        if stop.over.is_cancelled() {
            return End::Cut;
        }
        // HTTP/1 has a timer of its own for idle connections.
        let dismissed = tracked.dismissed.swap(false, Relaxed) && protocol == Protocol::Http2;
        let patience = if stop.ending.is_cancelled() {
            Some(SHUTDOWN_GRACE)
        } else {
            dismissed.then_some(GOODBYE)
        };
        // A connection over HTTP/1 that is idle now may carry a request at this very moment, which would be lost if we
        // closed: its next answer closes it. GOAWAY has no such race, but before the first request it would make a fresh
        // connection useless.
        let leaving = protocol == Protocol::Http2 && stop.leaving.is_cancelled() && !tracked.is_new();
        if leaving || patience.is_some() {
            connection.as_mut().graceful_shutdown();
        }
        if let Some(patience) = patience.filter(|_| awaited != Some(Awaited::Farewell)) {
            timer.as_mut().reset(Instant::now() + patience);
            awaited = Some(Awaited::Farewell);
        }
    }
}

/// Reads and writes for one connection.
struct Socket {
    stream: Arc<TcpStream>,
    tracked: Arc<Tracked>,
}

impl Socket {
    /// A socket belongs to the runtime that it was made on; from here it belongs to the one that calls.
    fn here(stream: TcpStream, tracked: &Arc<Tracked>) -> io::Result<Self> {
        let stream = Arc::new(TcpStream::from_std(stream.into_std()?)?);
        tracked.reads_from(&stream);
        Ok(Self {
            stream,
            tracked: Arc::clone(tracked),
        })
    }

    fn write(&self, cx: &mut Context<'_>, write: impl Fn(&TcpStream) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        let written = retried(|| {
            ready!(self.stream.poll_write_ready(cx))?;
            Poll::Ready(write(&self.stream))
        });
        self.tracked.untaken(written.is_pending());
        written
    }
}

/// What was ready may be so no more when it is tried.
fn retried(mut attempt: impl FnMut() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    loop {
        match attempt() {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = retried(|| {
            ready!(self.stream.poll_read_ready(cx))?;
            Poll::Ready(self.stream.try_read(into.initialize_unfilled()))
        });
        self.tracked.unsent(read.is_pending());
        into.advance(ready!(read)?);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match SockRef::from(&*self.stream).shutdown(Shutdown::Write) {
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            done => done,
        })
    }
}
