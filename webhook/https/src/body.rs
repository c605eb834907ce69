//! Reading a request's body inside the listener's limits.

use std::ops::Deref;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, CONTENT_ENCODING, RETRY_AFTER};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Charge, What};
use crate::limits::Limits;
use crate::peer::Peer;
use crate::tracked::{Part, Wait};

/// When a body is refused for its size, so much more of it is taken in and dropped, so that the client, which reads only
/// when it has written everything, finds the answer and not a reset connection.
const SURPLUS: usize = 24 * 1024 * 1024;
/// And for so long.
const SURPLUS_TIME: Duration = Duration::from_secs(2);
/// So much of a refused body is kept, for whoever looks for an identity in it.
const HEAD: usize = 64 * 1024;

/// What is announced is not believed: so much is allocated at first, and then as much again as has come.
const FIRST: usize = 64 * 1024;

/// A whole body. A request from a [`crate::Listener`] holds its share of the listener's memory until its answer is made.
#[derive(Debug)]
pub struct Received(Bytes);

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
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
    /// Other requests hold the memory.
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
    /// It is compressed, which no client of a webhook does.
    #[error("content-encoding {encoding:?} is not supported: send the body as it is")]
    Encoded {
        /// How.
        encoding: HeaderValue,
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
    pub fn head(&self) -> &[u8] {
        match self {
            Self::TooLarge { head, .. }
            | Self::TooSlow { head, .. }
            | Self::NoRoom { head }
            | Self::Stopping { head }
            | Self::Broken { head, .. } => head,
            Self::Encoded { .. } => &[],
        }
    }

    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::TooSlow { .. } => "too-slow",
            Self::NoRoom { .. } => "no-room",
            Self::Stopping { .. } => "stopping",
            Self::Encoded { .. } => "encoding",
            Self::Broken { .. } => "broken",
        }
    }

    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Stopping { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Encoded { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Broken { .. } => StatusCode::BAD_REQUEST,
        }
    }

    /// Makes `answer` the answer to the request: with the status, with `Retry-After` where it helps to ask again, and as the
    /// last one on a connection on which the rest of the body may still come.
    pub fn respond(&self, answer: impl IntoResponse) -> Response {
        let mut response = (self.status(), answer).into_response();
        let headers = response.headers_mut();
        if let Self::NoRoom { .. } | Self::Stopping { .. } = self {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if !matches!(self, Self::Encoded { .. }) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// As [`read`], for a call of a webhook: an encoded body is refused, and the upload has no more time than `asked`, which is
/// what the client waits ([`crate::timeout::asked`]).
pub async fn read_call(
    request: Request<Body>,
    limits: &Limits,
    asked: Option<Duration>,
) -> Result<Received, BodyError> {
    let encoding = request.headers().get(CONTENT_ENCODING);
    if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
        return Err(BodyError::Encoded {
            encoding: encoding.clone(),
        });
    }
    let upload = asked.map_or(limits.upload, |asked| asked.min(limits.upload));
    read(request, &Limits { upload, ..*limits }).await
}

/// Reads the whole body of `request`: at most `limits.body` bytes in at most `limits.upload`. A body that came in one
/// piece is not copied. A request from a [`crate::Listener`] is given up when the grace after a stop ends; one that finds
/// no memory waits for it, for at most a quarter of its time.
pub async fn read(request: Request<Body>, limits: &Limits) -> Result<Received, BodyError> {
    let peer = request.extensions().get::<Peer>().cloned();
    let hint = request.body().size_hint();
    let announced = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    // One that is not announced may become as large as any.
    let most = hint.exact().map_or(limits.body, |_| announced);
    let mut upload = Upload {
        held: peer.as_ref().map(|peer| Held::begin(peer, most)),
        peer,
        body: request.into_body(),
        limit: limits.upload,
        until: Instant::now() + limits.upload,
    };
    let first = upload.next(&[]).await?.unwrap_or_default();
    if first.len().max(announced) > limits.body {
        return Err(upload.refuse(first, limits.body).await);
    }
    if upload.body.is_end_stream() {
        upload.enter(first.len(), &first).await?;
        upload.complete();
        return Ok(Received(first));
    }
    let mut whole = Vec::new();
    upload.grow(&mut whole, first.len(), announced, &first).await?;
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(piece) = upload.next(&whole).await? {
        let size = whole.len() + piece.len();
        if size > limits.body {
            return Err(upload.refuse(whole.into(), limits.body).await);
        }
        upload.grow(&mut whole, size, announced, &[]).await?;
        whole.extend_from_slice(&piece);
    }
    upload.complete();
    Ok(Received(whole.into()))
}

/// What is kept of a body for an error.
fn head(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes.get(..HEAD).unwrap_or(bytes))
}

/// What an upload holds of its listener's memory.
struct Held {
    charge: Charge,
    wait: Wait,
}

impl Held {
    /// Of so many bytes at most.
    fn begin(peer: &Peer, most: usize) -> Self {
        let mut charge = Charge::none(&peer.shared.budget, What::Body);
        charge.expect(most);
        Self {
            wait: Wait::begin(&peer.tracked, Part::Upload, &charge),
            charge,
        }
    }
}

struct Upload {
    body: Body,
    /// None where the request came on no [`crate::Listener`].
    peer: Option<Peer>,
    held: Option<Held>,
    limit: Duration,
    until: Instant,
}

impl Upload {
    /// The next piece with bytes in it; `None` at the end. `so_far` goes into the error.
    async fn next(&mut self, so_far: &[u8]) -> Result<Option<Bytes>, BodyError> {
        loop {
            let stopped = async {
                match &self.peer {
                    Some(peer) => peer.shared.stop.ending.cancelled().await,
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

    /// Makes `whole` large enough for `size` bytes, of which so many were announced.
    async fn grow(
        &mut self,
        whole: &mut Vec<u8>,
        size: usize,
        announced: usize,
        so_far: &[u8],
    ) -> Result<(), BodyError> {
        if size <= whole.capacity() {
            return Ok(());
        }
        let step = whole.capacity().saturating_mul(2).max(FIRST);
        let capacity = if announced > size { step.min(announced) } else { step };
        let capacity = capacity.max(size);
        let seen = if whole.is_empty() { so_far } else { whole.as_slice() };
        self.enter(capacity, seen).await?;
        whole.reserve_exact(capacity - whole.len());
        Ok(())
    }

    /// Waits for memory for so many bytes in all. Nothing more is read meanwhile, so a client that sends on is held up by
    /// TCP.
    async fn enter(&mut self, bytes: usize, so_far: &[u8]) -> Result<(), BodyError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let paused = held.wait.pause();
        let entered = held.charge.resize(bytes, self.limit / 4).await;
        held.wait.resume(paused);
        if entered {
            held.wait.hold(&held.charge);
            return Ok(());
        }
        self.discard().await;
        Err(BodyError::NoRoom { head: head(so_far) })
    }

    /// The body is there. Its memory is the request's from now on.
    fn complete(&mut self) {
        if let (Some(peer), Some(held)) = (&self.peer, self.held.take()) {
            peer.keep(held.charge);
        }
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
