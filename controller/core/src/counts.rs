//! The numbers of instances that a status carries.

/// Their fields, in the order in which they are written. The schema requires each of them.
pub(crate) const COUNTS: [&str; 5] = [
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
];
