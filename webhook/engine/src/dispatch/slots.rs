//! A few OS threads for calls that run long.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// As many threads as slots. They end when this is dropped and their calls are done.
pub(super) struct Slots {
    jobs: Sender<Job>,
    ended: CancellationToken,
    free: Arc<Semaphore>,
}

/// The right to run one job; given back when dropped.
pub(super) struct Room {
    _share: OwnedSemaphorePermit,
    _slot: OwnedSemaphorePermit,
}

impl Slots {
    pub(super) fn start(slots: usize) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let ended = CancellationToken::new();
        for number in 0..slots {
            let (queue, end) = (Arc::clone(&queue), ended.clone().drop_guard());
            thread::Builder::new()
                .name(format!("popcell-slot-{number}"))
                .spawn(move || {
                    // Dropped by a panic, too.
                    let _end = end;
                    work(&queue);
                })?;
        }
        Ok(Self {
            jobs,
            ended,
            free: Arc::new(Semaphore::new(slots)),
        })
    }

    /// Waits for a slot, in the order of asking: first for one of the share, then for one of all. `None` never happens
    /// while the semaphores live; they are not closed.
    pub(super) async fn enter(&self, share: &Arc<Semaphore>) -> Option<Room> {
        let share = Arc::clone(share).acquire_owned().await.ok()?;
        let slot = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(Room {
            _share: share,
            _slot: slot,
        })
    }

    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Resolves when one of the threads has ended, which none does by itself.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.ended.clone().cancelled_owned()
    }

    /// Runs a job at once: whoever holds a [`Room`] has a thread.
    pub(super) fn run(&self, job: Job) {
        // The threads live as long as this sender, so one receives; a lost job drops its sender and is noticed.
        let _ = self.jobs.send(job);
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("free", &self.free.available_permits())
            .finish_non_exhaustive()
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // The slot outlives a bug of the host; whoever waits for the job sees that it is gone.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a call panicked in the host");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_that_panics_ends_no_thread_and_the_end_of_a_thread_is_seen() {
        let slots = Slots::start(1).unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        slots.run(Box::new(|| panic!("a bug")));
        slots.run(Box::new(move || sender.send(()).unwrap()));
        receiver.await.unwrap();
        assert!(!slots.ended.is_cancelled());
        let ended = slots.ended();
        drop(slots);
        ended.await;
    }
}
