//! Rules for Workloads at admission (domain.md 3.1; design.md 7.5-2, -17).
//!
//! Creates and updates keep the same rules (domain.md G1). An update that changes no spec, and one of an object that is
//! being deleted, are admitted unread: our own finalizer writes pass through here. Of an update, only cities and networks
//! that are new are checked against what exists.

mod access;
mod field;
mod keys;
mod placements;
mod runtime;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::BTreeSet;

use popcell_api::WorkloadSpec;
use serde::Deserialize;

pub use access::{NetworkUse, access_denied, access_failed, access_review, networks_to_review, project_of};
pub use field::{Fault, FieldError};

use crate::object::{Fields, Object};
use crate::workload;
use field::Faults;

/// Whether there is anything to look at.
pub fn is_reviewed(old: Option<&Object>, new: &Object) -> bool {
    let unchanged = old.is_some_and(|old| old.at("/spec") == new.at("/spec"));
    !new.deleting() && !unchanged
}

/// All faults of a create (`old` is `None`) or an update. `cities` are the codes of usable LocationBindings
/// ([`crate::bindings::usable_cities`]).
pub fn validate(old: Option<&Object>, new: &Object, cities: &BTreeSet<&str>) -> Vec<FieldError> {
    if !is_reviewed(old, new) {
        return Vec::new();
    }
    let mut faults = Faults::default();
    let null = serde_json::Value::Null;
    match WorkloadSpec::deserialize(new.at("/spec").unwrap_or(&null)) {
        Err(error) => faults.invalid("spec", "...", &format!("cannot be read: {error}")),
        Ok(spec) => {
            let known = old.map(workload::cities).unwrap_or_default();
            placements::check(new.name(), &spec.placements, cities, &known, &mut faults);
            keys::check(&spec.template, &mut faults);
            let instance = &spec.template.spec;
            runtime::check(&instance.runtime, &instance.volumes, &mut faults);
            volumes::check(instance, &mut faults);
            runtime::check_interfaces(&instance.network_interfaces, &mut faults);
        }
    }
    faults.into_errors()
}

/// The message of a refusal, as API servers write it.
pub fn refusal(workload: &str, errors: &[FieldError]) -> String {
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let told = match told.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    format!("Workload.compute.datumapis.com \"{workload}\" is invalid: {told}")
}

/// Path of the instance in the template.
const INSTANCE: &str = "spec.template.spec";
/// What is in the schema but nobody does yet.
const NOT_IMPLEMENTED: &str = "not implemented";
