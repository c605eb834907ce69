//! The configured wasmtime engine, and what an operator can set.

use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{Entered, InstanceLimiter, MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES};
use crate::{swap, ticker};

/// Native stack of a guest. Threads that call need about twice as much; Rust's and tokio's have 2 MiB.
const MAX_STACK: usize = 512 << 10;
/// Memory of an instance that is cleared and kept for the next one, in place of being given back: page faults, not
/// instantiation, are what a fresh instance costs.
const KEEP_RESIDENT: usize = 2 << 20;

/// Why the engine cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A setting is out of its range.
    #[error("failed to start the engine: {setting} {message}")]
    Setting {
        /// Its name on the command line, without dashes.
        setting: &'static str,
        /// The range and the value.
        message: String,
    },
    /// wasmtime refused every configuration.
    #[error("failed to start the engine: {0}")]
    Wasmtime(String),
    /// The clock of deadlines, or a slot, could not be started.
    #[error("failed to start a thread of the engine: {0}")]
    Thread(std::io::Error),
}

/// Where instances get their memory from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Slots reserved at the start, 4 GiB of address space each: no bounds checks, cheap fresh instances.
    Pooling,
    /// Slots reserved at the start, each just as large as the memory cap: for hosts that limit address space.
    PoolingCompact,
    /// Mapped for every call: slow, for hosts that refuse both reservations.
    OnDemand,
}

impl Allocator {
    /// The name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pooling => "pooling",
            Self::PoolingCompact => "pooling-compact",
            Self::OnDemand => "on-demand",
        }
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Compiles and runs modules under one set of limits. Cheap to share, expensive to make: one for each process.
pub struct Engine {
    pub(crate) wasmtime: wasmtime::Engine,
    settings: Settings,
    allocator: Allocator,
    scans: bool,
    limiter: Arc<InstanceLimiter>,
    ended: CancellationToken,
}

impl Engine {
    /// Reserves the memory of all instances and starts the clock of deadlines. Where the reservation is refused it
    /// warns and takes a dearer [`Allocator`].
    pub fn new(settings: &Settings) -> Result<Arc<Self>, EngineError> {
        Self::with_scan(settings, !swap::may_swap())
    }

    /// As [`Engine::new`], for tests and benchmarks; `scan` says whether memory is cleared by what the kernel says was
    /// written, where the kernel can say it.
    pub fn with_scan(settings: &Settings, scan: bool) -> Result<Arc<Self>, EngineError> {
        settings.check()?;
        let mut refused = String::new();
        for allocator in [Allocator::Pooling, Allocator::PoolingCompact, Allocator::OnDemand] {
            match wasmtime::Engine::new(&config(settings, allocator, scan)) {
                Ok(wasmtime) => return Self::start(wasmtime, settings, allocator, scan, &refused),
                Err(error) => refused = format!("{error:#}"),
            }
        }
        Err(EngineError::Wasmtime(refused))
    }

    fn start(
        wasmtime: wasmtime::Engine,
        settings: &Settings,
        allocator: Allocator,
        scan: bool,
        refused: &str,
    ) -> Result<Arc<Self>, EngineError> {
        if allocator != Allocator::Pooling {
            tracing::warn!(
                %allocator, refused,
                "the address space for instances could not be reserved: calls are slower (is there a ulimit -v?)"
            );
        }
        if !scan {
            tracing::info!(
                "memory of this process may be swapped out: instances are cleared as a whole, some microseconds a call \
                 (to avoid it, run without swap or with memory.swap.max=0)"
            );
        }
        let limiter = Arc::new(InstanceLimiter::new(settings.instances()));
        let ended = ticker::start(wasmtime.weak(), Arc::clone(&limiter)).map_err(EngineError::Thread)?;
        Ok(Arc::new(Self {
            wasmtime,
            settings: settings.clone(),
            allocator,
            scans: scan && allocator != Allocator::OnDemand && PoolingAllocationConfig::is_pagemap_scan_available(),
            limiter,
            ended,
        }))
    }

    /// Where instances get their memory from.
    pub fn allocator(&self) -> Allocator {
        self.allocator
    }

    /// Whether memory is cleared by what the kernel says was written. Off where memory of the process may be swapped out:
    /// the kernel does not say it of a page that is not there.
    pub fn scans_memory(&self) -> bool {
        self.scans
    }

