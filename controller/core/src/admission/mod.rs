//! Rules for Workloads, and for WorkloadDeployments that are made directly, at admission.
//!
//! Creates and updates keep the same rules. An update that changes no spec, and one of an object that is
//! being deleted, are admitted unread: our own finalizer writes pass through here. Of an update, only cities and networks
//! that are new are checked against what exists, and a template that stays as it is does not hold up an update that lets
//! no more run.

mod access;
mod deployment;
mod field;
mod keys;
mod placements;
mod runtime;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::BTreeSet;

use popcell_api::kind::Kind;
use popcell_api::{InstanceTemplateSpec, WorkloadSpec};
use serde::Deserialize;

pub use access::{ObjectUse, access_denied, access_failed, access_review, project_of, too_many_uses, uses_to_review};
pub use deployment::{city_to_review, is_deployment_reviewed, validate_deployment};
pub use field::{Fault, FieldError};

use crate::instance_types::Catalogue;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::{derived, fields, names};
use field::Faults;
use keys::Exempt;

/// Whether there is anything of a Workload to look at.
pub fn is_reviewed(old: Option<&Object>, new: &Object) -> bool {
    is_spec_reviewed(old, new)
        || (!new.deleting() && old.is_some_and(|old| keys::adds_reserved(old, new, Exempt::default())))
}

/// Whether the spec is looked at: it is new or another one, of an object that is not being deleted.
pub fn is_spec_reviewed(old: Option<&Object>, new: &Object) -> bool {
    !new.deleting() && !old.is_some_and(|old| old.has_spec_of(new))
}

/// All faults of a create (`old` is `None`) or an update of a Workload. `cities` are the codes of usable LocationBindings
/// ([`crate::bindings::usable_cities`]), `types` the instance types.
pub fn validate(
    old: Option<&Object>,
    new: &Object,
    cities: &BTreeSet<&str>,
    types: Observed<&Catalogue>,
) -> Vec<FieldError> {
    if !is_reviewed(old, new) {
        return Vec::new();
    }
    let mut faults = Faults::default();
    keys::check_object(old, new, Exempt::default(), &mut faults);
    if !is_spec_reviewed(old, new) {
        return faults.into_errors();
    }
    // The API makes it immutable.
    if old.is_none()
        && let Err(error) = names::check_workload(new.name())
    {
        faults.invalid("metadata.name", new.name(), &error.to_string());
    }
    let null = serde_json::Value::Null;
    match WorkloadSpec::deserialize(new.at("/spec").unwrap_or(&null)) {
        Err(error) => faults.invalid("spec", "...", &format!("cannot be read: {error}")),
        Ok(spec) => {
            placements::check(new.name(), &spec.placements, cities, old, &mut faults);
            let is_kept = |old: &Object| old.at("/spec/template") == new.at("/spec/template");
            if !old.is_some_and(|old| is_kept(old) && !placements::grow(old, new)) {
                check_template(&spec.template, types, &mut faults);
            }
        }
    }
    faults.into_errors()
}

/// The rules for a template, whatever it is the template of.
fn check_template(template: &InstanceTemplateSpec, types: Observed<&Catalogue>, faults: &mut Faults) {
    keys::check(template, faults);
    let instance = &template.spec;
    runtime::check(&instance.runtime, &instance.volumes, types, faults);
    volumes::check(instance, faults);
    runtime::check_interfaces(&instance.network_interfaces, faults);
}

/// Warnings about a create or an update that is admitted, of an object of this kind: what of it is accepted without all of it
/// being done. `workload` is the one that a WorkloadDeployment says it is made from, as it lives: what it asks for was warned
/// about with it.
pub fn warnings(kind: Kind, old: Option<&Object>, new: &Object, workload: Option<&Object>) -> Vec<String> {
    let was_reviewed = workload.is_some_and(|workload| derived::is_of(new, workload));
    if was_reviewed || !is_spec_reviewed(old, new) {
        return Vec::new();
    }
    fields::findings(kind, new).iter().map(ToString::to_string).collect()
}

/// The message of a refusal, as API servers write it.
pub fn refusal(kind: Kind, name: &str, errors: &[FieldError]) -> String {
    let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let reported = match reported.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    format!("{}.{} \"{name}\" is invalid: {reported}", kind.kind, kind.group)
}

/// Most items of a list of a template, and of the metrics of a placement, where the rules look at each of them.
const LONGEST_LIST: usize = 1000;
/// Most networks of a template: the user's right to each is asked for.
const MOST_NETWORKS: usize = 100;
/// Most ConfigMaps and Secrets of a template: the same.
const MOST_DATA: usize = 100;
/// Most rules of the network policy of an interface, and most ports, origins and exceptions of a rule: as in an
/// `AdminNetworkPolicy` of Kubernetes (sigs.k8s.io/network-policy-api), since a plain `NetworkPolicy` has no bound. Whoever
/// enforces them compares packets with each.
const MOST_RULES: usize = 100;
/// Path of the instance in the template.
const INSTANCE: &str = "spec.template.spec";
