//! What all connections of a listener share, the one connection that a request came on, and what is done around each request:
//! counting, passing the connection to the application, asking clients to leave; and the body of an answer, which holds its
//! share of the listener's memory until the last byte of it is written.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use axum::http::{Request, Response, StatusCode, Version};
use axum::response::IntoResponse;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, Charge, What};
use crate::limits::{Limits, ListenerStatus};
use crate::registry::Registry;
use crate::tls::Handshakes;
use crate::tracked::{Part, Tracked, Wait};

/// An answer waits so long for memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts one request for as long as it lives, also when its future is dropped with the connection.
struct Active(Peer);

impl Active {
    fn enter(peer: Peer) -> Self {
        peer.shared.status.in_flight.fetch_add(1, Relaxed);
        peer.tracked.asked();
        Self(peer)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.tracked.answered();
        self.0.shared.status.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The application, as hyper calls it for one connection.
pub(crate) struct Application {
    pub(crate) peer: Peer,
    /// What its clients are waited for once an answer is made.
    pub(crate) part: Part,
}

impl hyper::service::Service<Request<Incoming>> for Application {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        use tower_service::Service;
        let active = Active::enter(self.peer.for_request());
        let (part, version) = (self.part, request.version());
        request.extensions_mut().insert(active.0.clone());
        let mut router = self.peer.shared.router.clone();
        Box::pin(async move {
            let mut response = router.call(request).await?;
            let peer = &active.0;
            // Now the body is gone, and an answer that waits for memory keeps none from other bodies.
            peer.release();
            let mut charge = Charge::none(&peer.shared.budget, What::Answer);
            if !charge.resize(size(&response), PATIENCE).await {
                response = no_room();
            }
            // In HTTP/2 this header is forbidden; there the connection sends GOAWAY.
            if version <= Version::HTTP_11 && peer.shared.stop.leaving.is_cancelled() {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Answer::new(body, charge, part, &peer.tracked)))
        })
    }
}

/// Answers are made whole, so that their size is known.
fn size(response: &Response<Body>) -> usize {
    let size = response.body().size_hint();
    usize::try_from(size.upper().unwrap_or(size.lower())).unwrap_or(usize::MAX)
}

/// Asks the client to come back.
fn no_room() -> Response<Body> {
    let text = Body::from("too many large requests at once\n");
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")], text).into_response()
}

/// Whoever writes an answer lets go of its bytes when they are written.
pub(crate) struct Answer {
    body: Body,
    held: Option<Arc<AnswerReservation>>,
}

/// Lives as long as any byte of the answer.
struct AnswerReservation {
    _charge: Charge,
    _wait: Wait,
}

/// Bytes of an answer.
struct Piece {
    bytes: Bytes,
    _held: Arc<AnswerReservation>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answer {
    pub(crate) fn new(body: Body, charge: Charge, part: Part, tracked: &Arc<Tracked>) -> Self {
        let held = (!body.is_end_stream()).then(|| {
            Arc::new(AnswerReservation {
                _wait: Wait::begin(tracked, part, &charge),
                _charge: charge,
            })
        });
        Self { body, held }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let held = self.held.clone();
        if next.is_none() || self.body.is_end_stream() {
            // Only the bytes that are on their way keep it from here.
            self.held = None;
        }
        let counted = |frame: Frame<Bytes>| match held {
            Some(held) => frame.map_data(|bytes| Bytes::from_owner(Piece { bytes, _held: held })),
            None => frame,
        };
        Poll::Ready(next.map(|frame| frame.map(counted)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What all connections of a listener share.
pub(crate) struct Shared {
    pub(crate) router: Router,
    /// None on a port without TLS, which speaks HTTP/1 only.
    pub(crate) tls: Option<Handshakes>,
    pub(crate) limits: Limits,
    pub(crate) status: Arc<ListenerStatus>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) stop: Stop,
}

/// How far the stop of a listener is. Each step comes after the one before it, and none is taken back.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The signal has come: the listener still accepts, but every answer asks its client to leave.
    pub(crate) leaving: CancellationToken,
    /// The grace is over: what is being answered is finished, everything else ends.
    pub(crate) ending: CancellationToken,
    /// Time is up.
    pub(crate) over: CancellationToken,
}

/// The connection that a request came on; in the request's extensions.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) tracked: Arc<Tracked>,
    /// What the request of this copy holds.
    held: Arc<Mutex<Option<Charge>>>,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, shared: Arc<Shared>, tracked: Arc<Tracked>) -> Self {
        Self {
            address,
            shared,
            tracked,
            held: Arc::default(),
        }
    }

    /// The same connection for another request.
    pub(crate) fn for_request(&self) -> Self {
        Self::new(self.address, Arc::clone(&self.shared), Arc::clone(&self.tracked))
    }

    /// Resolves when the connection has to end although it has no request.
    pub(crate) async fn dispensable(&self) {
        tokio::select! {
            () = self.shared.stop.ending.cancelled() => {}
            () = self.tracked.cut.cancelled() => {}
        }
    }

    /// Keeps what the request's body holds until its answer is made.
    pub(crate) fn keep(&self, charge: Charge) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
    }

    /// Gives back what the request's body held.
    pub(crate) fn release(&self) {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
