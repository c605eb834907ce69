//! The body of an answer, which holds its share of the listener's memory until the last byte of it is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::budget::Charge;
use crate::tracked::{Part, Tracked, Wait};

/// Whoever writes an answer lets go of its bytes when they are written.
pub(crate) struct Answer {
    body: Body,
    held: Option<Arc<Held>>,
}

/// Lives as long as any byte of the answer.
struct Held {
    _charge: Charge,
    _wait: Wait,
}

/// Bytes of an answer.
struct Piece {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answer {
    pub(crate) fn new(body: Body, charge: Charge, part: Part, tracked: &Arc<Tracked>) -> Self {
        let held = (!body.is_end_stream()).then(|| {
            Arc::new(Held {
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
