//! How soon an Instance without quota is looked at again.

use std::time::Duration;

use jiff::Timestamp;

/// By the age of the Instance: each second in its first minute, then 15 s, a minute from 5 min on and 5 min from 10 min on.
///
/// The age counts from `metadata.creationTimestamp`, never from a condition, whose time may be the CRD's default of
/// 1970. Created in the future, or at no known time, is new.
pub fn tier(created: Option<Timestamp>, now: Timestamp) -> Duration {
    let age = created.map_or(Duration::ZERO, |created| since(created, now));
    match age.as_secs() {
        0..60 => Duration::from_secs(1),
        60..300 => Duration::from_secs(15),
        300..600 => Duration::from_mins(1),
        _ => Duration::from_mins(5),
    }
}

/// From then to now; nothing where that is in the future.
pub(super) fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or(Duration::ZERO)
}
