//! InterpretHealth answers one question: would moving the object to another cell help?
//!
//! | answer | when |
//! | --- | --- |
//! | healthy | Available=True (of whichever generation), or nothing is desired and the cell has seen that |
//! | undecided | Available=False or ReplicasReady=False for want of quota or data, or by the user's own mistake: the next cell fails the same way. Karmada records Unknown and moves nothing |
//! | unhealthy | everything else: no status yet, a cause in the site, NetworkFailedToCreate beside any of the above |
//!
//! Conditions are read leniently (an entry that is no object, or has no status, says nothing; of two with one type the
//! first counts); a container of another type, or a number that is none, is `InvalidObject`, which Karmada records as
//! Unknown.

use popcell_sdk::prelude::*;

/// Causes that go with the object wherever it goes: the project's quota, what the user wrote, or what the project has not.
const MOVE_WITH_THE_OBJECT: &[&str] = &[
    "PendingQuota",
    "QuotaExceeded",
    "ImageUnavailable",
    "InstanceCrashing",
    "ConfigurationError",
    "ReferencedDataNotReady",
];
/// A cause in the site. Another cell can help, whatever else is wrong.
const SITE_FAULT: &str = "NetworkFailedToCreate";

/// Whether the member object is healthy.
pub(crate) fn interpret(object: &Object) -> Result<bool> {
    let available = Condition::find(object, "Available")?;
    if available.is_some_and(|condition| condition.is("True")) || nothing_is_wanted(object)? {
        return Ok(true);
    }
    let replicas_ready = Condition::find(object, "ReplicasReady")?;
    let causes = || {
        [available, replicas_ready]
            .into_iter()
            .flatten()
            .filter(|condition| condition.is("False"))
    };
    if causes().any(|condition| condition.reason() == SITE_FAULT) {
        return Ok(false);
    }
    match causes().find(|condition| MOVE_WITH_THE_OBJECT.contains(&condition.reason())) {
        Some(cause) => Err(Error::undecided(format!(
            "{} is False with reason {}: another cell cannot help",
            cause.kind,
            cause.reason()
        ))),
        None => Ok(false),
    }
}

/// No instance is desired, and that answer is about the object's present generation.
fn nothing_is_wanted(object: &Object) -> Result<bool> {
    let desired = object.int("/status/desiredReplicas")?;
    let observed = object.int("/status/observedGeneration")?;
    Ok(desired == Some(0) && observed.is_some() && observed == object.generation()?)
}

#[derive(Clone, Copy)]
struct Condition<'a> {
    kind: &'static str,
    json: &'a Json,
}

impl<'a> Condition<'a> {
    fn find(object: &'a Object, kind: &'static str) -> Result<Option<Self>> {
        let conditions = object.items("/status/conditions")?.unwrap_or_default();
        let json = conditions.iter().find(|json| text(json, "/type") == Some(kind));
        Ok(json.map(|json| Self { kind, json }))
    }

    fn is(self, status: &str) -> bool {
        text(self.json, "/status") == Some(status)
    }

    fn reason(self) -> &'a str {
        text(self.json, "/reason").unwrap_or_default()
    }
}

fn text<'a>(json: &'a Json, pointer: &str) -> Option<&'a str> {
    // Not the reader that names what is wrong: it is not reported, and a list can be long.
    json.get(pointer)?.as_text()
}