    /// The limits that this engine was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Resolves when the clock of deadlines stands still: it does so by itself only after a panic, and no module that loops
    /// is stopped any more.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.ended.clone().cancelled_owned()
    }

    /// Waits until an instance may be made. The room is given back when the result is dropped, so drop the store first.
    pub(crate) fn enter(&self) -> Entered<'_> {
        self.limiter.enter()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.limiter.close();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("settings", &self.settings)
            .field("allocator", &self.allocator)
            .finish_non_exhaustive()
    }
}

pub(crate) fn config(settings: &Settings, allocator: Allocator, scan: bool) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(MAX_STACK)
        // Calls are synchronous; the state of component-model tasks would cost microseconds for nothing.
        .concurrency_support(false)
        // Same input, same bytes, on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    if allocator != Allocator::Pooling {
        config
            .memory_reservation(settings.max_memory as u64)
            .memory_reservation_for_growth(0)
            .memory_guard_size(64 << 10);
    }
    if allocator != Allocator::OnDemand {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings, scan)));
    }
    config
}

fn pool(settings: &Settings, scan: bool) -> PoolingAllocationConfig {
    let instances = u32::try_from(settings.instances()).unwrap_or(u32::MAX);
    let each = |count: usize| instances.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(each(MAX_CORE_INSTANCES))
        .total_memories(each(MAX_MEMORIES))
        .total_tables(each(MAX_TABLES))
        .max_core_instances_per_component(u32::try_from(MAX_CORE_INSTANCES).unwrap_or(u32::MAX))
        .max_memories_per_component(u32::try_from(MAX_MEMORIES).unwrap_or(u32::MAX))
        .max_tables_per_component(u32::try_from(MAX_TABLES).unwrap_or(u32::MAX))
        .max_tables_per_module(u32::try_from(MAX_TABLES).unwrap_or(u32::MAX))
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_memory_size(settings.max_memory)
        // A limit on size, not a reservation: the size of a compiled module decides, and that was capped when it was read.
        .max_core_instance_size(16 << 20)
        .max_component_instance_size(16 << 20)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .pagemap_scan(if scan { Enabled::Auto } else { Enabled::No });
    pool
}

/// Limits of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest time one call may run in a module; 0.1 s to 30 s.
    pub call_timeout: Duration,
    /// The most linear memory one call may have, in bytes; 1 MiB to 1 GiB.
    pub max_memory: usize,
    /// How many calls may run at once after they have used up the short budget of the fast path; at least 1.
    pub slots: usize,
    /// Admit modules for kinds of the core, `apps`, admission and Karmada groups.
    pub allow_core_kinds: bool,
    /// The largest answer of a module, in bytes. Objects in etcd end at 1.5 MiB.
    pub max_answer: usize,
    /// How long a call may run on the thread that received it before it is run again on a slot.
    pub fast_budget: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(2),
            max_memory: 64 << 20,
            slots: cores().max(2),
            allow_core_kinds: false,
            max_answer: 3 << 20,
            fast_budget: Duration::from_millis(2),
        }
    }
}

impl Settings {
    /// The shortest and the longest [`Settings::call_timeout`].
    pub const CALL_TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let refuse = |setting, message: &str| {
            Err(EngineError::Setting {
                setting,
                message: message.to_owned(),
            })
        };
        if self.call_timeout < Self::CALL_TIMEOUT.0 || self.call_timeout > Self::CALL_TIMEOUT.1 {
            return refuse(
                "call-timeout",
                &format!("must be 0.1 s to 30 s, is {:?}", self.call_timeout),
            );
        }
        if self.max_memory < 1 << 20 || self.max_memory > 1 << 30 {
            return refuse(
                "max-memory",
                &format!("must be 1 MiB to 1 GiB, is {} bytes", self.max_memory),
            );
        }
        if self.slots == 0 || self.slots > 1000 {
            return refuse("slots", &format!("must be 1 to 1000, is {}", self.slots));
        }
        if self.max_answer == 0 || self.fast_budget.is_zero() {
            return refuse("max-answer, fast-budget", "must not be 0");
        }
        Ok(())
    }

    /// How many instances may live at once: those of the slots and those of the threads that receive calls.
    pub(crate) fn instances(&self) -> usize {
        self.slots + (2 * cores()).max(16)
    }
}

fn cores() -> usize {
    available_parallelism().map_or(2, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_the_clock_is_seen() {
        let engine = Engine::new(&Settings::default()).unwrap();
        let ended = engine.ended();
        assert!(!engine.ended.is_cancelled());
        engine.limiter.close();
        // It sleeps for want of calls, or will soon.
        tokio::time::timeout(std::time::Duration::from_secs(20), ended)
            .await
            .unwrap();
    }
}
