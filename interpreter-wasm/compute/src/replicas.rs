//! InterpretReplica: how many instances the object asks for, and what one of them needs.
//!
//! Requirements are answered only for one replica or more: with requirements and no replicas Karmada's scheduler clears
//! the clusters of the binding, and the object is deleted from its cell instead of scaled to nothing.
//! A missing `minReplicas` is refused by name; the CRD requires it, and every guess would start or stop instances.

use crate::{fields, sizing};
use popcell_sdk::prelude::*;

/// Replicas and requirements of a resource template.
pub(crate) fn interpret(object: &Object) -> Result<Replicas> {
    let replicas = fields::count(object, fields::MIN_REPLICAS)?
        .ok_or_else(|| Error::invalid(fields::MIN_REPLICAS, "expected a count of replicas, found nothing"))?;
    let requirements = if replicas > 0 {
        sizing::requirements(object)?
    } else {
        None
    };
    Ok(Replicas {
        replicas: i64::from(replicas),
        requirements,
    })
}
