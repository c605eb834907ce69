//! The operations that are measured.

use popcell_protocol::Operation;

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
