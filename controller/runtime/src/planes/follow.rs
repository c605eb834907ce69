//! Keeping a store in step with a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::Either;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::interest::{Interest, View};
use super::raw::Raw;
use super::store::{Change, Store};
use crate::error::{Error, chain};

/// A list goes on at least this often, or is given up. Watches that have become silent are kube's business (295 s).
const LIST_STEP: Duration = Duration::from_secs(30);

/// Counts watches while they are followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<AtomicUsize>);

impl Streams {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn open(&self) -> Stream {
        self.0.fetch_add(1, Ordering::Relaxed);
        Stream(self.clone())
    }
}

struct Stream(Streams);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Follows one kind for ever: drop the future to free the watch.
///
/// A watch that breaks is begun anew with a list, after a pause of client-go's: to resume it would bring no sign of when
/// the store is up to date again.
pub(crate) async fn follow(
    client: &Client,
    interest: &Interest,
    store: &Store,
    streams: &Streams,
    tell: &(dyn Fn(Change) + Send + Sync),
) {
    let _open = streams.open();
    let mut pauses = watcher::DefaultBackoff::default();
    loop {
        let broken = match interest.view {
            View::Whole => once::<false>(client, interest, store, tell).await,
            View::Metadata => once::<true>(client, interest, store, tell).await,
        };
        let broken = chain(&broken);
        warn!(error = broken, "a watch broke");
        if let Some(change) = store.lose(broken) {
            tell(change);
        }
        sleep(pauses.next().unwrap_or(LIST_STEP)).await;
    }
}

/// One list and the watch after it, until that breaks.
async fn once<const METADATA: bool>(
    client: &Client,
    interest: &Interest,
    store: &Store,
    tell: &(dyn Fn(Change) + Send + Sync),
) -> Error {
    let api = Api::<Raw<METADATA>>::all_with(client.clone(), &interest.kind.resource());
    let config = watcher::Config {
        label_selector: Some(interest.selector.to_owned()).filter(|selector| !selector.is_empty()),
        ..watcher::Config::default()
    };
    let mut events = watcher(api, config).boxed();
    loop {
        let next = if store.is_known() {
            Either::Left(async { Ok(events.next().await) })
        } else {
            Either::Right(timeout(LIST_STEP, events.next()))
        };
        match next.await {
            Ok(Some(Ok(event))) => store.take(event).into_iter().for_each(tell),
            Ok(Some(Err(error))) => {
                return Error::Watch {
                    kind: interest.kind.kind,
                    source: Box::new(error),
                };
            }
            // A watcher has no end; one that had would be begun anew like any other.
            Ok(None) | Err(_) => {
                return Error::Silent {
                    kind: interest.kind.kind,
                    seconds: LIST_STEP.as_secs(),
                };
            }
        }
    }
}
