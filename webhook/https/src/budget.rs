//! The memory that bodies and answers of all connections of a listener may take together.
//!
//! Invariants: a byte of a body is counted when it arrives, and a byte of an answer until it is written. Bodies and answers
//! have a part each, so that unread answers keep no request out; and so have small ones, so that neither many
//! small ones nor a few large ones keep the others out. Who needs more than there is
//! waits a moment, in turn, and takes it from those whose clients keep much waiting for long. Bodies hold what has come of
//! them while they wait for more, so each size has a reserve with which one at a time is completed, whatever others hold.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::sleep;

use crate::limits::{Limits, ListenerStatus};
use crate::registry::Registry;

/// Memory is counted in pieces of this size.
const UNIT: usize = 1024;
/// Between two looks at who can be ended.
const LOOK: Duration = Duration::from_millis(10);
/// Whoever finds too little memory frees so much at once: a part of all.
const FREED: usize = 16;

/// The largest body or answer of each size but the last.
const SIZES: [usize; 3] = [8 * UNIT, 64 * UNIT, 1024 * UNIT];

/// What memory is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A request's body, until the answer is made.
    Body,
    /// An answer, until it is written.
    Answer,
}

/// What is held, and how large it is, in few steps. Each has a part of the memory, so that none keeps the others out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(What, usize);

impl Size {
    pub(crate) fn of(what: What, bytes: usize) -> Self {
        Self(what, SIZES.iter().filter(|most| bytes > **most).count())
    }
}

/// The memory budget of a listener.
#[derive(Debug)]
pub(crate) struct Budget {
    bodies: Pools,
    answers: Pools,
    registry: Arc<Registry>,
    status: Arc<ListenerStatus>,
}

/// One for each size.
type Pools = [Pool; SIZES.len() + 1];

/// Budget for bodies or answers of one size.
#[derive(Debug)]
struct Pool {
    size: Size,
    units: usize,
    free: Arc<Semaphore>,
    /// Held by the one that takes what it needs beyond its units from the reserve.
    reserve: Arc<Semaphore>,
    looking: Mutex<()>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits, registry: Arc<Registry>, status: Arc<ListenerStatus>) -> Self {
        let [tiny, small, medium] = SIZES;
        let reserves = tiny + small + medium + limits.body;
        let pools = |what, bytes: usize| {
            let units = (bytes.saturating_sub(reserves) / UNIT).min(Semaphore::MAX_PERMITS);
            std::array::from_fn(|size| Pool::new(Size(what, size), (units / (SIZES.len() + 1)).max(1)))
        };
        Self {
            bodies: pools(What::Body, limits.bodies()),
            answers: pools(What::Answer, limits.answers),
            registry,
            status,
        }
    }

    fn pool(&self, Size(what, size): Size) -> &Pool {
        let pools = match what {
            What::Body => &self.bodies,
            What::Answer => &self.answers,
        };
        pools.get(size).unwrap_or(&pools[SIZES.len()])
    }

    /// Waits in turn for at most `patience`. Of all that wait one looks who can be ended: were each to look, those would
    /// take the time of all others.
    async fn wait(&self, pool: &Pool, units: u32, patience: Duration) -> Option<Share> {
        let bytes = (units as usize * UNIT).max(pool.units * UNIT / FREED);
        let looks = async {
            let _only = pool.looking.lock().await;
            loop {
                self.registry.free(pool.size, bytes);
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            permit = Arc::clone(&pool.free).acquire_many_owned(units) => permit.ok().map(Share::Units),
            reserve = Arc::clone(&pool.reserve).acquire_owned() => reserve.ok().map(Share::Reserve),
            () = looks => None,
            () = sleep(patience) => None,
        }
    }
}

impl Pool {
    fn new(size: Size, units: usize) -> Self {
        Self {
            size,
            units,
            free: Arc::new(Semaphore::new(units)),
            reserve: Arc::new(Semaphore::new(1)),
            looking: Mutex::default(),
        }
    }
}

enum Share {
    Units(OwnedSemaphorePermit),
    Reserve(OwnedSemaphorePermit),
}

/// A share of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    what: What,
    bytes: usize,
    /// What it will become, where that is known.
    expected: usize,
    permit: Option<OwnedSemaphorePermit>,
    reserve: Option<OwnedSemaphorePermit>,
}

