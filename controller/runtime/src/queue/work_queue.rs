//! The queue with tasks and a clock.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use popcell_core::deployment::PROGRESS;
use popcell_core::plan::Plane;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::Key;
use super::backoff::Backoff;
use super::rate_limit::RateLimit;
use super::state::{Queue, Requeue, Stats, Urgency, Workers};
use crate::sync::lock;

/// How long a key waits for what it is about to settle: a provider's word is followed at once by what it means for Ready.
const SETTLED: Duration = Duration::from_millis(100);

/// A handle on one queue: clones share it. Keys may be added before and while it runs.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl WorkQueue {
    /// An empty queue.
    pub fn new(workers: Workers) -> Self {
        Self::rate_limited(workers, None)
    }

    /// The same, whose keys come at this pace at most.
    pub fn rate_limited(workers: Workers, rate_limit: Option<RateLimit>) -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::new(Queue::rate_limited(workers, rate_limit)),
                changed: Notify::new(),
            }),
        }
    }

    /// Something happened to the key. Never blocks for long: fit for a watch's own task.
    pub fn add(&self, key: Key) {
        lock(&self.shared.queue).add(key, Instant::now());
        self.shared.changed.notify_one();
    }

    /// Something happened to the key that is as urgent as this.
    pub fn add_with(&self, key: Key, urgency: Urgency) {
        let now = Instant::now();
        {
            let mut queue = lock(&self.shared.queue);
            match urgency {
                Urgency::AtOnce => queue.add(key, now),
                Urgency::Settled => queue.add_at(key, now + SETTLED, now),
                Urgency::Gathered => queue.add_at(key, now + PROGRESS, now),
                Urgency::Progress => queue.add_progress(key, now),
            }
        }
        self.shared.changed.notify_one();
    }

    /// Forgets all keys of a plane that is disengaged.
    pub fn retire(&self, plane: &Plane) {
        lock(&self.shared.queue).retire(plane);
    }

    /// Values for metrics.
    pub fn stats(&self) -> Stats {
        lock(&self.shared.queue).stats(Instant::now())
    }

    /// Runs reconciles until `stop`, then waits for those that run. Call it once.
    ///
    /// A reconcile that panics counts as failed, and is told to the log: one object must not end the process for the
    /// others.
    pub async fn run<P, F>(&self, reconcile: P, stop: CancellationToken)
    where
        P: Fn(Arc<Key>) -> F + Send + Sync + 'static,
        F: Future<Output = Requeue> + Send + 'static,
    {
        let reconcile = Arc::new(reconcile);
        let mut reconciles = JoinSet::new();
        while !stop.is_cancelled() {
            while let Some(key) = self.next() {
                reconciles.spawn(self.clone().work(Arc::clone(&reconcile), key));
            }
            let due = lock(&self.shared.queue).next_due();
            tokio::select! {
                () = self.shared.changed.notified() => {}
                () = wait_until(due) => {}
                () = stop.cancelled() => {}
                Some(ended) = reconciles.join_next() => worked(ended),
            }
        }
        while let Some(ended) = reconciles.join_next().await {
            worked(ended);
        }
    }

    async fn work<P, F>(self, reconcile: Arc<P>, key: Arc<Key>)
    where
        P: Fn(Arc<Key>) -> F,
        F: Future<Output = Requeue>,
    {
        let guarded = AssertUnwindSafe(async { reconcile(Arc::clone(&key)).await }).catch_unwind();
        let requeue = guarded.await.unwrap_or_else(|_| {
            error!(%key, "reconcile panicked");
            Requeue::WithBackoff(Backoff::TRANSIENT)
        });
        lock(&self.shared.queue).done(&key, requeue, Instant::now());
        self.shared.changed.notify_one();
    }

    fn next(&self) -> Option<Arc<Key>> {
        lock(&self.shared.queue).pop(Instant::now())
    }
}

