//! InterpretStatus: the part of the member's status that goes upward, which is all of it.
//!
//! Fields that nobody here knows are carried as they are. Two keys are added for the hub (Karmada's own pattern,
//! [`popcell_sdk::generation`]): `generation` of the member object and `resourceTemplateGeneration`, the hub generation
//! that the member object was made from. Both names are ours in this status; a member's field of the same name is
//! replaced. An annotation that cannot be read is left out, and the hub then never takes the status for current: the
//! counts matter more than the bookkeeping. No status, `null` and `{}` say nothing and are answered `{}`.

use crate::fields;
use popcell_sdk::generation;
use popcell_sdk::prelude::*;

/// The status of a member object, always a JSON object.
pub(crate) fn interpret(object: &Object) -> Result<Json> {
    if object.fields(fields::STATUS)?.is_none() {
        return Ok(Json::object::<&str, Json>([]));
    }
    let mut reflected = object.get(fields::STATUS).cloned().unwrap_or_default();
    reflected.retain_fields(|key, _| !is_added(key));
    if reflected.as_fields().is_some_and(|mut fields| fields.next().is_some()) {
        generation::note(&mut reflected, object)?;
    }
    Ok(reflected)
}

/// Whether a key of an interpreted status was added here, and is no field of the member's.
pub(crate) fn is_added(key: &str) -> bool {
    [generation::GENERATION, generation::TEMPLATE_GENERATION]
        .iter()
        .any(|pointer| pointer.strip_prefix('/') == Some(key))
}
