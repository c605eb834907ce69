//! Reading a request's body inside the listener's limits.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::limits::Limits;
use crate::phase::{Phase, reached};
use crate::service::Peer;

/// After a body has proven too large, so much more of it is taken in and dropped, so that the client, which reads only
/// when it has written everything, finds the answer and not a reset connection.
const SURPLUS: usize = 24 * 1024 * 1024;
/// And for so long.
const SURPLUS_TIME: Duration = Duration::from_secs(2);
/// So much of a refused body is kept, for whoever looks for an identity in it.
const HEAD: usize = 64 * 1024;

/// Why a body was not read to its end. `head` is what had arrived, cut to 64 KiB.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Larger than the limit.
    #[error("the request is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// What had arrived.
        head: Bytes,
    },
    /// Not complete in time.
    #[error("the request was not complete after {limit:?}")]
    TooSlow {
        /// The limit.
        limit: Duration,
        /// What had arrived.
        head: Bytes,
    },
    /// The server stops and does not wait for the rest.
    #[error("the server is stopping and the request is not complete")]
    Stopping {
        /// What had arrived.
        head: Bytes,
    },
    /// The client went away or broke the protocol.
    #[error("failed to read the request: {source}")]
    Broken {
        /// What hyper says.
        source: axum::Error,
        /// What had arrived.
        head: Bytes,
    },
}

impl BodyError {
    /// What had arrived of the body, cut to 64 KiB.
    pub fn head(&self) -> &Bytes {
        match self {
            Self::TooLarge { head, .. }
            | Self::TooSlow { head, .. }
            | Self::Stopping { head }
            | Self::Broken { head, .. } => head,
        }
    }
}

/// Reads the whole body of `request`: at most `limits.body` bytes in at most `limits.upload`. A body that came in one
/// piece is not copied. A request from a [`crate::Listener`] is given up when the grace after a stop ends.
pub async fn read(request: Request<Body>, limits: &Limits) -> Result<Bytes, BodyError> {
    let stopping = request.extensions().get::<Peer>().map(|peer| peer.phase.clone());
    let mut upload = Upload {
        body: request.into_body(),
        limit: limits.upload,
        until: Instant::now() + limits.upload,
        stopping,
    };
    let announced = upload.body.size_hint().lower();
    let too_large = usize::try_from(announced).map_or(true, |size| size > limits.body);
    let first = upload.next(&[]).await?.unwrap_or_default();
    if first.len() > limits.body || too_large {
        return Err(upload.refuse(first, limits.body).await);
    }
    if upload.body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = Vec::with_capacity(usize::try_from(announced).unwrap_or(0).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = upload.next(&whole).await? {
        if whole.len() + piece.len() > limits.body {
            return Err(upload.refuse(whole.into(), limits.body).await);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

struct Upload {
    body: Body,
    limit: Duration,
    until: Instant,
    stopping: Option<watch::Receiver<Phase>>,
}

impl Upload {
    /// The next piece with bytes in it; `None` at the end. `so_far` goes into the error.
    async fn next(&mut self, so_far: &[u8]) -> Result<Option<Bytes>, BodyError> {
        let head = |bytes: &[u8]| Bytes::copy_from_slice(bytes.get(..HEAD).unwrap_or(bytes));
        loop {
            let stopped = async {
                match &mut self.stopping {
                    Some(phase) => reached(phase, Phase::Stopping).await,
                    None => std::future::pending().await,
                }
            };
            let frame = tokio::select! {
                biased;
                frame = timeout_at(self.until, self.body.frame()) => frame,
                () = stopped => return Err(BodyError::Stopping { head: head(so_far) }),
            };
            match frame {
                Err(_) => {
                    return Err(BodyError::TooSlow {
                        limit: self.limit,
                        head: head(so_far),
                    });
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(source))) => {
                    return Err(BodyError::Broken {
                        source,
                        head: head(so_far),
                    });
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    // Trailers and empty pieces say nothing.
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }

    /// Takes in a part of what is still coming, then says that it is too much.
    async fn refuse(mut self, arrived: Bytes, limit: usize) -> BodyError {
        let until = Instant::now() + SURPLUS_TIME;
        let mut left = SURPLUS;
        while let Ok(Some(Ok(frame))) = timeout_at(until, self.body.frame()).await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(size) else { break };
            left = rest;
        }
        BodyError::TooLarge {
            limit,
            head: Bytes::copy_from_slice(arrived.get(..HEAD).unwrap_or(&arrived)),
        }
    }
}
