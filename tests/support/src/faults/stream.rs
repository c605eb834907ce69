//! Answers that go on for long: they can be cut, and fall silent.

use std::io;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::stream::{self, Stream, StreamExt};
use tokio::sync::watch;

use super::Asked;
use super::rules::Snapshot;

struct State {
    body: BodyDataStream,
    asked: Asked,
    rules: watch::Receiver<Snapshot>,
    /// Cuts at its beginning.
    cuts: u64,
}

/// The body until it is cut, which is an error: the connection ends in the middle of the answer.
pub(super) fn faulty(
    body: Body,
    asked: Asked,
    rules: watch::Receiver<Snapshot>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let cuts = rules.borrow().cuts;
    let state = State {
        body: body.into_data_stream(),
        asked,
        rules,
        cuts,
    };
    stream::unfold(Some(state), async |state| {
        let mut state = state?;
        let (asked, cuts) = (&state.asked, state.cuts);
        loop {
            let (is_cut, is_silent) = {
                let now = state.rules.borrow_and_update();
                (now.cuts != cuts, now.silences(asked))
            };
            if is_cut {
                return Some((Err(io::ErrorKind::ConnectionReset.into()), None));
            }
            tokio::select! {
                // An error means that the proxy is gone.
                changed = state.rules.changed() => if changed.is_err() { return None },
                next = state.body.next(), if !is_silent => {
                    return next.map(|item| (item.map_err(io::Error::other), Some(state)));
                }
            }
        }
    })
}
