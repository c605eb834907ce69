//! From what passes and writes tell to metrics.

use std::time::Duration;

use popcell_core::metrics::{self as table, plane_kind};
use popcell_core::plan::{Note, Target};

use crate::apply::Meter;
use crate::metrics::{Metrics, observe_pass};
use crate::pass::{Outcome, Reporter};

/// Counts into the process's metrics.
pub(super) struct Meters(pub(super) Metrics);

impl Reporter for Meters {
    fn passed(&self, reconciler: &'static str, outcome: Outcome, took: Duration) {
        observe_pass(&self.0, reconciler, outcome.as_str(), took);
    }

    fn noted(&self, note: &Note) {
        if let Note::QuotaFailed(reason) = note {
            self.0.count(&table::QUOTA_FAILURES, &[reason]);
        }
    }

    fn answered(&self, reconciler: &'static str, after: Duration) {
        self.0.observe(&table::EVENT_TO_WRITE, &[reconciler], after);
    }
}

impl Meter for Meters {
    fn wrote(&self, target: &Target, verb: &'static str, code: u16) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb, &code.to_string()];
        self.0.count(&table::WRITES, &labels);
    }

    fn planned(&self, target: &Target, verb: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, verb];
        self.0.count(&table::DRY_RUN, &labels);
    }

    fn suppressed(&self, target: &Target, why: &'static str) {
        let labels = [plane_kind(&target.plane), target.kind.kind, why];
        self.0.count(&table::SUPPRESSED, &labels);
    }
}
