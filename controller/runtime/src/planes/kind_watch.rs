//! Keeping a store in step with a server.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::Either;
use kube::Client;
use kube::runtime::watcher::{DefaultBackoff, Event};
use popcell_core::plan::Plane;
use popcell_core::rewind::{self, Newest};
use tokio::sync::watch;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::change::Change;
use super::list_watch::{ListPermit, ListWatch};
use super::store::{Overdue, Store};
use super::watch_spec::{View, WatchSpec};
use crate::error::{Error, chain};
use crate::queue::jitter;
use crate::sync::lock;
use popcell_core::object::Raw;

/// A list goes on at least this often, but for the wait for leave, or is given up. A watch that has become silent is given up
/// by [`ListWatch`].
const LIST_STEP: Duration = Duration::from_secs(30);

/// The longest pause before a watch that broke is restarted: a server that is back is noticed within it.
const PAUSE: Duration = Duration::from_secs(30);
/// With another token, watches are restarted within this time.
const SPREAD: Duration = Duration::from_secs(5);
/// A watch that has lasted so long was good, and what breaks it is a new trouble.
const LASTED: Duration = Duration::from_secs(10);

/// Kind of plane and kind of object: what watches and objects are counted by.
pub(crate) type Sort = (&'static str, &'static str);

/// Counts watches while they are followed, and has the leave for large lists. Clones share both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    open: Arc<Mutex<BTreeMap<Sort, usize>>>,
    list_permit: ListPermit,
}

impl Streams {
    /// Sorts of which there was none yet are not there; one that has none any more is 0.
    pub(crate) fn counts(&self) -> BTreeMap<Sort, usize> {
        lock(&self.open).clone()
    }

    /// The same for the watches of one plane.
    pub(crate) fn of_plane(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
            list_permit: self.list_permit.of_plane(),
        }
    }

    /// What large lists of planes wait for of which there are many.
    pub(crate) fn list_permit(&self) -> ListPermit {
        self.list_permit.clone()
    }

    fn open(&self, sort: Sort) -> Stream {
        *lock(&self.open).entry(sort).or_default() += 1;
        Stream(self.clone(), sort)
    }
}

struct Stream(Streams, Sort);

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.0.open).get_mut(&self.1) {
            *count = count.saturating_sub(1);
        }
    }
}

/// The newest versions that a server is known to have reached, by kind. Clones share them, and they outlast its watches: a
/// server may be set back while it is not watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached(Arc<Mutex<Vec<(&'static str, Newest)>>>);

impl Reached {
    fn went_back(&self, kind: &'static str, version: Option<u64>) -> bool {
        let mut all = lock(&self.0);
        if let Some((_, newest)) = all.iter_mut().find(|(each, _)| *each == kind) {
            return newest.went_back(version);
        }
        let mut newest = Newest::default();
        let back = newest.went_back(version);
        all.push((kind, newest));
        back
    }
}

/// One kind of a plane that is followed.
pub(crate) struct KindWatch<'a> {
    pub(crate) client: &'a Client,
    pub(crate) plane_kind: &'static str,
    /// Where there are many such planes, and tenants decide how large objects are: large lists of theirs wait for each other.
    pub(crate) list_permit: Option<ListPermit>,
    pub(crate) watch_spec: &'a WatchSpec,
    pub(crate) store: &'a Store,
    pub(crate) reached: &'a Reached,
    pub(crate) notify: &'a (dyn Fn(Change) + Send + Sync),
    /// Is called when the server's versions have gone back, before it is told what that changes.
    pub(crate) went_back: &'a (dyn Fn() + Send + Sync),
}

