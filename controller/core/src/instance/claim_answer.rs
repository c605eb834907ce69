//! What the quota system says to an Instance now: its claim, or why there is none to ask.

use std::time::Duration;

use popcell_api::conditions::{messages, reasons};
use popcell_api::quota as api;

use super::{Observation, Quota};
use crate::conditions::{self, MESSAGE_BYTES};
use crate::object::{Fields, Object};
use crate::plan::cut;
use crate::remote::claim;
use crate::sizing::{self, Described};

/// How soon an Instance whose claim is being deleted is looked at again. Such a claim grants nothing.
const GOING_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Answer<'a> {
    Granted {
        reason: &'static str,
        message: String,
    },
    /// Its own claim was denied.
    Denied {
        reason: &'static str,
        message: String,
    },
    /// No decision; look again after this time, if given.
    Pending {
        reason: &'static str,
        message: String,
        again: Option<Duration>,
    },
    /// The quota system cannot be asked properly: no answer about this Instance.
    Failed {
        reason: &'static str,
        message: String,
    },
    Away(Option<&'a str>),
}

impl<'a> Answer<'a> {
    pub(super) fn to(seen: &Observation<'a>) -> Self {
        match seen.quota {
            Quota::Disabled => Self::Granted {
                reason: reasons::QUOTA_DISABLED,
                message: messages::QUOTA_ENFORCEMENT_DISABLED.to_owned(),
            },
            Quota::NoProject => pending("the labels of its namespace do not say which project it belongs to"),
            Quota::BadProject => Self::Failed {
                reason: reasons::QUOTA_PROJECT_ID_UNRESOLVABLE,
                message: format!("Namespace {} of the city names no project", seen.instance.namespace()),
            },
            Quota::Unknown(why) => Self::Away(why),
            Quota::Refused { reason, message } => Self::Failed {
                reason,
                message: message.to_owned(),
            },
            Quota::Absent => pending(""),
            Quota::Foreign(claim) => Self::Failed {
                reason: reasons::QUOTA_MISCONFIGURED,
                message: foreign(claim),
            },
            Quota::Claim(claim) => of_claim(seen, claim),
        }
    }
}

fn of_claim<'a>(seen: &Observation<'_>, claim: &Object) -> Answer<'a> {
    if claim.deleting() {
        return Answer::Pending {
            reason: reasons::PENDING_EVALUATION,
            message: waiting("an earlier ResourceClaim is being deleted"),
            again: Some(GOING_AGAIN),
        };
    }
    // What was said to another size says nothing about this Instance.
    if !sizing::is_claimed(claim, Described::instance(seen.instance)) {
        return pending("its ResourceClaim asks for another size");
    }
    let granted = conditions::of(claim, api::GRANTED);
    let text = |field| granted.map_or("", |granted| conditions::text(granted, field));
    match (text("status"), text("reason")) {
        ("True", _) => Answer::Granted {
            reason: reasons::QUOTA_AVAILABLE,
            message: text("message").to_owned(),
        },
        ("False", reasons::PENDING_EVALUATION) => unanswered(seen, claim),
        ("False", reason) => Answer::Denied {
            reason: match reason {
                reasons::VALIDATION_FAILED => reasons::VALIDATION_FAILED,
                _ => reasons::QUOTA_EXCEEDED,
            },
            message: denial(seen.instance, claim, text("message")),
        },
        _ => pending(""),
    }
}

/// A claim is born pending; one that stays so for longer than a moment has no budget to be granted from.
fn unanswered<'a>(seen: &Observation<'_>, claim: &Object) -> Answer<'a> {
    let age = claim
        .created()
        .map_or(Duration::ZERO, |created| conditions::age(created, seen.now));
    match seen.no_budget_grace.checked_sub(age) {
        None | Some(Duration::ZERO) => Answer::Pending {
            reason: reasons::QUOTA_NO_BUDGET,
            message: messages::NO_ALLOWANCE_BUCKET.to_owned(),
            again: None,
        },
        again => Answer::Pending {
            reason: reasons::PENDING_EVALUATION,
            message: waiting(""),
            again,
        },
    }
}

fn pending<'a>(why: &str) -> Answer<'a> {
    Answer::Pending {
        reason: reasons::PENDING_EVALUATION,
        message: waiting(why),
        again: None,
    }
}

fn waiting(why: &str) -> String {
    match why {
        "" => messages::WAITING_FOR_QUOTA_EVALUATION.to_owned(),
        why => format!("{}: {why}", messages::WAITING_FOR_QUOTA_EVALUATION),
    }
}

/// What the claim says, what was asked for, and since when. It changes only with the claim.
fn denial(instance: &Object, claim: &Object, said: &str) -> String {
    let described = Described::instance(instance);
    let asked: Vec<String> = sizing::requests(described)
        .into_iter()
        .map(|(type_, amount)| match type_ {
            api::VCPUS | api::MEMORY if amount == sizing::UNCOUNTED => {
                format!("an amount of {type_} that cannot be read or is beyond any range")
            }
            api::VCPUS => format!("{amount} millicores"),
            api::MEMORY => format!("{amount} MiB"),
            _ => format!("{amount} instance"),
        })
        .collect();
    let since = claim
        .created()
        .map(|time| format!(" since {}", conditions::seconds(time)))
        .unwrap_or_default();
    let why = described
        .why_unsized()
        .map(|why| format!("; {why}"))
        .unwrap_or_default();
    let asked = format!("asked for {}{since}{why}", asked.join(", "));
    match cut(said, MESSAGE_BYTES.saturating_sub(asked.len() + 3)) {
        "" => asked,
        said => format!("{said} ({asked})"),
    }
}

fn foreign(claim: &Object) -> String {
    let (namespace, name) = (claim.namespace(), claim.name());
    match claim::maker(&claim.metadata) {
        Some(maker) => format!("ResourceClaim {namespace}/{name} belongs to another owner ({maker}) and is kept"),
        None => format!("ResourceClaim {namespace}/{name} belongs to another owner and is kept"),
    }
}
