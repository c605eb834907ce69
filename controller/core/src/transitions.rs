//! Events at transitions of a condition: an unchanged world tells nothing twice.

use popcell_api::conditions as types;
use popcell_api::kind::Kind;
use serde_json::Value;

use crate::conditions;
use crate::object::{Fields, Object};
use crate::plan::{Event, Plane};
use crate::priority;

/// A Warning when the object gets to a reason of Available that somebody must act on.
pub(crate) fn blocked(plane: &Plane, kind: Kind, object: &Object, status: &Value) -> Option<Event> {
    let new = conditions::find(status, types::AVAILABLE)?;
    let reason = conditions::text(new, "reason");
    let old = object
        .at("/status")
        .and_then(|status| conditions::find(status, types::AVAILABLE));
    let same = old.is_some_and(|old| conditions::text(old, "reason") == reason);
    (!same && priority::of(reason) > priority::BLOCKING)
        .then(|| Event::warning(plane, kind, object, reason, conditions::text(new, "message")))
}
