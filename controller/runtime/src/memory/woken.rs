//! When keys were woken: from an event to the write that follows from it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use super::{Subject, lock, subject};
use crate::queue::Key;

/// The first event of each key that waits for its pass, or whose passes failed since.
#[derive(Debug, Default)]
pub struct Woken(Mutex<HashMap<Subject, Instant>>);

impl Woken {
    /// An event woke a key.
    pub fn wake(&self, reconciler: &'static str, key: &Key) {
        lock(&self.0)
            .entry(subject(reconciler, key))
            .or_insert_with(Instant::now);
    }

    /// A pass of the key begins.
    pub fn begin(&self, reconciler: &'static str, key: &Key) -> Option<Instant> {
        lock(&self.0).remove(&subject(reconciler, key))
    }

    /// It failed: what woke it is still to be answered.
    pub fn again(&self, reconciler: &'static str, key: &Key, since: Instant) {
        lock(&self.0).insert(subject(reconciler, key), since);
    }
}

#[cfg(test)]
mod tests {
    use popcell_core::plan::Plane;

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
    }
}
