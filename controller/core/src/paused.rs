//! The pause annotation: a paused object is shown as paused, and nothing else is written for it. Its own deletion waits
//! too.
//!
//! Why: `docs/decisions/18-pause.md`.

use jiff::Timestamp;
use popcell_api::annotations;
use popcell_api::kind::Kind;
use serde_json::{Map, Value};

use crate::conditions::{self, Condition};
use crate::edit::Edit;
use crate::object::{Fields, Object};
use crate::plan::{Note, Plan, Plane};

/// Type and reason of the condition that shows it.
pub const PAUSED: &str = "Paused";
const MESSAGE: &str = "Annotation compute.datumapis.com/paused is \"true\": nothing is written for it";

/// Whether the object is paused.
pub fn is_paused(object: &Object) -> bool {
    object.annotation(annotations::PAUSED) == Some(annotations::PAUSED_TRUE)
}

/// Shows it once; nothing else. An object without a status has counts to give first, so there it is only noted.
pub(crate) fn plan(plane: &Plane, kind: Kind, object: &Object, now: Timestamp) -> Plan {
    let old = object.at("/status");
    let status = old.and_then(Value::as_object).filter(|status| !status.is_empty());
    Plan {
        status: status.and_then(|status| {
            let mut status = status.clone();
            conditions::put_in(
                &mut status,
                Condition::new(PAUSED, true, PAUSED, MESSAGE).render(old, None, now),
            );
            Edit::status(plane, kind, object, Value::Object(status))
        }),
        notes: vec![Note::Paused],
        ..Plan::default()
    }
}

/// The object's own status with another condition in it, of this generation, and not paused any more; its other fields and
/// conditions stay.
pub(crate) fn reported_instead(
    object: &Object,
    condition: &Condition,
    observed: Option<i64>,
    now: Timestamp,
) -> Map<String, Value> {
    let old = object.at("/status");
    let mut status = old.and_then(Value::as_object).cloned().unwrap_or_default();
    lift(&mut status);
    conditions::put_in(&mut status, condition.render(old, observed, now));
    status
}

/// Takes the condition out of a status again.
pub(crate) fn lift(status: &mut Map<String, Value>) {
    conditions::take_out(status, PAUSED);
}
