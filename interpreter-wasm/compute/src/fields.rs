//! Where the fields are that more than one operation reads.

use popcell_sdk::prelude::*;

/// Instances that the object asks for (CRD: required int32).
pub(crate) const MIN_REPLICAS: &str = "/spec/scaleSettings/minReplicas";
/// Upper bound of an autoscaler (CRD: optional int32).
pub(crate) const MAX_REPLICAS: &str = "/spec/scaleSettings/maxReplicas";
/// The status as a whole.
pub(crate) const STATUS: &str = "/status";

/// A count of instances at `pointer`: absent, or 0..=2^31-1. Anything else is refused by name.
pub(crate) fn count(object: &Json, pointer: &str) -> Result<Option<i32>> {
    let Some(number) = object.int(pointer)? else {
        return Ok(None);
    };
    i32::try_from(number)
        .ok()
        .filter(|count| *count >= 0)
        .map(Some)
        .ok_or_else(|| {
            Error::invalid(
                pointer,
                format!("expected a count from 0 to {}, found {number}", i32::MAX),
            )
        })
}

/// A number that may be missing or unreadable without making the rest of the answer worthless: either is `None`.
pub(crate) fn readable_int(json: &Json, pointer: &str) -> Option<i64> {
    json.int(pointer).ok().flatten()
}
