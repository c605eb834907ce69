//! From a request to an answer on an async runtime, so that a module that loops delays no other call.
//!
//! A call first runs right here for a short time, which is all that nearly every call needs. When that time is up it is
//! run again, from the start (calls are pure), on one of a few slots. A module holds at most half of the slots while there
//! are others. A call that waits too long for a slot is sent away, and Karmada asks again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use popcell_protocol::{Answer, Request, decode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::module::Stop;
use crate::{Call, CallError, Cause, EngineError, Module, Modules, Settings};

/// A module that was given less than this is not blamed for not finishing.
const FAIR: Duration = Settings::CALL_TIMEOUT.0;

/// Answers requests with the modules of a process.
#[derive(Debug)]
pub struct Dispatcher {
    modules: Arc<Modules>,
    call_timeout: Duration,
    fast_budget: Duration,
    slots: Slots,
    /// For each module, in the order of `modules`, the slots that it may hold.
    shares: Vec<Arc<Semaphore>>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub result: CallResult,
    /// The module that was asked.
    pub module: Option<Arc<Module>>,
    /// Where the call ran last.
    pub path: Path,
    /// How long it waited for a slot.
    pub queued: Duration,
    /// How long it ran, on both paths together.
    pub ran: Duration,
}

/// The answer to a request, or why there is none.
#[derive(Debug)]
pub enum CallResult {
    /// A checked answer.
    Answer(Answer),
    /// The call failed; asking again would not help.
    Error(CallError),
    /// There was no room in time; asking again in a second helps.
    Overloaded,
}

impl CallResult {
    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Answer(_) => "ok",
            Self::Error(error) => error.label(),
            Self::Overloaded => "overloaded",
        }
    }
}

/// Where a call ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// On the thread that received it.
    Fast,
    /// On a slot.
    Slow,
}

impl Path {
    /// The label in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

impl Dispatcher {
    /// Starts the slots.
    pub fn new(modules: Arc<Modules>, settings: &Settings) -> Result<Self, EngineError> {
        settings.check()?;
        // A module alone in the process has no other to leave room for.
        let share = if modules.iter().len() > 1 {
            (settings.slots / 2).max(1)
        } else {
            settings.slots
        };
        Ok(Self {
            shares: modules.iter().map(|_| Arc::new(Semaphore::new(share))).collect(),
            modules,
            call_timeout: settings.call_timeout,
            fast_budget: settings.fast_budget,
            slots: Slots::start(settings.slots).map_err(EngineError::Thread)?,
        })
    }

    /// The modules that answer.
    pub fn modules(&self) -> &Arc<Modules> {
        &self.modules
    }

    /// How many more calls could run long right now.
    pub fn free_slots(&self) -> usize {
        self.slots.free()
    }

    /// Resolves when a thread for calls that run long has ended, which none does by itself.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.slots.ended()
    }

    /// Answers before `deadline`, to about ten milliseconds. Dropping the future frees what the call holds.
    pub async fn interpret(&self, request: &Request<'_>, deadline: Instant) -> Outcome {
        let call = Call::of(request);
        let Some(index) = self.modules.index(call.kind, call.operation) else {
            return self.no_module(&call);
        };
        let (Some(module), Some(share)) = (self.modules.iter().nth(index), self.shares.get(index)) else {
            return self.no_module(&call);
        };
        let started = Instant::now();
        let total = deadline.saturating_duration_since(started);
        let outcome = |result, ran| Outcome {
            result,
            module: Some(Arc::clone(module)),
            path: Path::Fast,
            queued: Duration::ZERO,
            ran,
        };
        if total.is_zero() {
            return outcome(CallResult::Overloaded, Duration::ZERO);
        }
        let (answer, _) = module.call_until(&call, &Stop::after(self.fast_budget.min(total)));
        let ran = started.elapsed();
        if answer.as_ref().is_err_and(CallError::is_expired) {
            let (result, queued, more) = self.on_a_slot(module, share, request, deadline).await;
            return Outcome {
                path: Path::Slow,
                queued,
                ..outcome(result, ran + more)
            };
        }
        outcome(answer.map_or_else(CallResult::Error, CallResult::Answer), ran)
    }

