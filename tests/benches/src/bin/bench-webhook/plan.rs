//! What is measured, and how much.

use popcell_protocol::Operation;
use serde::Serialize;

/// The six that Karmada calls all the time, those that read first.
pub(crate) const MEASURED: [Operation; 6] = [
    Operation::InterpretHealth,
    Operation::InterpretReplica,
    Operation::InterpretStatus,
    Operation::ReviseReplica,
    Operation::Retain,
    Operation::AggregateStatus,
];

/// Whether the answer is a patch.
pub(crate) fn patches(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus
    )
}

/// Numbers of calls.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    /// A result is the median of this many rounds.
    pub(crate) rounds: usize,
    /// Calls per round, peer, operation and number of callers.
    pub(crate) count: usize,
    /// Calls before each of them that are not measured.
    pub(crate) warm_up: usize,
    /// Concurrent callers.
    pub(crate) callers: Vec<usize>,
    /// Calls of the engine alone per round and operation.
    pub(crate) engine_calls: usize,
    /// Calls about each large object.
    pub(crate) large_calls: usize,
    /// After how many calls in all the memory of the server is looked at.
    pub(crate) memory_calls: [usize; 2],
}

impl Plan {
    /// For results that count: some minutes.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 5,
            count: 600,
            warm_up: 100,
            callers: vec![1, 16],
            engine_calls: 4000,
            large_calls: 15,
            memory_calls: [10_000, 200_000],
        }
    }

    /// For seeing that it runs.
    pub(crate) fn short() -> Self {
        Self {
            rounds: 1,
            count: 32,
            warm_up: 8,
            callers: vec![1, 16],
            engine_calls: 50,
            large_calls: 1,
            memory_calls: [300, 900],
        }
    }
}
