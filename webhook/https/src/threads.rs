//! The threads that serve connections, each with a runtime of its own.
//!
//! A connection stays on the thread that it was given to, so a request is read, answered and written without waking
//! another thread: on a runtime that shares its tasks, that waking is a quarter of what a short call costs. In exchange
//! one connection cannot use two cores, and a handler that does not yield holds up the connections of its thread.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Between two looks at what has arrived, a thread goes on with so many connections: each may compute for milliseconds.
const EVENTS: u32 = 16;

/// The threads end when this is dropped; what is still being served on them then is cut.
#[derive(Debug)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    ended: CancellationToken,
    _end: DropGuard,
}

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
}

/// Where one connection is served; counts as one there until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) runtime: Handle,
    connections: Arc<AtomicUsize>,
}

impl Threads {
    pub(crate) fn start(count: NonZeroUsize) -> io::Result<Self> {
        let (end, ended) = (CancellationToken::new(), CancellationToken::new());
        let all = (0..count.get())
            .map(|number| Thread::start(number, end.clone(), ended.clone().drop_guard()))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            all,
            ended,
            _end: end.drop_guard(),
        })
    }

    /// Resolves when one of the threads has ended, which none does by itself.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// A seat on the thread that serves the fewest connections.
    pub(crate) fn slot(&self) -> Option<ConnectionSlot> {
        let thread = self.all.iter().min_by_key(|thread| thread.connections.load(Relaxed))?;
        thread.connections.fetch_add(1, Relaxed);
        Some(ConnectionSlot {
            runtime: thread.runtime.clone(),
            connections: Arc::clone(&thread.connections),
        })
    }
}

impl Thread {
    fn start(number: usize, end: CancellationToken, ended: DropGuard) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(EVENTS)
            .build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name(format!("popcell-https-{number}"))
            .spawn(move || {
                // Dropped by a panic, too.
                let _ended = ended;
                runtime.block_on(end.cancelled());
            })?;
        Ok(Self {
            runtime: handle,
            connections: Arc::default(),
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_thread_is_seen() {
        let threads = Threads::start(NonZeroUsize::new(2).unwrap()).unwrap();
        let ended = threads.ended.clone();
        assert!(!ended.is_cancelled());
        drop(threads);
        ended.cancelled().await;
    }

    #[test]
    fn the_thread_with_the_fewest_connections_is_next() {
        let threads = Threads::start(NonZeroUsize::new(2).unwrap()).unwrap();
        let [first, second] = [(); 2].map(|()| threads.slot().unwrap());
        assert!(!Arc::ptr_eq(&first.connections, &second.connections));
        drop(first);
        let third = threads.slot().unwrap();
        assert!(!Arc::ptr_eq(&third.connections, &second.connections));
    }
}
