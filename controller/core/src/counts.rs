//! The numbers of instances that a status carries (domain.md 1.1, 1.2).

/// Their fields, in the order in which they are written. The schema wants each of them (domain.md B30).
pub(crate) const COUNTS: [&str; 5] = [
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
];
