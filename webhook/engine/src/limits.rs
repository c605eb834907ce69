//! What one call may allocate, and which cap it met.

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