impl Charge {
    pub(crate) fn none(budget: &Arc<Budget>, what: What) -> Self {
        Self {
            budget: Arc::clone(budget),
            what,
            bytes: 0,
            expected: 0,
            permit: None,
            reserve: None,
        }
    }

    /// From now on it counts as one of this size, however small it still is.
    pub(crate) fn expect(&mut self, bytes: usize) {
        self.expected = bytes;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// As what it counts.
    pub(crate) fn size(&self) -> Size {
        self.size_of(self.bytes)
    }

    fn size_of(&self, bytes: usize) -> Size {
        Size::of(self.what, bytes.max(self.expected))
    }

    /// Becomes so large, or smaller. Waits for at most `patience`; false when there is too little until then, and it is what
    /// it was. What is larger than all that it could have counts as that.
    pub(crate) async fn resize(&mut self, bytes: usize, patience: Duration) -> bool {
        if bytes == self.bytes {
            return true;
        }
        if bytes == 0 {
            self.reserve = None;
            self.set(0, None);
            return true;
        }
        let budget = Arc::clone(&self.budget);
        let pool = budget.pool(self.size_of(bytes));
        if let Some(reserve) = &self.reserve
            && Arc::ptr_eq(reserve.semaphore(), &pool.reserve)
        {
            let permit = self.permit.take();
            self.set(bytes, permit);
            return true;
        }
        let units = bytes.div_ceil(UNIT).min(pool.units);
        // In the same pool only the difference is needed. In another it is all, while what is held is kept.
        let mut held = match self.permit.take() {
            Some(permit) if Arc::ptr_eq(permit.semaphore(), &pool.free) => Some(permit),
            other => {
                self.permit = other;
                None
            }
        };
        let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let (Some(permit), Some(surplus)) = (&mut held, has.checked_sub(units)) {
            drop(permit.split(surplus));
            self.set(bytes, held);
            return true;
        }
        let more = u32::try_from(units - has).unwrap_or(u32::MAX);
        let taken = match Arc::clone(&pool.free).try_acquire_many_owned(more) {
            Ok(permit) => Some(Share::Units(permit)),
            Err(TryAcquireError::NoPermits) => budget.wait(pool, more, patience).await,
            Err(TryAcquireError::Closed) => None,
        };
        match taken {
            Some(Share::Units(mut permit)) => {
                if let Some(held) = held {
                    permit.merge(held);
                }
                self.reserve = None;
                self.set(bytes, Some(permit));
            }
            Some(Share::Reserve(reserve)) => {
                self.reserve = Some(reserve);
                self.set(bytes, held);
            }
            None => {
                self.permit = self.permit.take().or(held);
                budget.status.no_room.fetch_add(1, Relaxed);
                return false;
            }
        }
        true
    }

    fn set(&mut self, bytes: usize, permit: Option<OwnedSemaphorePermit>) {
        let status = &self.budget.status;
        let held = if bytes >= self.bytes {
            let more = bytes - self.bytes;
            status.held.fetch_add(more, Relaxed) + more
        } else {
            let less = self.bytes - bytes;
            status.held.fetch_sub(less, Relaxed) - less
        };
        status.most_held.fetch_max(held, Relaxed);
        self.bytes = bytes;
        self.permit = permit;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracked::{PATIENCE, Part, Wait};

    const MOMENT: Duration = Duration::from_millis(100);
    const SMALL: usize = 64 * UNIT;
    const PIECE: usize = 100 * UNIT;

    /// Budget for 16 pieces, four of each size.
    fn budget() -> (Arc<Budget>, Arc<Registry>) {
        let limits = Limits {
            bodies: 16 * PIECE + SIZES.iter().sum::<usize>(),
            body: 0,
            ..Limits::default()
        };
        let status = Arc::new(ListenerStatus::default());
        let registry = Arc::new(Registry::new(&limits, Arc::clone(&status)));
        (Arc::new(Budget::new(&limits, Arc::clone(&registry), status)), registry)
    }

    #[tokio::test(start_paused = true)]
    async fn neither_large_ones_nor_small_ones_keep_the_others_out() {
        let (budget, _) = budget();
        let mut large = Charge::none(&budget, What::Body);
        assert!(large.resize(4 * PIECE, MOMENT).await);
        let mut last = Charge::none(&budget, What::Body);
        assert!(last.resize(PIECE, MOMENT).await, "by the reserve");
        let mut more = Charge::none(&budget, What::Body);
        assert!(!more.resize(PIECE, MOMENT).await);
        assert_eq!(more.bytes(), 0);
        let mut small = Vec::new();
        for _ in 0..7 {
            let mut one = Charge::none(&budget, What::Body);
            assert!(one.resize(SMALL, MOMENT).await);
            small.push(one);
        }
        assert!(!more.resize(SMALL, MOMENT).await);
        drop(large);
        assert!(more.resize(PIECE, MOMENT).await);
        drop((more, last, small));
        assert_eq!(budget.status.held.load(Relaxed), 0);
        assert_eq!(budget.status.most_held.load(Relaxed), 5 * PIECE + 7 * SMALL);
        assert_eq!(budget.status.no_room.load(Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_grows_shrinks_and_moves_and_all_of_it_is_given_back() {
        let (budget, _) = budget();
        let mut one = Charge::none(&budget, What::Body);
        for bytes in [1, 1000, SMALL, SMALL + 1, 4 * PIECE, 2 * PIECE, 10, 0, 2 * UNIT * UNIT] {
            assert!(one.resize(bytes, MOMENT).await);
            assert_eq!(budget.status.held.load(Relaxed), bytes);
            for pool in &budget.bodies {
                let used = (pool.units - pool.free.available_permits()) * UNIT;
                let own = bytes > 0 && pool.size == Size::of(What::Body, bytes);
                let expected = if own {
                    bytes.next_multiple_of(UNIT).min(4 * PIECE)
                } else {
                    0
                };
                assert_eq!(used, expected, "{bytes} in {:?}", pool.size);
            }
        }
        drop(one);
        assert!(
            budget
                .bodies
                .iter()
                .all(|pool| pool.free.available_permits() == pool.units)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_hold_all_and_wait_for_more_are_completed_one_after_the_other() {
        let (budget, _) = budget();
        let mut bodies = Vec::new();
        for _ in 0..4 {
            let mut body = Charge::none(&budget, What::Body);
            body.expect(3 * PIECE);
            assert!(body.resize(PIECE, MOMENT).await);
            bodies.push(tokio::spawn(async move {
                for pieces in [2, 3] {
                    assert!(body.resize(pieces * PIECE, MOMENT).await, "{pieces}");
                    sleep(MOMENT / 10).await;
                }
            }));
        }
        for body in bodies {
            body.await.unwrap();
        }
        assert_eq!(budget.status.no_room.load(Relaxed), 0);
        assert!(
            budget
                .bodies
                .iter()
                .all(|pool| pool.free.available_permits() == pool.units)
        );
        assert!(budget.bodies.iter().all(|pool| pool.reserve.available_permits() == 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_be_large_takes_nothing_from_smaller_ones_while_it_grows() {
        let (budget, _) = budget();
        let mut growing = Charge::none(&budget, What::Body);
        growing.expect(2 * UNIT * UNIT);
        for bytes in [PIECE, 2 * PIECE, 4 * PIECE] {
            assert!(growing.resize(bytes, MOMENT).await);
        }
        let mut other = Charge::none(&budget, What::Body);
        assert!(other.resize(4 * PIECE, MOMENT).await);
        assert_ne!(growing.size(), other.size());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_needs_room_takes_it_from_who_keeps_it_waiting() {
        let (budget, registry) = budget();
        let idler = registry.admit([10, 0, 0, 1].into()).unwrap();
        let mut held = Charge::none(&budget, What::Body);
        assert!(held.resize(4 * PIECE, MOMENT).await);
        let upload = Wait::begin(&idler, Part::Upload, &held);
        let mut last = Charge::none(&budget, What::Body);
        assert!(last.resize(PIECE, MOMENT).await, "by the reserve");
        let mut other = Charge::none(&budget, What::Body);
        assert!(!other.resize(PIECE, MOMENT).await, "it has had no time yet");
        let ended = {
            let idler = Arc::clone(&idler);
            tokio::spawn(async move {
                idler.cut.cancelled().await;
                drop((upload, held));
            })
        };
        assert!(other.resize(PIECE, 2 * PATIENCE).await);
        ended.await.unwrap();
    }
}
