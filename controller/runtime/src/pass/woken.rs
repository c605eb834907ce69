//! When keys were woken: from an event to the write that follows from it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use popcell_core::plan::Plane;

use crate::queue::Key;

type Waiting = HashMap<(&'static str, Key), Instant>;

/// The first event of each key that waits for its pass, or whose passes failed since.
#[derive(Debug, Default)]
pub struct Woken {
    waiting: Mutex<Waiting>,
}

impl Woken {
    /// An event woke a key.
    pub fn wake(&self, reconciler: &'static str, key: &Key) {
        self.waiting()
            .entry((reconciler, key.clone()))
            .or_insert_with(Instant::now);
    }

    /// A pass of the key begins.
    pub(super) fn begin(&self, reconciler: &'static str, key: &Key) -> Option<Instant> {
        self.waiting().remove(&(reconciler, key.clone()))
    }

    /// It failed: what woke it is still to be answered.
    pub(super) fn again(&self, reconciler: &'static str, key: &Key, since: Instant) {
        self.waiting().insert((reconciler, key.clone()), since);
    }

    /// Forgets all keys of a plane.
    pub fn retire(&self, plane: &Plane) {
        self.waiting().retain(|(_, key), _| key.plane != *plane);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_counts_until_it_is_answered() {
        let (woken, key) = (Woken::default(), Key::new(&Plane::Hub, "n", "a"));
        woken.wake("r", &key);
        let first = woken.begin("r", &key).unwrap();
        assert_eq!(woken.begin("r", &key), None);
        woken.again("r", &key, first);
        woken.wake("r", &key);
        assert_eq!(woken.begin("r", &key), Some(first));
        woken.wake("r", &key);
        woken.retire(&Plane::Hub);
        assert_eq!(woken.begin("r", &key), None);
    }
}
