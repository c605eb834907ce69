//! WorkloadDeployments: whoever makes one directly gets the rules of a Workload.
//!
//! What a living Workload asks for was reviewed with that Workload, so popcell's own writes keep passing: its template,
//! networks and cities are not reviewed again. The Workload is read by the caller; what the WorkloadDeployment says of it
//! is only a claim.

use std::collections::BTreeSet;

use popcell_api::{WorkloadDeploymentSpec, annotations, kind, labels};
use serde::Deserialize;
use serde_json::Value;

use super::field::{Faults, FieldError};
use super::keys::{Exempt, adds_reserved};
use super::{check_template, is_spec_reviewed, keys, placements};
use crate::instance_types::Catalogue;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::{derived, fields, names, slots};

/// Annotations that the controllers of a cell write, where that is the project's own server.
const OF_CELLS: &[&str] = &[annotations::GRANTED_SLOTS, annotations::GRANTED_SIZE];

/// What an autoscaler asks for.
const REPLICAS: &str = "/spec/replicas";

/// Whether there is anything of a WorkloadDeployment to look at.
pub fn is_deployment_reviewed(old: Option<&Object>, new: &Object) -> bool {
    is_spec_reviewed(old, new) || (!new.deleting() && old.is_some_and(|old| adds_reserved(old, new, exempt(new))))
}

/// Its label names the Workload that its spec names.
fn exempt(new: &Object) -> Exempt<'_> {
    Exempt {
        label: new.text("/spec/workloadRef/uid").map(|uid| (labels::WORKLOAD_UID, uid)),
        annotations: OF_CELLS,
    }
}

/// The city of a WorkloadDeployment where it has to have a usable binding: it is new, and no Workload asks for it.
/// `workload` is the one that it says it is made from, as it lives.
pub fn city_to_review<'a>(old: Option<&Object>, new: &'a Object, workload: Option<&Object>) -> Option<&'a str> {
    let city = new.text("/spec/cityCode")?;
    let known = old.is_some_and(|old| old.text("/spec/cityCode") == Some(city))
        || workload.is_some_and(|workload| derived::is_of(new, workload));
    (is_spec_reviewed(old, new) && !known).then_some(city)
}

/// All faults of a create (`old` is `None`) or an update. `cities` are the codes of usable LocationBindings, which are
/// looked at where [`city_to_review`] says so; `types` the instance types.
pub fn validate_deployment(
    old: Option<&Object>,
    new: &Object,
    workload: Option<&Object>,
    cities: &BTreeSet<&str>,
    types: Observed<&Catalogue>,
) -> Vec<FieldError> {
    if !is_deployment_reviewed(old, new) {
        return Vec::new();
    }
    let mut faults = Faults::default();
    keys::check_object(old, new, exempt(new), &mut faults);
    if !is_spec_reviewed(old, new) {
        return faults.into_errors();
    }
    let null = Value::Null;
    let value = new.at("/spec").unwrap_or(&null);
    let spec = match WorkloadDeploymentSpec::deserialize(value) {
        Ok(spec) => spec,
        Err(error) => {
            faults.invalid("spec", "...", &format!("cannot be read: {error}"));
            return faults.into_errors();
        }
    };
    // The API makes these immutable.
    if old.is_none() {
        if let Err(error) = names::check_deployment(new.name()) {
            faults.invalid("metadata.name", new.name(), &error.to_string());
        }
        faults.dns_label("spec.placementName", &spec.placement_name);
    }
    let city = spec.city_code.as_str();
    if let Err(error) = names::check_city(city) {
        faults.invalid("spec.cityCode", city, &error.to_string());
    } else if city_to_review(old, new, workload).is_some_and(|city| !cities.contains(city)) {
        let supported: Vec<&str> = cities.iter().copied().collect();
        faults.not_supported("spec.cityCode", city, &supported);
    }
    // The number to begin with is one that changes nothing. In a single cluster autoscalers write here by the subresource `scale`,
    // which is not reviewed there.
    let replicas = new
        .int(REPLICAS)
        .filter(|replicas| *replicas != i64::from(spec.scale_settings.min_replicas));
    if replicas.is_some() && replicas != old.and_then(|old| old.int(REPLICAS)) {
        faults.forbidden(
            "spec.replicas",
            "an autoscaler sets it in a cell: set scaleSettings.minReplicas of the placement in the Workload",
        );
    }
    let asked = workload.filter(|workload| derived::is_of(new, workload));
    let settings = asked
        .and_then(|workload| derived::placement(new, workload))
        .and_then(|placement| placement.get("scaleSettings"));
    if settings.is_none() || settings != new.at("/spec/scaleSettings") {
        placements::scale("spec.scaleSettings", &spec.scale_settings, &mut faults);
    }
    let template = new.at("/spec/template");
    let was_reviewed = asked.is_some_and(|workload| workload.at("/spec/template") == template);
    let is_kept = old.is_some_and(|old| old.at("/spec/template") == template && !grows(old, new));
    if !was_reviewed && !is_kept {
        check_template(&spec.template, types, &mut faults);
        // The schema of a Workload refuses these; that of a WorkloadDeployment keeps them for later releases.
        fields::each_unknown(kind::WORKLOAD_DEPLOYMENT, value, |path| {
            if path.starts_with("spec.template.") {
                faults.forbidden(path, "unknown field");
            }
        });
    }
    faults.into_errors()
}

/// Whether more is to run.
fn grows(old: &Object, new: &Object) -> bool {
    slots::least(new) > slots::least(old) || slots::most(new) > slots::most(old)
}
