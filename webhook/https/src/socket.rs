//! The socket of a connection, which notes whose turn it is.

use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::tracked::Tracked;

/// Reads and writes for one connection.
pub(crate) struct Socket {
    stream: Arc<TcpStream>,
    tracked: Arc<Tracked>,
}

impl Socket {
    /// A socket belongs to the runtime that it was made on; from here it belongs to the one that calls.
    pub(crate) fn here(stream: TcpStream, tracked: &Arc<Tracked>) -> io::Result<Self> {
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
