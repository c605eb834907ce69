//! Reading a request's body inside the listener's limits, and what is answered where that fails.
//!
//! Why not axum's `to_bytes` (0.8): it takes what comes without asking for memory, and leaves what is too much
//! unread, so that a client that still writes finds a reset connection in place of the 413.

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
use crate::service::Peer;
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

/// Why a body was not read to its end, and what had arrived of it.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct BodyError {
    /// Why.
    pub reason: Unread,
    /// What had arrived, cut to 64 KiB.
    pub head: Bytes,
}

/// Why a body is not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Larger than this limit, in bytes.
    #[error("the request is larger than {0} bytes")]
    TooLarge(usize),
    /// Not complete in this time.
    #[error("the request was not complete after {0:?}")]
    TooSlow(Duration),
    /// Other requests hold the memory.
    #[error("too many large requests at once")]
    NoRoom,
    /// The server stops and does not wait for the rest.
    #[error("the server is stopping and the request is not complete")]
    Stopping,
    /// It is compressed, which no client of a webhook does.
    #[error("content-encoding {0:?} is not supported: send the body as it is")]
    Encoded(HeaderValue),
    /// The client went away or broke the protocol: what hyper says.
    #[error("failed to read the request: {0}")]
    Broken(axum::Error),
}

impl BodyError {
    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        self.reason.answer().0
    }

    /// The status of the answer.
    pub const fn status(&self) -> StatusCode {
        self.reason.answer().1
    }

    /// Makes `answer` the answer to the request: with the status, with `Retry-After` where it helps to ask again, and as the
    /// last one on a connection on which the rest of the body may still come.
    pub fn respond(&self, answer: impl IntoResponse) -> Response {
        let mut response = (self.status(), answer).into_response();
        let headers = response.headers_mut();
        if let Unread::NoRoom | Unread::Stopping = self.reason {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if !matches!(self.reason, Unread::Encoded(_)) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl Unread {
    /// With the label in metrics.
    const fn answer(&self) -> (&'static str, StatusCode) {
        match self {
            Self::TooLarge(_) => ("too-large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::TooSlow(_) => ("too-slow", StatusCode::REQUEST_TIMEOUT),
            Self::NoRoom => ("no-room", StatusCode::TOO_MANY_REQUESTS),
            Self::Stopping => ("stopping", StatusCode::SERVICE_UNAVAILABLE),
            Self::Encoded(_) => ("encoding", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Self::Broken(_) => ("broken", StatusCode::BAD_REQUEST),
        }
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
        return Err(BodyError {
            reason: Unread::Encoded(encoding.clone()),
            head: Bytes::new(),
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
        held: peer.as_ref().map(|peer| UploadReservation::begin(peer, most)),
        peer,
        body: request.into_body(),
        limit: limits.upload,
        until: Instant::now() + limits.upload,
        announced,
        first: Bytes::new(),
        whole: Vec::new(),
    };
    upload.first = upload.next().await?.unwrap_or_default();
    if upload.first.len().max(announced) > limits.body {
        return Err(upload.refuse(Unread::TooLarge(limits.body)).await);
    }
    if upload.body.is_end_stream() {
        upload.enter(upload.first.len()).await?;
        return Ok(upload.complete());
    }
    upload.grow(upload.first.len()).await?;
    upload.whole.extend_from_slice(&std::mem::take(&mut upload.first));
    while let Some(piece) = upload.next().await? {
        let size = upload.whole.len() + piece.len();
        if size > limits.body {
            return Err(upload.refuse(Unread::TooLarge(limits.body)).await);
        }
        upload.grow(size).await?;
        upload.whole.extend_from_slice(&piece);
    }
    Ok(upload.complete())
}

/// What an upload holds of its listener's memory.
struct UploadReservation {
    charge: Charge,
    wait: Wait,
}

impl UploadReservation {
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
    held: Option<UploadReservation>,
    limit: Duration,
    until: Instant,
    /// Bytes that the client says will come.
    announced: usize,
    /// What has arrived: the first piece, for as long as there is no second one, else all of them.
    first: Bytes,
    whole: Vec<u8>,
}

impl Upload {
    /// The next piece with bytes in it; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
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
                () = stopped => return Err(self.error(Unread::Stopping)),
            };
            match frame {
                Err(_) => return Err(self.error(Unread::TooSlow(self.limit))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(source))) => return Err(self.error(Unread::Broken(source))),
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    // Trailers and empty pieces say nothing.
                    Ok(_) | Err(_) => {}
                },
            }
        }
    }

    /// Makes room for `size` bytes in one piece of memory.
    async fn grow(&mut self, size: usize) -> Result<(), BodyError> {
        let has = self.whole.capacity();
        if size <= has {
            return Ok(());
        }
        let step = has.saturating_mul(2).max(FIRST);
        let capacity = if self.announced > size {
            step.min(self.announced)
        } else {
            step
        };
        let capacity = capacity.max(size);
        self.enter(capacity).await?;
        self.whole.reserve_exact(capacity - self.whole.len());
        Ok(())
    }

    /// Waits for memory for so many bytes in all. Nothing more is read meanwhile, so a client that sends on is held up by
    /// TCP.
    async fn enter(&mut self, bytes: usize) -> Result<(), BodyError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let paused = held.wait.pause();
        let entered = held.charge.resize(bytes, self.limit / 4).await;
        held.wait.resume(paused);
        if entered {
            held.wait.hold(&held.charge);
            return Ok(());
        }
        Err(self.refuse(Unread::NoRoom).await)
    }

    /// The body is there. Its memory is the request's from now on.
    fn complete(self) -> Received {
        if let (Some(peer), Some(held)) = (&self.peer, self.held) {
            peer.keep(held.charge);
        }
        Received(if self.whole.is_empty() {
            self.first
        } else {
            self.whole.into()
        })
    }

    /// Takes in what is still coming and drops it, up to a limit, and then says why.
    async fn refuse(&mut self, reason: Unread) -> BodyError {
        let until = Instant::now() + SURPLUS_TIME;
        let mut left = SURPLUS;
        while let Ok(Some(Ok(frame))) = timeout_at(until, self.body.frame()).await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        self.error(reason)
    }

    fn error(&self, reason: Unread) -> BodyError {
        let arrived = if self.whole.is_empty() {
            &*self.first
        } else {
            &self.whole
        };
        BodyError {
            reason,
            head: Bytes::copy_from_slice(arrived.get(..HEAD).unwrap_or(arrived)),
        }
    }
}
