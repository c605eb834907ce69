//! Keys whose requests are held up because those of others were refused in the same place.
//!
//! Invariants: of those that wait in one place for one reason one looks whether writes are accepted again, as soon as that
//! may be tried, and the others cost nothing meanwhile; the first whose write is accepted as it was enqueues all; the one
//! that looks has a successor when it ends, and when it was refused again, since that may be its own fault.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use popcell_core::plan::Plane;

use crate::apply::WriteScope;
use crate::queue::{Key, WorkQueue, jitter};
use crate::sync::lock;

/// When those that wait look by themselves, for the case that no other key does it for them: twice this at most.
const BY_ITSELF: Duration = Duration::from_mins(1);

type Who = (&'static str, Key);

#[derive(Debug, Default)]
struct Lines {
    places: HashMap<WriteScope, Line>,
    /// In which line each one is, and at which place in it.
    within: HashMap<Who, (WriteScope, u64)>,
    last: u64,
}

impl Lines {
    /// Puts one at the end of a line, where it is not in it; whether it is the one that looks.
    fn join(&mut self, who: &Who, scope: &WriteScope) -> bool {
        let line = self.places.entry(scope.clone()).or_insert_with(|| Line {
            looks: who.clone(),
            rest: BTreeMap::new(),
        });
        let looks = line.looks == *who;
        if !self.within.contains_key(who) {
            self.last += 1;
            if !looks {
                line.rest.insert(self.last, who.clone());
            }
            self.within.insert(who.clone(), (scope.clone(), self.last));
        }
        looks
    }

    /// Takes one out of its line; who looks from now on, where it was the one that did.
    fn leave(&mut self, who: &Who) -> Option<Who> {
        let (scope, place) = self.within.remove(who)?;
        let line = self.places.get_mut(&scope)?;
        if line.looks != *who {
            line.rest.remove(&place);
            return None;
        }
        let next = line.rest.pop_first().map(|(_, next)| next);
        match &next {
            Some(next) => line.looks = next.clone(),
            None => {
                self.places.remove(&scope);
            }
        }
        next
    }

    /// The line ends: the keys that waited in it.
    fn end(&mut self, scope: &WriteScope) -> Vec<Who> {
        let Some(line) = self.places.remove(scope) else {
            return Vec::new();
        };
        let all: Vec<Who> = line.rest.into_values().chain([line.looks]).collect();
        for who in &all {
            self.within.remove(who);
        }
        all
    }
}

#[derive(Debug)]
struct Line {
    looks: Who,
    rest: BTreeMap<u64, Who>,
}

/// Who waits where.
#[derive(Debug, Default)]
pub struct WaitList {
    lines: Mutex<Lines>,
    queues: OnceLock<BTreeMap<&'static str, WorkQueue>>,
}

impl WaitList {
    /// Keys are enqueued by these queues, by the name of their reconciler.
    pub fn listen(&self, queues: BTreeMap<&'static str, WorkQueue>) {
        // A second dispatch is not listened to.
        let _ = self.queues.set(queues);
    }

    /// A write of a key was not tried, and may be after `delay`: how long the key waits.
    pub(crate) fn wait_behind(
        &self,
        reconciler: &'static str,
        key: &Key,
        scope: &WriteScope,
        delay: Duration,
    ) -> Duration {
        let who = (reconciler, key.clone());
        let mut lines = lock(&self.lines);
        let is_elsewhere = lines.within.get(&who).is_some_and(|(before, _)| before != scope);
        let next = if is_elsewhere { lines.leave(&who) } else { None };
        let looks = lines.join(&who, scope);
        drop(lines);
        self.wake_all(next);
        if looks { delay } else { by_itself(&who).max(delay) }
    }

    /// A write of a key was refused again: another one looks, and how long this one waits; `None` where no key waits with
    /// it.
    pub(crate) fn refused(&self, reconciler: &'static str, key: &Key, at: &WriteScope) -> Option<Duration> {
        let who = (reconciler, key.clone());
        let mut lines = lock(&self.lines);
        let (scope, _) = lines.within.get(&who).filter(|(scope, _)| scope.is_beside(at))?;
        let scope = scope.clone();
        lines
            .places
            .get(&scope)
            .filter(|line| line.looks == who && !line.rest.is_empty())?;
        let next = lines.leave(&who);
        lines.join(&who, &scope);
        drop(lines);
        self.wake_all(next);
        Some(by_itself(&who))
    }

    /// A key does not wait any more.
    pub(crate) fn left(&self, reconciler: &'static str, key: &Key) {
        let mut lines = lock(&self.lines);
        if lines.within.is_empty() {
            return;
        }
        let next = lines.leave(&(reconciler, key.clone()));
        drop(lines);
        self.wake_all(next);
    }

    /// What was refused in these places is accepted again, whoever asked.
    pub(crate) fn opened(&self, spots: &[WriteScope]) {
        let mut lines = lock(&self.lines);
        if spots.is_empty() || lines.within.is_empty() {
            return;
        }
        let is_open = |scope: &&WriteScope| spots.iter().any(|one| one.is_beside(scope));
        let open: Vec<WriteScope> = lines.places.keys().filter(is_open).cloned().collect();
        let all: Vec<Who> = open.iter().flat_map(|scope| lines.end(scope)).collect();
        drop(lines);
        self.wake_all(all);
    }

    /// Forgets what concerns a plane. Those that waited for it look by themselves.
    pub fn retire(&self, plane: &Plane) {
        let mut lines = lock(&self.lines);
        lines.places.retain(|scope, _| scope.plane != *plane);
        lines.within.retain(|_, (scope, _)| scope.plane != *plane);
        let of_plane = lines.within.keys().filter(|(_, key)| key.plane == *plane);
        let gone: Vec<Who> = of_plane.cloned().collect();
        let next: Vec<Who> = gone.iter().filter_map(|who| lines.leave(who)).collect();
        drop(lines);
        self.wake_all(next);
    }

    fn wake_all(&self, all: impl IntoIterator<Item = Who>) {
        for (reconciler, key) in all {
            self.enqueue(reconciler, key);
        }
    }

    /// A reconcile of a key as soon as it is its turn.
    pub fn enqueue(&self, reconciler: &'static str, key: Key) {
        if let Some(queue) = self.queues.get().and_then(|queues| queues.get(reconciler)) {
            queue.add(key);
        }
    }
}

/// When a key that is not enqueued looks.
fn by_itself(who: &Who) -> Duration {
    BY_ITSELF + jitter(BY_ITSELF, who)
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::INSTANCE;
    use popcell_core::plan::Target;

    use super::*;
    use crate::queue::Workers;

    const SOON: Duration = Duration::from_secs(8);

    fn scope(namespace: &str) -> WriteScope {
        WriteScope::at(&Target::namespaced(&Plane::Hub, INSTANCE, namespace, "i"), "create")
    }

    fn key(name: &str) -> Key {
        Key::new(&Plane::Cell, "n", name)
    }

    fn waiting() -> (WaitList, WorkQueue) {
        let (waiting, queue) = (WaitList::default(), WorkQueue::new(Workers { total: 1, share: 1 }));
        waiting.listen([("r", queue.clone())].into());
        (waiting, queue)
    }

    #[tokio::test]
    async fn one_retries_and_the_first_accepted_write_enqueues_all() {
        let (waiting, queue) = waiting();
        let delays: Vec<Duration> = (0..1000)
            .map(|number| waiting.wait_behind("r", &key(&number.to_string()), &scope("n"), SOON))
            .collect();
        assert_eq!(delays.iter().filter(|delay| **delay == SOON).count(), 1);
        assert!(
            delays[1..]
                .iter()
                .all(|delay| (BY_ITSELF..=2 * BY_ITSELF).contains(delay))
        );
        assert_eq!(
            waiting.wait_behind("r", &key("0"), &scope("n"), SOON),
            SOON,
            "it goes on looking"
        );
        waiting.opened(&[scope("other")]);
        assert_eq!(queue.stats().depth, 0);
        waiting.opened(&[scope("n")]);
        assert_eq!(queue.stats().depth, 1000);
        assert!(lock(&waiting.lines).places.is_empty() && lock(&waiting.lines).within.is_empty());
    }

    #[tokio::test]
    async fn one_that_is_refused_again_goes_to_the_end_of_the_line() {
        let (waiting, queue) = waiting();
        assert_eq!(waiting.refused("r", &key("a"), &scope("n")), None);
        for name in ["a", "b", "c"] {
            waiting.wait_behind("r", &key(name), &scope("n"), SOON);
        }
        assert_eq!(waiting.refused("r", &key("b"), &scope("n")), None, "it did not look");
        for (name, depth) in [("a", 1), ("b", 2), ("c", 3), ("a", 3)] {
            assert_eq!(
                waiting.wait_behind("r", &key(name), &scope("n"), SOON),
                SOON,
                "{name} looks"
            );
            assert!(waiting.refused("r", &key(name), &scope("n")) >= Some(BY_ITSELF));
            assert_eq!(queue.stats().depth, depth, "{name}");
        }
        for name in ["a", "b", "c"] {
            waiting.left("r", &key(name));
        }
        assert!(lock(&waiting.lines).places.is_empty() && lock(&waiting.lines).within.is_empty());
    }

    #[tokio::test]
    async fn the_one_that_retries_has_a_successor() {
        let (waiting, queue) = waiting();
        for name in ["a", "b"] {
            waiting.wait_behind("r", &key(name), &scope("n"), SOON);
        }
        waiting.left("r", &key("a"));
        assert_eq!(queue.stats().depth, 1);
        assert_eq!(waiting.wait_behind("r", &key("b"), &scope("n"), SOON), SOON);
        // It goes to wait elsewhere, and nobody is left here.
        assert_eq!(waiting.wait_behind("r", &key("b"), &scope("m"), SOON), SOON);
        assert_eq!(lock(&waiting.lines).places.len(), 1);
        waiting.retire(&Plane::Hub);
        assert!(lock(&waiting.lines).places.is_empty() && lock(&waiting.lines).within.is_empty());
        waiting.wait_behind("r", &key("b"), &scope("m"), SOON);
        waiting.retire(&Plane::Cell);
        assert!(lock(&waiting.lines).within.is_empty());
    }
}
