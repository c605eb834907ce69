//! Statuses that a server rejects: what they would say cannot be seen, and neither can why, so an Event says it.
//!
//! Invariants: an object gets an Event of one cause once, however often the write is retried and however long that lasts; of no
//! more than [`CAUSES`], since whoever refuses chooses the words; and again only where the status was accepted in between
//! and the last Event is older than [`AGAIN`], so that a policy which comes and goes makes no flood.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::plan::Target;
use tokio::time::Instant;

use super::{Address, address};

/// So many causes of one object are reported.
const CAUSES: usize = 4;
/// How soon an object is told of a cause again, once its status was accepted.
const AGAIN: Duration = Duration::from_hours(1);

#[derive(Debug)]
struct ReportedCauses {
    uid: String,
    causes: BTreeSet<u64>,
    last: Instant,
    accepted: bool,
}

/// Objects whose status is rejected, or was lately.
#[derive(Debug, Default)]
pub(crate) struct RejectedStatuses(BTreeMap<Address, ReportedCauses>);

impl RejectedStatuses {
    /// The status of an object is rejected: whether that is to be reported.
    pub(crate) fn is_news(&mut self, target: &Target, uid: &str, cause: u64, now: Instant) -> bool {
        let is_over =
            |reported: &ReportedCauses| reported.uid != uid || reported.accepted && now >= reported.last + AGAIN;
        let address = address(target);
        if self.0.get(&address).is_some_and(is_over) {
            self.0.remove(&address);
        }
        let reported = self.0.entry(address).or_insert_with(|| ReportedCauses {
            uid: uid.to_owned(),
            causes: BTreeSet::new(),
            last: now,
            accepted: false,
        });
        reported.accepted = false;
        let is_news = reported.causes.len() < CAUSES && reported.causes.insert(cause);
        if is_news {
            reported.last = now;
        }
        is_news
    }

    /// The status of an object is written.
    pub(crate) fn accepted(&mut self, target: &Target, now: Instant) {
        if self.0.is_empty() {
            return;
        }
        let address = address(target);
        if let Some(reported) = self.0.get_mut(&address) {
            reported.accepted = true;
            if now >= reported.last + AGAIN {
                self.0.remove(&address);
            }
        }
    }

    /// An object is gone.
    pub(crate) fn forget(&mut self, target: &Target) {
        self.0.remove(&address(target));
    }

    /// A kind is not watched any more.
    pub(crate) fn forget_kind(&mut self, kind: Kind) {
        self.0.retain(|(name, ..), _| *name != kind.kind);
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::WORKLOAD;
    use popcell_core::plan::Plane;

    use super::*;

    #[test]
    fn an_object_is_reported_a_cause_once_however_often_it_is_refused() {
        let (mut rejected_statuses, start) = (RejectedStatuses::default(), Instant::now());
        let target = Target::namespaced(&Plane::Cell, WORKLOAD, "n", "web");
        let other = Target::namespaced(&Plane::Cell, WORKLOAD, "n", "other");
        let mut reported =
            |target: &Target, uid: &str, cause, at: Duration| rejected_statuses.is_news(target, uid, cause, start + at);
        assert!(reported(&target, "u", 1, Duration::ZERO));
        for hours in 0..100 {
            assert!(!reported(&target, "u", 1, AGAIN * hours));
        }
        assert!(reported(&other, "o", 1, Duration::ZERO) && reported(&target, "u", 2, Duration::ZERO));
        // Another object of the name.
        assert!(reported(&target, "v", 1, Duration::ZERO));
        // Words without end.
        let news = (0..1000).filter(|cause| reported(&target, "v", *cause, Duration::ZERO));
        assert_eq!(news.count(), CAUSES - 1);
    }

    #[test]
    fn a_policy_that_comes_and_goes_is_reported_once_an_hour() {
        let (mut rejected_statuses, start) = (RejectedStatuses::default(), Instant::now());
        let target = Target::namespaced(&Plane::Cell, WORKLOAD, "n", "web");
        let mut reported = 0;
        for minute in 0..180 {
            let now = start + Duration::from_mins(minute);
            reported += usize::from(rejected_statuses.is_news(&target, "u", 1, now));
            rejected_statuses.accepted(&target, now);
        }
        assert_eq!(reported, 3);
        rejected_statuses.accepted(&target, start + AGAIN * 4);
        assert!(rejected_statuses.0.is_empty());
        assert!(rejected_statuses.is_news(&target, "u", 1, start));
        rejected_statuses.forget(&target);
        assert!(rejected_statuses.is_news(&target, "u", 1, start));
        rejected_statuses.forget_kind(WORKLOAD);
        assert!(rejected_statuses.0.is_empty());
    }
}
