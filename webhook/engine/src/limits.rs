//! What one call may allocate, and which cap it met; and how many run at once, so that the pool of instances is never
//! asked for more than it has, and so that the ticker sleeps while nothing runs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use wasmtime::ResourceLimiter;

/// Elements that the tables of an instance may have; a Rust module of a few MB has some thousand.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Tables of one component: wit-component adds one for its adapters.
pub(crate) const MAX_TABLES: usize = 4;
/// Core instances of one component.
pub(crate) const MAX_CORE_INSTANCES: usize = 8;
/// Linear memories of one component.
pub(crate) const MAX_MEMORIES: usize = 1;

/// The caps of one store. Kept apart from wasmtime's own limiter to tell afterwards which one was met.
pub(crate) struct Limits {
    max_memory: usize,
    refused: Option<usize>,
    peak_memory: usize,
}

/// Ends the call; [`Limits::refused_memory`] says why.
#[derive(Debug, thiserror::Error)]
#[error("a limit was met")]
struct LimitMet;

impl Limits {
    pub(crate) fn new(max_memory: usize) -> Self {
        Self {
            max_memory,
            refused: None,
            peak_memory: 0,
        }
    }

    /// The most linear memory that the instance had, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        self.peak_memory
    }

    /// The size of linear memory, in bytes, that the instance asked for in vain.
    pub(crate) fn refused_memory(&self) -> Option<usize> {
        self.refused
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.max_memory {
            // Not `Ok(false)`: the guest would go on to abort, and only the abort would be visible.
            self.refused = Some(desired);
            return Err(LimitMet.into());
        }
        self.peak_memory = self.peak_memory.max(desired);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

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