/// A worker ended. Reconciles that panic are caught: one that panics all the same has left the queue in a state that no code
/// knows, and its key would never come again.
fn worked(ended: Result<(), JoinError>) {
    if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
        resume_unwind(panic);
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(name: &str) -> Key {
        Key::new(&Plane::Project("p".to_owned()), "default", name)
    }

    fn queue(total: usize) -> WorkQueue {
        WorkQueue::new(Workers { total, share: total })
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_comes_back_after_its_time_and_stops_with_the_queue() {
        let queue = queue(2);
        queue.add(key("a"));
        let (start, stop) = (Instant::now(), CancellationToken::new());
        let (seen, stopper) = (Arc::new(Mutex::new(Vec::new())), stop.clone());
        let log = Arc::clone(&seen);
        let reconcile = move |_| {
            let mut seen = log.lock().unwrap();
            seen.push(start.elapsed().as_secs());
            if seen.len() == 3 {
                stopper.cancel();
            }
            async { Requeue::After(Duration::from_secs(5)) }
        };
        queue.run(reconcile, stop).await;
        assert_eq!(*seen.lock().unwrap(), [0, 5, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_a_failure_of_its_key_only() {
        let queue = queue(1);
        queue.add(key("bad"));
        queue.add(key("good"));
        let stop = CancellationToken::new();
        let (reconciles, stopper) = (Arc::new(AtomicUsize::new(0)), stop.clone());
        let count = Arc::clone(&reconciles);
        let reconcile = move |key: Arc<Key>| {
            let (count, stopper) = (Arc::clone(&count), stopper.clone());
            async move {
                let number = count.fetch_add(1, Ordering::Relaxed);
                assert!(number > 0, "the first reconcile of {key} panics");
                if number == 2 {
                    stopper.cancel();
                }
                Requeue::OnEvent
            }
        };
        queue.run(reconcile, stop).await;
        assert_eq!(reconciles.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "overflow")]
    async fn a_worker_that_panics_beside_its_reconcile_ends_the_queue() {
        let queue = queue(1);
        queue.add(key("a"));
        // A time that no clock has: the queue panics after the reconcile, and the key would never come again.
        let running = queue.run(async |_| Requeue::After(Duration::MAX), CancellationToken::new());
        tokio::time::timeout(Duration::from_mins(1), running).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_reconciles_that_run() {
        let queue = queue(1);
        queue.add(key("a"));
        queue.add(key("b"));
        let stop = CancellationToken::new();
        let (ended, stopper) = (Arc::new(AtomicUsize::new(0)), stop.clone());
        let count = Arc::clone(&ended);
        let reconcile = move |_| {
            let (count, stopper) = (Arc::clone(&count), stopper.clone());
            async move {
                stopper.cancel();
                tokio::time::sleep(Duration::from_secs(3)).await;
                count.fetch_add(1, Ordering::Relaxed);
                Requeue::OnEvent
            }
        };
        queue.run(reconcile, stop).await;
        assert_eq!(ended.load(Ordering::Relaxed), 1);
        assert_eq!(queue.stats().depth, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_during_the_rest_after_a_failure_is_heard_at_once() {
        let queue = queue(1);
        queue.add(key("a"));
        let stop = CancellationToken::new();
        let (start, seen, stopper) = (Instant::now(), Arc::new(Mutex::new(Vec::new())), stop.clone());
        let log = Arc::clone(&seen);
        let reconcile = move |_| {
            let mut seen = log.lock().unwrap();
            seen.push(start.elapsed());
            if seen.len() == 2 {
                stopper.cancel();
            }
            async { Requeue::WithBackoff(Backoff::REFUSED) }
        };
        let events = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            queue.add(key("a"));
        };
        tokio::join!(queue.run(reconcile, stop), events);
        assert_eq!(*seen.lock().unwrap(), [Duration::ZERO, Duration::from_millis(10)]);
    }
}