impl KindWatch<'_> {
    /// Follows forever: drop the future to free the watch.
    ///
    /// A watch that breaks is restarted with a list, after a pause of client-go's: to resume it would bring no sign of when
    /// the store is up to date again. With a token in place of one that was refused it is restarted too: what waits has its
    /// turn after a list.
    pub(crate) async fn run(&self, streams: &Streams, renewal: &mut Option<Renewal>) {
        let kind = self.watch_spec.kind.kind;
        let _open = streams.open((self.plane_kind, kind));
        let mut pauses = Pauses::default();
        loop {
            let began = Instant::now();
            let error = tokio::select! {
                error = self.once() => error,
                () = renewed(renewal) => Error::Renewed { kind },
            };
            let is_lost = matches!(error, Error::Lost { .. } | Error::Again { .. });
            let restarts = is_lost || matches!(error, Error::Renewed { .. });
            let broken = chain(&error);
            if let Error::Again { .. } = error {
                debug!(error = broken, "a watch ends");
            } else {
                warn!(error = broken, "watch failed");
            }
            let lasted = self.store.is_known() && began.elapsed() >= LASTED;
            let change = if is_lost {
                self.store.restart()
            } else {
                self.store.lose(broken)
            };
            if let Some(change) = change {
                (self.notify)(change);
            }
            if restarts {
                continue;
            }
            tokio::select! {
                () = sleep(pauses.after(lasted)) => {}
                () = renewed(renewal) => {}
            }
        }
    }

    /// A step of a list. Others decide how long one waits for leave.
    async fn stepped<T>(&self, step: impl Future<Output = T>) -> Result<T, Elapsed> {
        let mut step = pin!(step);
        loop {
            match timeout(LIST_STEP, &mut step).await {
                Err(_) if self.list_permit.as_ref().is_some_and(ListPermit::is_taken) => {}
                ended => return ended,
            }
        }
    }

    /// One list and the watch after it, until that breaks.
    async fn once(&self) -> Error {
        let (kind, store) = (self.watch_spec.kind.kind, self.store);
        let mut events = ListWatch::new(self.client, self.watch_spec, self.list_permit.clone());
        let mut overdue = pin!(store.overdue());
        loop {
            let next = if store.is_known() {
                Either::Left(async { Ok(events.next().await) })
            } else {
                Either::Right(self.stepped(events.next()))
            };
            let next = tokio::select! {
                next = next => next,
                overdue = &mut overdue => {
                    return match overdue {
                        Overdue::Lost => Error::Lost { kind },
                        Overdue::Again => Error::Again { kind },
                        Overdue::Behind => Error::Behind { kind },
                    };
                }
            };
            let event = match next {
                Ok(Ok(event)) => event,
                Ok(Err(source)) => return Error::Watch { kind, source },
                Err(_) => {
                    let seconds = LIST_STEP.as_secs();
                    return Error::Silent { kind, seconds };
                }
            };
            let is_end = matches!(event, Event::InitDone);
            // Of a list that has not ended the version is not known yet.
            let is_in_list = matches!(event, Event::Init | Event::InitApply(_));
            let mut back = !is_in_list && self.reached.went_back(kind, events.version());
            let changes = store.take(as_stored(event, self.watch_spec.view));
            back |= is_end && changes.iter().any(is_older);
            if back {
                (self.went_back)();
            }
            changes.into_iter().for_each(self.notify);
            if back && !is_end {
                // What the watch has brought before may be of the server as it was.
                return Error::Lost { kind };
            }
        }
    }
}

/// Whether a list has an object as it was earlier.
fn is_older(change: &Change) -> bool {
    match change {
        Change::Applied {
            before: Some(before),
            now,
        } => rewind::is_older(before, now),
        _ => false,
    }
}

/// When a plane's watches are restarted with another token.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    reported: watch::Receiver<()>,
    /// Planes that share a token do not begin together.
    turn: Duration,
}

impl Renewal {
    /// `reported`: see [`super::Connection::renewed`].
    pub(super) fn new(plane: &Plane, reported: watch::Receiver<()>) -> Self {
        Self {
            reported,
            turn: jitter(SPREAD, plane),
        }
    }
}

/// Ends when there is another token and it is the plane's turn.
async fn renewed(renewal: &mut Option<Renewal>) {
    if let Some(renewal) = renewal
        && renewal.reported.changed().await.is_ok()
    {
        return sleep(renewal.turn).await;
    }
    std::future::pending::<()>().await;
}

/// How long to wait between watches: client-go's times, which double with each that breaks early.
#[derive(Default)]
struct Pauses(DefaultBackoff);

impl Pauses {
    fn after(&mut self, lasted: bool) -> Duration {
        if lasted {
            *self = Self::default();
        }
        // What is random is added to the longest pause of client-go's, and would double it.
        self.0.next().map_or(PAUSE, |pause| pause.min(PAUSE))
    }
}

/// An object as it is stored.
fn seen(mut raw: Raw, view: View) -> Raw {
    if let (View::Fields(pointers), Ok(object)) = (view, &mut raw.object) {
        object.keep(pointers);
    }
    raw
}

/// An event as it is stored.
fn as_stored(event: Event<Raw>, view: View) -> Event<Raw> {
    match event {
        Event::Apply(raw) => Event::Apply(seen(raw, view)),
        Event::Delete(raw) => Event::Delete(seen(raw, view)),
        Event::InitApply(raw) => Event::InitApply(seen(raw, view)),
        other @ (Event::Init | Event::InitDone) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_lasted_is_restarted_soon() {
        let (few, many) = (Duration::from_secs(2), Duration::from_secs(10));
        let mut pauses = Pauses::default();
        let first = pauses.after(false);
        let last = (0..6).map(|_| pauses.after(false)).last().unwrap();
        assert!(first < few && last > many, "{first:?}, {last:?}");
        let again = pauses.after(true);
        assert!(again < few, "{again:?}");
        assert!((0..6).map(|_| pauses.after(false)).last().unwrap() > many);
    }
}
