//! The memory that bodies and answers of all connections of a listener may take together.
//!
//! Invariant: a byte of a body is counted when it arrives, and a byte of an answer until it is written. Who needs more than
//! there is waits a moment, and takes it from those whose clients keep much waiting for long.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::limits::Limits;
use crate::occupants::Occupants;
use crate::status::ListenerStatus;

/// What is no larger than this may also use the last quarter of the room: large requests cannot keep small ones out.
pub(crate) const SMALL: usize = 64 * 1024;
/// Between two looks for room.
const LOOK: Duration = Duration::from_millis(10);
/// Whoever finds no room frees so much at once: a part of all.
const FREED: usize = 16;

/// The room of a listener.
#[derive(Debug)]
pub(crate) struct Room {
    all: usize,
    used: AtomicUsize,
    occupants: Arc<Occupants>,
    freed: Mutex<Option<Instant>>,
    status: Arc<ListenerStatus>,
}

impl Room {
    pub(crate) fn new(limits: &Limits, occupants: Arc<Occupants>, status: Arc<ListenerStatus>) -> Self {
        Self {
            all: limits.room(),
            used: AtomicUsize::new(0),
            occupants,
            freed: Mutex::default(),
            status,
        }
    }

    /// What one body or answer that has become so large may make of the whole.
    fn share(&self, whole: usize) -> usize {
        if whole > SMALL { self.all / 4 * 3 } else { self.all }
    }

    fn take(&self, bytes: usize, share: usize) -> bool {
        let taken = self.used.fetch_update(AcqRel, Acquire, |used| {
            used.checked_add(bytes).filter(|used| *used <= share)
        });
        if let Ok(before) = taken {
            self.status.held.store(before + bytes, Relaxed);
            self.status.most_held.fetch_max(before + bytes, Relaxed);
        }
        taken.is_ok()
    }

    /// Once for all that wait at a time: what is ended needs a moment to let go.
    fn press(&self, bytes: usize) {
        let mut freed = match self.freed.try_lock() {
            Ok(freed) => freed,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return,
        };
        let now = Instant::now();
        if freed.is_none_or(|last| now.saturating_duration_since(last) >= LOOK) {
            *freed = Some(now);
            self.occupants.free(bytes.max(self.all / FREED));
        }
    }
}

/// A share of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    room: Arc<Room>,
    bytes: usize,
}

impl Charge {
    pub(crate) fn none(room: &Arc<Room>) -> Self {
        Self {
            room: Arc::clone(room),
            bytes: 0,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Becomes so large, or smaller. Waits for at most `patience`; false when there is no room until then, and it is what
    /// it was. What is larger than all that it could have counts as that.
    pub(crate) async fn resize(&mut self, bytes: usize, patience: Duration) -> bool {
        let share = self.room.share(bytes);
        let bytes = bytes.min(share);
        let Some(more) = bytes.checked_sub(self.bytes) else {
            self.shrink(bytes);
            return true;
        };
        if self.room.take(more, share) {
            self.bytes = bytes;
            return true;
        }
        let until = Instant::now() + patience;
        loop {
            self.room.press(more);
            sleep(LOOK).await;
            if self.room.take(more, share) {
                self.bytes = bytes;
                return true;
            }
            if Instant::now() >= until {
                self.room.status.no_room.fetch_add(1, Relaxed);
                return false;
            }
        }
    }

    fn shrink(&mut self, bytes: usize) {
        let before = self.room.used.fetch_sub(self.bytes - bytes, AcqRel);
        self.room.status.held.store(before - (self.bytes - bytes), Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shrink(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PER_CONNECTION;
    use crate::occupant::{PATIENCE, Part, Wait};

    const MOMENT: Duration = Duration::from_millis(100);
    const UNIT: usize = 100 * 1024;

    /// Room for 16 units.
    fn room() -> (Arc<Room>, Arc<Occupants>) {
        let limits = Limits {
            memory: PER_CONNECTION + 16 * UNIT,
            connections: 1,
            body: 0,
            ..Limits::default()
        };
        let status = Arc::new(ListenerStatus::default());
        let occupants = Arc::new(Occupants::new(&limits, Arc::clone(&status)));
        (Arc::new(Room::new(&limits, Arc::clone(&occupants), status)), occupants)
    }

    #[tokio::test(start_paused = true)]
    async fn large_ones_leave_a_quarter_to_small_ones() {
        let (room, _) = room();
        let mut large = Charge::none(&room);
        assert!(large.resize(12 * UNIT, MOMENT).await);
        let (mut more, mut small) = (Charge::none(&room), Charge::none(&room));
        assert!(!more.resize(UNIT, MOMENT).await);
        assert!(small.resize(SMALL, MOMENT).await);
        drop(large);
        assert!(more.resize(UNIT, MOMENT).await);
        assert!(more.resize(0, MOMENT).await);
        drop((more, small));
        assert_eq!(room.used.load(Relaxed), 0);
        assert_eq!(room.status.held.load(Relaxed), 0);
        assert_eq!(room.status.most_held.load(Relaxed), 12 * UNIT + SMALL);
        assert_eq!(room.status.no_room.load(Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_large_for_all_counts_as_all_that_it_could_have() {
        let (room, _) = room();
        let mut huge = Charge::none(&room);
        assert!(huge.resize(100 * UNIT, MOMENT).await);
        assert_eq!(huge.bytes, 12 * UNIT);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_needs_room_takes_it_from_who_keeps_it_waiting() {
        let (room, occupants) = room();
        let idler = occupants.admit([10, 0, 0, 1].into()).unwrap();
        let mut held = Charge::none(&room);
        assert!(held.resize(12 * UNIT, MOMENT).await);
        let upload = Wait::begin(&idler, Part::Upload, 12 * UNIT);
        let mut other = Charge::none(&room);
        assert!(!other.resize(UNIT, MOMENT).await, "it has had no time yet");
        let ended = {
            let idler = Arc::clone(&idler);
            tokio::spawn(async move {
                idler.cut.cancelled().await;
                drop((upload, held));
            })
        };
        assert!(other.resize(UNIT, 2 * PATIENCE).await);
        ended.await.unwrap();
    }
}
