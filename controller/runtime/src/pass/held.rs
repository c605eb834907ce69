//! Differences that make the deletion guard (docs/decisions/22-proofs-and-deletion-guard.md) hold: decided
//! once for all keys, not again for each key and each delete.
//!
//! Invariant: what is remembered only ever holds deletes back. A difference that lets them go is decided for the delete that
//! asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::brake;
use popcell_core::plan::Plane;
use tokio::time::Instant;

use crate::apply::Difference;
use crate::world::World;

/// Nothing is decided anew before, whatever happens: a hub that is busy changes all the time.
const LEAST: Duration = Duration::from_secs(1);
/// Everything is decided anew after this: what the clock or a live read changes brings no event.
const MOST: Duration = Duration::from_mins(1);

/// What a difference was decided on.
type Seen = (u64, u64, u64);

#[derive(Clone, Copy, Debug)]
struct Remembered {
    difference: Difference,
    kind: Kind,
    seen: Seen,
    at: Instant,
}

/// Differences of one reconciler, by plane and kind. There are as many as brakes that hold.
#[derive(Debug, Default)]
pub(super) struct Held {
    differences: Mutex<HashMap<(Plane, &'static str), Remembered>>,
    writes: AtomicU64,
}

impl Held {
    /// The difference, as it was decided last where that is a mass deletion and nothing has changed since.
    pub(super) fn difference(
        &self,
        world: &World,
        plane: &Plane,
        kind: Kind,
        decide: impl FnOnce() -> Difference,
    ) -> Difference {
        // Before deciding: what happens meanwhile counts as a change.
        let seen = self.seen(world, plane);
        let known = self.lock().get(&(plane.clone(), kind.kind)).copied();
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
            self.lock().insert((plane.clone(), kind.kind), remembered);
        }
        difference
    }

    /// Whether a difference of this reconciler was a mass deletion, and may be held or released.
    pub(super) fn knows(&self, plane: &Plane, kind: Kind) -> bool {
        self.lock().contains_key(&(plane.clone(), kind.kind))
    }

    /// A pass of this reconciler wrote.
    pub(super) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Planes and kinds whose brake may hold.
    pub(super) fn all(&self) -> Vec<(Plane, Kind)> {
        let all = self.lock();
        all.iter()
            .map(|((plane, _), known)| (plane.clone(), known.kind))
            .collect()
    }

    /// The brake does not hold any more.
    pub(super) fn forget(&self, plane: &Plane, kind: Kind) {
        self.lock().remove(&(plane.clone(), kind.kind));
    }

    /// Events of the plane and of the hub, and writes, so far.
    fn seen(&self, world: &World, plane: &Plane) -> Seen {
        let writes = self.writes.load(Ordering::Relaxed);
        (world.changes(plane), world.changes(&Plane::Hub), writes)
    }

    // Each hold is one step of a map: there is no half-done state that a panic could leave.
    fn lock(&self) -> MutexGuard<'_, HashMap<(Plane, &'static str), Remembered>> {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_mass(kind: Kind, difference: Difference) -> bool {
    brake::is_mass(kind, difference.ours, difference.doomed)
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
    use tokio::time::advance;

    use super::*;
    use crate::world::testing::{Told, project};

    /// A difference that counts how often it is decided.
    struct Bench {
        told: Told,
        held: Held,
        decided: std::cell::Cell<usize>,
    }

    impl Bench {
        async fn new() -> Self {
            Self {
                told: Told::of(Vec::new(), &["p", "q"]).await,
                held: Held::default(),
                decided: std::cell::Cell::default(),
            }
        }

        fn ask(&self, plane: &Plane, kind: Kind, doomed: usize) -> usize {
            let decide = || {
                self.decided.set(self.decided.get() + 1);
                Difference {
                    ours: 30,
                    doomed,
                    partial: false,
                }
            };
            self.held.difference(&self.told.world, plane, kind, decide).doomed
        }

        /// How often it was decided since the last call.
        fn decided(&self) -> usize {
            self.decided.take()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mass_deletion_is_decided_once_until_something_changes() {
        let (bench, p) = (Bench::new().await, project("p"));
        for _ in 0..100 {
            assert_eq!(bench.ask(&p, INSTANCE, 25), 25);
        }
        assert_eq!(bench.decided(), 1);
        // Another kind and another plane have differences of their own.
        bench.ask(&p, WORKLOAD_DEPLOYMENT, 25);
        bench.ask(&project("q"), INSTANCE, 25);
        assert_eq!(bench.decided(), 2);

        let list = |plane: &Plane| bench.told.list(plane, INSTANCE, Vec::new());
        for (change, decided) in [
            (&(|| list(&p)) as &dyn Fn(), 1),
            (&|| list(&Plane::Hub), 1),
            (&|| bench.held.wrote(), 1),
            (&|| list(&project("q")), 0),
            (&|| (), 0),
        ] {
            change();
            bench.ask(&p, INSTANCE, 25);
            assert_eq!(bench.decided(), 0, "not oftener than once a second");
            advance(LEAST).await;
            bench.ask(&p, INSTANCE, 25);
            bench.ask(&p, INSTANCE, 25);
            assert_eq!(bench.decided(), decided);
        }
        advance(MOST).await;
        bench.ask(&p, INSTANCE, 25);
        assert_eq!(bench.decided(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_that_allows_deletes_is_never_remembered() {
        let bench = Bench::new().await;
        for _ in 0..3 {
            assert_eq!(bench.ask(&Plane::Hub, INSTANCE, 1), 1);
        }
        assert_eq!((bench.decided(), bench.held.all().len()), (3, 0));
        assert_eq!(bench.ask(&Plane::Hub, INSTANCE, 25), 25);
        advance(MOST).await;
        for _ in 0..3 {
            assert_eq!(bench.ask(&Plane::Hub, INSTANCE, 1), 1);
        }
        assert_eq!(bench.decided(), 4);
        assert_eq!(bench.held.all(), [(Plane::Hub, INSTANCE)]);
        bench.held.forget(&Plane::Hub, INSTANCE);
        assert_eq!(bench.held.all(), []);
    }
}
