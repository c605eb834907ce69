//! A writer of lines that never blocks its caller: a thread writes, and what it cannot keep up with is counted.
//!
//! Why not `tracing-appender` 0.2: it bounds lines and not bytes, and counts only lines that found no room, not those that
//! could not be written.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// Bytes that wait to be written. What comes when they are reached is lost.
const MOST: usize = 1024 * 1024;
/// A longer line is cut.
const LONGEST: usize = 64 * 1024;
/// How often the number of lost lines is logged.
const REPORT: Duration = Duration::from_secs(10);
/// Between two tries at a file that is busy (`O_NONBLOCK`).
const BUSY: Duration = Duration::from_millis(10);

/// The writer; clones write to the same place.
#[derive(Debug, Clone)]
pub(super) struct Lossy(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    written: Condvar,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The thread has taken a line that is not written yet.
    writing: bool,
}

impl Lossy {
    /// Starts the thread that writes to `target`. Where the system refuses one, every line is lost, and counted.
    pub(super) fn start(target: Box<dyn Write + Send>) -> Self {
        let queue = Arc::new(Queue::default());
        let own = Arc::clone(&queue);
        let started = thread::Builder::new().name("popcell-log".to_owned()).spawn(move || {
            let mut target = target;
            // Each panic has taken a line with it, so this ends.
            while catch_unwind(AssertUnwindSafe(|| own.write_all(&mut *target))).is_err() {
                own.lost.fetch_add(1, Relaxed);
            }
        });
        drop(started);
        Self(queue)
    }

    /// Leaves a line to the thread, or counts it as lost.
    pub(super) fn push(&self, line: &[u8]) {
        let cut = line.get(..LONGEST);
        let mut state = self.0.state();
        let size = cut.map_or(line.len(), |cut| cut.len() + 1);
        if state.bytes + size > MOST {
            self.0.lost.fetch_add(1, Relaxed);
            return;
        }
        state.bytes += size;
        state.lines.push_back(match cut {
            Some(cut) => [cut, b"\n"].concat().into(),
            None => line.into(),
        });
        drop(state);
        self.0.filled.notify_one();
    }

    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }

    /// Waits until everything is written, for at most `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let busy = |state: &mut State| state.writing || !state.lines.is_empty();
        drop(self.0.written.wait_timeout_while(self.0.state(), limit, busy));
    }
}

impl Queue {
    fn write_all(&self, mut target: &mut (dyn Write + Send)) {
        let (mut reported, mut reported_at) = (0, None::<Instant>);
        loop {
            let line = self.next();
            if put(&mut target, &line).is_err() {
                self.lost.fetch_add(1, Relaxed);
                continue;
            }
            let lost = self.lost.load(Relaxed);
            if lost > reported && reported_at.is_none_or(|at| at.elapsed() >= REPORT) {
                // It comes back to this queue as a line.
                tracing::warn!(
                    lines = lost - reported,
                    "log lines were lost: standard error did not accept them"
                );
                (reported, reported_at) = (lost, Some(Instant::now()));
            }
        }
    }

    fn next(&self) -> Box<[u8]> {
        let mut state = self.state();
        state.writing = false;
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.writing = true;
                return line;
            }
            self.written.notify_all();
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all of a line.
fn put(target: &mut impl Write, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        match target.write(line) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => line = line.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(BUSY),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Write for Lossy {
    /// `tracing-subscriber` writes each event in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lossy {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// Takes a piece only when it is allowed to, and notes it.
    struct Gate {
        allowed: Receiver<io::Result<usize>>,
        taken: Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a sender it is closed.
            let most = self
                .allowed
                .recv()
                .unwrap_or_else(|_| Err(ErrorKind::BrokenPipe.into()))?;
            let size = most.min(bytes.len());
            drop(self.taken.send(bytes[..size].to_vec()));
            Ok(size)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Lossy, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let ((allow, allowed), (taken, seen)) = (channel(), channel());
        (Lossy::start(Box::new(Gate { allowed, taken })), allow, seen)
    }

    #[test]
    fn a_reader_that_does_not_read_delays_no_writer_and_lost_lines_are_counted() {
        let (log, allow, seen) = gated();
        let line = vec![b'x'; 10_000];
        let began = Instant::now();
        for _ in 0..1000 {
            log.push(&line);
        }
        log.flush(Duration::from_millis(50));
        assert!(began.elapsed() < LONG);
        // One is in the hands of the thread or has been in the queue with the others.
        let kept = u64::try_from(MOST / line.len()).unwrap();
        assert!((1000 - kept - 1..=1000 - kept).contains(&log.lost()), "{}", log.lost());
        let lost = log.lost();
        for _ in 0..1000 - lost {
            allow.send(Ok(usize::MAX)).unwrap();
        }
        log.flush(LONG);
        assert_eq!(seen.try_iter().count() as u64, 1000 - lost);
        allow.send(Ok(usize::MAX)).unwrap();
        log.push(b"again\n");
        log.flush(LONG);
        assert_eq!(seen.try_recv().unwrap(), b"again\n");
    }

    #[test]
    fn a_closed_or_full_file_costs_lines_and_nothing_else() {
        let (log, allow, seen) = gated();
        allow.send(Err(ErrorKind::StorageFull.into())).unwrap();
        allow.send(Err(ErrorKind::WouldBlock.into())).unwrap();
        allow.send(Err(ErrorKind::Interrupted.into())).unwrap();
        allow.send(Ok(3)).unwrap();
        allow.send(Ok(usize::MAX)).unwrap();
        log.push(b"lost\n");
        log.push(b"second\n");
        log.flush(LONG);
        assert_eq!(log.lost(), 1);
        assert_eq!(
            seen.try_iter().collect::<Vec<_>>(),
            [b"sec".to_vec(), b"ond\n".to_vec()]
        );
        drop(allow);
        for _ in 0..10 {
            log.push(b"x\n");
        }
        log.flush(LONG);
        assert_eq!(log.lost(), 11);
    }

    #[test]
    fn a_writer_that_panics_costs_a_line_and_not_the_thread() {
        struct Panics(Option<Sender<Vec<u8>>>, Sender<Vec<u8>>);
        impl Write for Panics {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                assert!(self.0.take().is_none(), "a bug");
                drop(self.1.send(bytes.to_vec()));
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (taken, seen) = channel();
        let log = Lossy::start(Box::new(Panics(Some(taken.clone()), taken)));
        log.push(b"lost\n");
        log.push(b"second\n");
        log.flush(LONG);
        assert_eq!((log.lost(), seen.try_recv().unwrap()), (1, b"second\n".to_vec()));
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let (log, allow, seen) = gated();
        allow.send(Ok(usize::MAX)).unwrap();
        log.push(&vec![b'x'; 2 * LONGEST]);
        log.flush(LONG);
        let line = seen.try_recv().unwrap();
        assert_eq!((line.len(), line.last()), (LONGEST + 1, Some(&b'\n')));
    }
}
