//! Differences that make the deletion guard (docs/decisions/22-proofs-and-deletion-guard.md) hold: decided
//! once for all keys, not again for each key and each delete.
//!
//! Invariant: what is remembered only ever holds deletes back. A difference that lets them go is decided for the delete that
//! asks.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::deletion_guard::{self, Difference};
use tokio::time::Instant;

use crate::sync::lock;

/// Nothing is decided again before, whatever happens: a hub that is busy changes all the time.
const LEAST: Duration = Duration::from_secs(1);
/// Everything is decided again after this: what the clock or a live read changes brings no event.
const MOST: Duration = Duration::from_mins(1);

/// What a difference was decided on: how many events there were of its plane and of the hub, and how many writes.
pub(crate) type Seen = (u64, u64, u64);

#[derive(Clone, Copy, Debug)]
struct Remembered {
    difference: Difference,
    kind: Kind,
    seen: Seen,
    at: Instant,
}

/// Differences on one plane, by reconciler and kind. There are as many as guards that hold.
#[derive(Debug, Default)]
pub(crate) struct PendingDeletes(Mutex<HashMap<(&'static str, &'static str), Remembered>>);

impl PendingDeletes {
    /// The difference, as it was decided last where that is a mass deletion and nothing has changed since. What was `seen` was
    /// so before deciding: what happens meanwhile counts as a change.
    pub(crate) fn difference(
        &self,
        reconciler: &'static str,
        kind: Kind,
        seen: Seen,
        decide: impl FnOnce() -> Difference,
    ) -> Difference {
        let subject = (reconciler, kind.kind);
        let known = lock(&self.0).get(&subject).copied();
        if let Some(known) = known
            && is_mass(kind, known.difference)
            && (known.at.elapsed() < LEAST || known.seen == seen && known.at.elapsed() < MOST)
        {
            return known.difference;
        }
        let difference = decide();
        if known.is_some() || is_mass(kind, difference) {
            let remembered = Remembered {
                difference,
                kind,
                seen,
                at: Instant::now(),
            };
            lock(&self.0).insert(subject, remembered);
        }
        difference
    }

    /// Whether a difference of this reconciler was a mass deletion, and may be held or released.
    pub(crate) fn knows(&self, reconciler: &'static str, kind: Kind) -> bool {
        lock(&self.0).contains_key(&(reconciler, kind.kind))
    }

    /// Kinds whose guard may hold because of this reconciler.
    pub(crate) fn kinds(&self, reconciler: &'static str) -> Vec<Kind> {
        let all = lock(&self.0);
        let own = all.iter().filter(|((of, _), _)| *of == reconciler);
        own.map(|(_, known)| known.kind).collect()
    }

    /// The guard does not hold any more.
    pub(crate) fn forget(&self, reconciler: &'static str, kind: Kind) {
        lock(&self.0).remove(&(reconciler, kind.kind));
    }
}

fn is_mass(kind: Kind, difference: Difference) -> bool {
    deletion_guard::is_mass(kind, difference.ours, difference.to_delete)
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
    use tokio::time::advance;

    use super::*;

    /// Differences that count how often they are decided.
    #[derive(Default)]
    struct Bench {
        held: PendingDeletes,
        decided: std::cell::Cell<usize>,
    }

    impl Bench {
        fn ask(&self, kind: Kind, seen: Seen, to_delete: usize) -> usize {
            let decide = || {
                self.decided.set(self.decided.get() + 1);
                Difference {
                    ours: 30,
                    to_delete,
                    partial: false,
                }
            };
            self.held.difference("r", kind, seen, decide).to_delete
        }

        /// How often it was decided since the last call.
        fn decided(&self) -> usize {
            self.decided.take()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mass_deletion_is_decided_once_until_something_changes() {
        let bench = Bench::default();
        for _ in 0..100 {
            assert_eq!(bench.ask(INSTANCE, (0, 0, 0), 25), 25);
        }
        assert_eq!(bench.decided(), 1);
        // Another kind and another reconciler have differences of their own.
        bench.ask(WORKLOAD_DEPLOYMENT, (0, 0, 0), 25);
        assert_eq!(bench.decided(), 1);
        assert!(bench.held.knows("r", INSTANCE) && !bench.held.knows("other", INSTANCE));

        // An event of the plane, one of the hub, a write, and none of these.
        for (seen, decided) in [((1, 0, 0), 1), ((1, 1, 0), 1), ((1, 1, 1), 1), ((1, 1, 1), 0)] {
            bench.ask(INSTANCE, seen, 25);
            assert_eq!(bench.decided(), 0, "not oftener than once a second");
            advance(LEAST).await;
            bench.ask(INSTANCE, seen, 25);
            bench.ask(INSTANCE, seen, 25);
            assert_eq!(bench.decided(), decided);
        }
        advance(MOST).await;
        bench.ask(INSTANCE, (1, 1, 1), 25);
        assert_eq!(bench.decided(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_that_allows_deletes_is_never_remembered() {
        let bench = Bench::default();
        for _ in 0..3 {
            assert_eq!(bench.ask(INSTANCE, (0, 0, 0), 1), 1);
        }
        assert_eq!((bench.decided(), bench.held.kinds("r").len()), (3, 0));
        assert_eq!(bench.ask(INSTANCE, (0, 0, 0), 25), 25);
        advance(MOST).await;
        for _ in 0..3 {
            assert_eq!(bench.ask(INSTANCE, (0, 0, 0), 1), 1);
        }
        assert_eq!(bench.decided(), 4);
        assert_eq!(bench.held.kinds("r"), [INSTANCE]);
        bench.held.forget("r", INSTANCE);
        assert_eq!(bench.held.kinds("r"), []);
    }
}
