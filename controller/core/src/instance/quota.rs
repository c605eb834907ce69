//! QuotaGranted of an Instance: the answer of the quota system, and what stands while there is none. Once the gate is
//! gone, only a denial of its own claim takes a grant back, never an outage.
//!
//! Why: `docs/decisions/09-quota-gates-a-start.md`.

use std::time::Duration;

use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::gates;
use serde_json::Value;

use super::claim_answer::Answer;
use super::draft::quota_granted;
use super::{Observation, has_gate};
use crate::conditions::{Condition, text};
use crate::object::{Fields, Object};
use crate::sizing::Described;
use crate::slots;

/// Of a slot that is filled again while the project is unreachable.
const GRANTED_BEFORE: &str = "Granted to this slot before; the project cannot be asked now";

#[derive(Debug, Default)]
pub(super) struct QuotaDecision {
    /// QuotaGranted as it is to be; `None` leaves it as it is.
    pub(super) condition: Option<Condition>,
    /// The gate goes in this reconcile.
    pub(super) opens: bool,
    /// Look again after this time at the latest.
    pub(super) again: Option<Duration>,
}

impl QuotaDecision {
    fn of(status: &'static str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            condition: Some(Condition {
                type_: types::QUOTA_GRANTED,
                status,
                reason: reason.to_owned(),
                message: message.into(),
            }),
            opens: false,
            again: None,
        }
    }

    fn granted(gated: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            opens: gated,
            ..Self::of("True", reason, message)
        }
    }
}

pub(super) fn judge(seen: &Observation<'_>) -> QuotaDecision {
    let gated = has_gate(seen.instance, gates::QUOTA);
    match Answer::to(seen) {
        Answer::Granted { reason, message } => QuotaDecision::granted(gated, reason, message),
        Answer::Denied { reason, message } => QuotaDecision::of("False", reason, message),
        // It was let go: the last answer stands until the next one.
        _ if !gated && was_answered(seen.instance) => QuotaDecision::default(),
        Answer::Pending { reason, message, again } => QuotaDecision {
            again,
            ..QuotaDecision::of("Unknown", reason, message)
        },
        Answer::Failed { .. } | Answer::Away(_) if !gated => undecided_unless(seen.instance, |old| old == "Unknown"),
        Answer::Failed { reason, message } => QuotaDecision::of("False", reason, message),
        Answer::Away(why) => held_while_away(seen, why),
    }
}

/// The gate is there, and the project is unreachable.
fn held_while_away(seen: &Observation<'_>, why: Option<&str>) -> QuotaDecision {
    if was_granted(seen.instance) {
        // The status of this grant was written, and then the reconcile was cut short.
        return QuotaDecision {
            opens: true,
            ..QuotaDecision::default()
        };
    }
    match why {
        // A moment after a start: the list may say better than memory.
        None => undecided_unless(seen.instance, |old| old != "True"),
        Some(_) if is_remembered(seen) => QuotaDecision::granted(true, reasons::QUOTA_AVAILABLE, GRANTED_BEFORE),
        Some(why) => {
            // Servers word one outage in many ways; it is reported once.
            let reported = quota_granted(seen.instance)
                .filter(|old| text(old, "reason") == reasons::QUOTA_BACKEND_UNAVAILABLE)
                .map(|old| text(old, "message"));
            let message = reported.map_or_else(|| format!("The project cannot be asked: {why}"), str::to_owned);
            QuotaDecision::of("False", reasons::QUOTA_BACKEND_UNAVAILABLE, message)
        }
    }
}

/// Leaves QuotaGranted where its status may stay without an answer.
fn undecided_unless(instance: &Object, stays: impl Fn(&str) -> bool) -> QuotaDecision {
    if quota_granted(instance).is_some_and(|old| stays(text(old, "status"))) {
        return QuotaDecision::default();
    }
    QuotaDecision::of(
        "Unknown",
        reasons::PENDING_EVALUATION,
        messages::WAITING_FOR_QUOTA_EVALUATION,
    )
}

/// Whether QuotaGranted says what was once answered about this Instance, yes or no.
fn was_answered(instance: &Object) -> bool {
    quota_granted(instance).is_some_and(|old| match text(old, "status") {
        "True" => true,
        "False" => [reasons::QUOTA_EXCEEDED, reasons::VALIDATION_FAILED].contains(&text(old, "reason")),
        _ => false,
    })
}

/// Whether QuotaGranted says that a claim was granted to the Instance as it is now, not to an earlier generation.
fn was_granted(instance: &Object) -> bool {
    quota_granted(instance).is_some_and(|old| {
        let observed = old.get("observedGeneration").and_then(Value::as_i64);
        text(old, "status") == "True"
            && text(old, "reason") == reasons::QUOTA_AVAILABLE
            && observed.is_some()
            && observed == instance.generation()
    })
}

/// Whether the slot was granted before. What was said to this Instance itself since then weighs more.
fn is_remembered(seen: &Observation<'_>) -> bool {
    // Born Unknown, of no generation. A grant whose gate could not be taken away in one go, because another gate went
    // meanwhile and moved the generation, speaks for memory.
    let judged = quota_granted(seen.instance).is_some_and(|old| match text(old, "status") {
        "True" => text(old, "reason") != reasons::QUOTA_AVAILABLE,
        "Unknown" => old.get("observedGeneration").is_some(),
        _ => true,
    });
    !judged
        && seen.deployment.is_some_and(|deployment| {
            slots::ordinal_of(deployment.name(), seen.instance.name()).is_some_and(|slot| {
                slots::granted(deployment, Some(Described::instance(seen.instance))).contains(&slot)
            })
        })
}
