//! What is reported at transitions of an Instance, and counted: an unchanged one tells nothing twice.

use popcell_api::conditions::{self as types, reasons};
use popcell_api::{events, kind};

use super::draft::Draft;
use crate::conditions;
use crate::metrics::quota_failures;
use crate::object::{Fields, Object};
use crate::plan::{Event, Note, Plan, Plane};

/// Adds Warnings and counts for reasons that the Instance got to by this draft.
pub(super) fn transitions(instance: &Object, draft: &Draft<'_>, plan: &mut Plan) {
    let watched: [(&str, &[&str]); 2] = [
        (types::QUOTA_GRANTED, &events::QUOTA_FAILURES),
        (types::READY, &events::STUCK),
    ];
    for (type_, named) in watched {
        let reason = draft.reason_of(type_);
        let before = instance
            .at("/status")
            .and_then(|status| conditions::find(status, type_))
            .map(|old| conditions::text(old, "reason"));
        if before == Some(reason) || !named.contains(&reason) {
            continue;
        }
        let message = draft.message_of(type_);
        plan.events
            .push(Event::warning(&Plane::Cell, kind::INSTANCE, instance, reason, message));
        plan.notes.extend(counted(reason).map(Note::QuotaFailed));
    }
}

/// The value of the label `reason` of `compute_quota_eval_failures_total`.
fn counted(reason: &str) -> Option<&'static str> {
    Some(match reason {
        reasons::QUOTA_BACKEND_UNAVAILABLE => quota_failures::BACKEND_UNAVAILABLE,
        reasons::QUOTA_PROJECT_NOT_FOUND => quota_failures::PROJECT_NOT_FOUND,
        reasons::QUOTA_NAMESPACE_NOT_FOUND => quota_failures::NAMESPACE_NOT_FOUND,
        reasons::QUOTA_MISCONFIGURED => quota_failures::MISCONFIGURED,
        reasons::QUOTA_PROJECT_ID_UNRESOLVABLE => quota_failures::PROJECT_ID_UNRESOLVABLE,
        reasons::QUOTA_NO_BUDGET => quota_failures::NO_BUDGET,
        _ => return None,
    })
}
