//! Events at transitions of a condition: an unchanged state tells nothing twice.

use popcell_api::conditions as types;
use popcell_api::conditions::reasons::REJECTED;
use popcell_api::kind::Kind;
use serde_json::Value;

use crate::conditions;
use crate::object::{Fields, Object};
use crate::plan::{Event, Plane};
use crate::priority;

/// A Warning when the object gets to a reason of Available that needs action.
pub(crate) fn blocked(plane: &Plane, kind: Kind, object: &Object, status: &Value) -> Option<Event> {
    let new = conditions::find(status, types::AVAILABLE)?;
    let reason = conditions::text(new, "reason");
    let same = said(object, types::AVAILABLE) == Some(reason);
    if !same && priority::of(reason) > priority::BLOCKING {
        let message = conditions::text(new, "message");
        return Some(Event::warning(plane, kind, object, reason, message));
    }
    rejected(plane, kind, object, status)
}

/// A Warning when a server begins to reject what has to be written for the object, whatever runs meanwhile.
pub(crate) fn rejected(plane: &Plane, kind: Kind, object: &Object, status: &Value) -> Option<Event> {
    let reported = [types::AVAILABLE, types::REPLICAS_READY];
    if reported.iter().any(|type_| said(object, type_) == Some(REJECTED)) {
        return None;
    }
    let mut new = reported.iter().filter_map(|type_| conditions::find(status, type_));
    let new = new.find(|one| conditions::text(one, "reason") == REJECTED)?;
    let message = conditions::text(new, "message");
    Some(Event::warning(plane, kind, object, REJECTED, message))
}

/// The reason of a condition before this reconcile.
fn said<'a>(object: &'a Object, type_: &str) -> Option<&'a str> {
    let old = conditions::find(object.at("/status")?, type_)?;
    Some(conditions::text(old, "reason"))
}
