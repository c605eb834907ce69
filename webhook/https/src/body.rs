//! Reading a request's body inside the listener's limits.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::Limits;
use crate::phase::{Phase, reached};
use crate::service::Peer;

/// When a body is refused for its size, so much more of it is taken in and dropped, so that the client, which reads only
/// when it has written everything, finds the answer and not a reset connection.
const SURPLUS: usize = 24 * 1024 * 1024;
/// And for so long.
const SURPLUS_TIME: Duration = Duration::from_secs(2);
/// So much of a refused body is kept, for whoever looks for an identity in it.
const HEAD: usize = 64 * 1024;

/// Bodies up to this size take no part in the accounting of room.
const SMALL: usize = 64 * 1024;
/// Room is counted in pieces of this size.
const UNIT: usize = 1024;

/// A whole body. It holds its share of the listener's room until it is dropped.
#[derive(Debug)]
pub struct Received {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Room for larger bodies.
#[derive(Debug)]
pub(crate) struct Uploads {
    free: Arc<Semaphore>,
    all: usize,
}

impl Uploads {
    pub(crate) fn new(limits: &Limits) -> Self {
        let all = (limits.uploads.max(limits.body) / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(all)),
            all,
        }
    }

    /// Waits for room for so many bytes.
    async fn enter(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT).min(self.all)).unwrap_or(u32::MAX);
        Arc::clone(&self.free).acquire_many_owned(units).await.ok()
    }
}

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
    /// Too many large bodies are being received.
    #[error("too many large requests at once")]
    NoRoom {
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
            | Self::NoRoom { head }
            | Self::Stopping { head }
            | Self::Broken { head, .. } => head,
        }
    }
}

/// Reads the whole body of `request`: at most `limits.body` bytes in at most `limits.upload`. A body that came in one
/// piece is not copied. A request from a [`crate::Listener`] is given up when the grace after a stop ends; a larger one
/// waits for room, for at most a quarter of its time.
pub async fn read(request: Request<Body>, limits: &Limits) -> Result<Received, BodyError> {
    let peer = request.extensions().get::<Peer>();
    let uploads = peer.map(|peer| Arc::clone(&peer.uploads));
    let mut upload = Upload {
        stopping: peer.map(|peer| peer.phase.clone()),
        body: request.into_body(),
        limit: limits.upload,
        until: Instant::now() + limits.upload,
    };
    let hint = upload.body.size_hint();
    let announced = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    let first = upload.next(&[]).await?.unwrap_or_default();
    if first.len().max(announced) > limits.body {
        return Err(upload.refuse(first, limits.body).await);
    }
    if upload.body.is_end_stream() {
        return Ok(Received {
            bytes: first,
            _room: None,
        });
    }
    // A body of unknown length may become as large as any.
    let size = hint.exact().map_or(limits.body, |_| announced);
    let room = match uploads {
        Some(uploads) if size > SMALL => Some(upload.enter(&uploads, size, &first).await?),
        _ => None,
    };
    let mut whole = Vec::with_capacity(announced.max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = upload.next(&whole).await? {
        if whole.len() + piece.len() > limits.body {
            return Err(upload.refuse(whole.into(), limits.body).await);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Received {
        bytes: whole.into(),
        _room: room,
    })
}

/// What is kept of a body for an error.
fn head(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes.get(..HEAD).unwrap_or(bytes))
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

    /// Waits for room. Nothing more is read meanwhile, so a client that sends on is held up by TCP.
    async fn enter(
        &mut self,
        uploads: &Uploads,
        size: usize,
        so_far: &[u8],
    ) -> Result<OwnedSemaphorePermit, BodyError> {
        if let Ok(Some(room)) = timeout(self.limit / 4, uploads.enter(size)).await {
            return Ok(room);
        }
        self.discard().await;
        Err(BodyError::NoRoom { head: head(so_far) })
    }

    /// Takes in a part of what is still coming, then says that it is too much.
    async fn refuse(mut self, arrived: Bytes, limit: usize) -> BodyError {
        self.discard().await;
        BodyError::TooLarge {
            limit,
            head: head(&arrived),
        }
    }

    /// Takes in what is still coming and drops it, up to a limit.
    async fn discard(&mut self) {
        let until = Instant::now() + SURPLUS_TIME;
        let mut left = SURPLUS;
        while let Ok(Some(Ok(frame))) = timeout_at(until, self.body.frame()).await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(size) else { return };
            left = rest;
        }
    }
}