    fn no_module(&self, call: &Call<'_>) -> Outcome {
        let cause = Cause::NoModule {
            kind_is_served: self.modules.serves(call.kind),
        };
        Outcome {
            result: CallResult::Error(CallError::new(None, call, cause)),
            module: None,
            path: Path::Fast,
            queued: Duration::ZERO,
            ran: Duration::ZERO,
        }
    }

    /// With how long it waited for the slot, and how long it ran there.
    async fn on_a_slot(
        &self,
        module: &Arc<Module>,
        share: &Arc<Semaphore>,
        request: &Request<'_>,
        deadline: Instant,
    ) -> (CallResult, Duration, Duration) {
        let asked = Instant::now();
        let patience = deadline.saturating_duration_since(asked) / 4;
        let room = tokio::time::timeout(patience, self.slots.enter(share)).await;
        let started = Instant::now();
        let queued = started - asked;
        let budget = deadline.saturating_duration_since(started).min(self.call_timeout);
        let (Ok(Some(room)), false) = (room, budget.is_zero()) else {
            return (CallResult::Overloaded, queued, Duration::ZERO);
        };

        let (sender, receiver) = oneshot::channel();
        let abandoned = Abandoned::default();
        let stop = Stop::after(budget).or_when(Arc::clone(&abandoned.0));
        // The call outlives this request's buffer where the request is given up, and is read again from its own.
        let (body, module) = (request.body.to_owned(), Arc::clone(module));
        self.slots.run(Box::new(move || {
            let request = decode(&body);
            let answer = request.map(|request| module.call_until(&Call::of(&request), &stop).0);
            // First the slot is free, then the caller is notified.
            drop(room);
            if let Ok(answer) = answer {
                // The receiver is gone when the request was given up.
                drop(sender.send(answer));
            }
        }));
        let result = match receiver.await {
            Ok(Ok(answer)) => CallResult::Answer(answer),
            Ok(Err(error)) if error.is_expired() && budget < FAIR => CallResult::Overloaded,
            Ok(Err(error)) => CallResult::Error(error),
            Err(_) => {
                let cause = Cause::Failed("the host failed to run the call".into());
                CallResult::Error(CallError::new(None, &Call::of(request), cause))
            }
        };
        (result, queued, started.elapsed())
    }
}

/// Tells the guest to stop when the request that waits for it is dropped.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// As many threads as slots. They end when this is dropped and their calls are done.
struct Slots {
    jobs: Sender<Job>,
    ended: CancellationToken,
    free: Arc<Semaphore>,
}

/// The right to run one job; given back when dropped.
struct Room {
    _share: OwnedSemaphorePermit,
    _slot: OwnedSemaphorePermit,
}

impl Slots {
    fn start(slots: usize) -> std::io::Result<Self> {
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
    async fn enter(&self, share: &Arc<Semaphore>) -> Option<Room> {
        let share = Arc::clone(share).acquire_owned().await.ok()?;
        let slot = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(Room {
            _share: share,
            _slot: slot,
        })
    }

    fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Resolves when one of the threads has ended, which none does by itself.
    fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.ended.clone().cancelled_owned()
    }

    /// Runs a job at once: whoever holds a [`Room`] has a thread.
    fn run(&self, job: Job) {
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
        let (sender, receiver) = oneshot::channel();
        slots.run(Box::new(|| panic!("a bug")));
        slots.run(Box::new(move || sender.send(()).unwrap()));
        receiver.await.unwrap();
        assert!(!slots.ended.is_cancelled());
        let ended = slots.ended();
        drop(slots);
        ended.await;
    }
}
