//! Counts the calls that run, so that the pool of instances is never asked for more than it has, and so that the ticker
//! sleeps while nothing runs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) struct InstanceLimiter {
    state: Mutex<State>,
    left: Condvar,
    changed: Condvar,
    capacity: usize,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: usize,
    ticker_sleeps: bool,
    closed: bool,
}

impl InstanceLimiter {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::default(),
            left: Condvar::new(),
            changed: Condvar::new(),
            capacity,
        }
    }

    /// Waits for room. The room is given back when the result is dropped.
    pub(crate) fn enter(&self) -> Entered<'_> {
        let mut state = self.lock();
        while state.running >= self.capacity {
            state.waiting += 1;
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.running += 1;
        if state.ticker_sleeps {
            state.ticker_sleeps = false;
            self.changed.notify_one();
        }
        Entered(self)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().running == 0
    }

    /// Sleeps until a call runs. `false` once the gate is closed.
    pub(crate) fn wait_for_call(&self) -> bool {
        let mut state = self.lock();
        while state.running == 0 && !state.closed {
            state.ticker_sleeps = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.ticker_sleeps = false;
        !state.closed
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Entered<'a>(&'a InstanceLimiter);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if state.waiting > 0 {
            self.0.left.notify_one();
        }
    }
}
