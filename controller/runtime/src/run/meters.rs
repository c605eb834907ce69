//! From what passes and writes tell to metrics.

use std::time::Duration;

use popcell_core::metrics::{self as table, plane_kind};
use popcell_core::plan::{Note, Plane, Target};

use super::notices::Notices;
use crate::apply::{Braking, Meter};
use crate::metrics::{Metrics, observe_pass};
use crate::world::{Outcome, Reporter};

/// Counts into the process's metrics, and tells on its Lease.
pub(super) struct Meters {
    pub(super) metrics: Metrics,
    /// `None` where there is no Lease to tell on.
    pub(super) notices: Option<Notices>,
}

impl Reporter for Meters {
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration) {
        observe_pass(&self.metrics, reconciler, outcome.as_str(), took);
    }

    fn noted(&self, note: &Note) {
        match note {
            Note::QuotaFailed(reason) => self.metrics.count(&table::QUOTA_FAILURES, &[reason]),
            Note::ClaimOrphaned => self.metrics.count(&table::QUOTA_ORPHANED_CLAIMS, &[]),
            _ => {}
        }
    }

    fn answered(&self, reconciler: &'static str, after: Duration) {
        self.metrics.observe(&table::EVENT_TO_WRITE, &[reconciler], after);
    }
}

impl Meter for Meters {
    fn wrote(&self, target: &Target, verb: &'static str, code: u16) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb, &code.to_string()];
        self.metrics.count(&table::WRITES, &labels);
    }

    fn planned(&self, target: &Target, verb: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb];
        self.metrics.count(&table::DRY_RUN, &labels);
    }

    fn suppressed(&self, target: &Target, why: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, why];
        self.metrics.count(&table::SUPPRESSED, &labels);
    }

    fn braked(&self, plane: &Plane, kind: &'static str, change: Braking) {
        if let Some(notices) = &self.notices {
            notices.braked(plane, kind, change);
        }
    }

    fn unreleased(&self, value: &str, held: &str) {
        if let Some(notices) = &self.notices {
            notices.unreleased(value, held);
        }
    }
}
