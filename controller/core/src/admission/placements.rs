//! Placements, cities and scale.

use std::collections::{BTreeMap, BTreeSet};

use popcell_api::{HorizontalScaleSettings, MetricTarget, WorkloadPlacement};

use popcell_contract::quantity;
use serde_json::Value;

use super::LONGEST_LIST;
use super::field::Faults;
use crate::names;
use crate::object::{Fields, Object};
use crate::slots;
use crate::workload::cities;

/// Most instances that a placement may ask for in one city.
const MAX_REPLICAS: i32 = 1000;
/// Most placements of a Workload, and most cities of a placement; one that has more already may keep as many.
const MOST: usize = 100;

pub(super) fn check(
    workload: &str,
    placements: &[WorkloadPlacement],
    valid: &BTreeSet<&str>,
    old: Option<&Object>,
    faults: &mut Faults,
) {
    let known = old.map(cities).unwrap_or_default();
    let before = old.map(|old| old.items("/spec/placements")).unwrap_or_default();
    let cities_before: BTreeMap<&str, usize> = before.iter().filter_map(city_count).collect();
    if placements.is_empty() {
        faults.required("spec.placements", "");
    }
    let supported: Vec<&str> = valid.iter().copied().collect();
    let mut derived: BTreeMap<String, String> = BTreeMap::new();
    let placements = faults.at_most("spec.placements", placements, MOST.max(before.len()));
    for (index, placement) in placements.iter().enumerate() {
        let path = format!("spec.placements[{index}]");
        faults.dns_label(format!("{path}.name"), &placement.name);
        if placement.city_codes.is_empty() {
            faults.required(format!("{path}.cityCodes"), "");
        }
        let had = cities_before.get(placement.name.as_str()).copied().unwrap_or_default();
        let named = faults.at_most(&format!("{path}.cityCodes"), &placement.city_codes, MOST.max(had));
        for (number, city) in named.iter().enumerate() {
            let path = format!("{path}.cityCodes[{number}]");
            if let Err(error) = names::check_city(city) {
                faults.invalid(path, city.as_str(), &error.to_string());
                continue;
            }
            if !valid.contains(city.as_str()) && !known.contains(city.as_str()) {
                faults.not_supported(path.as_str(), city, &supported);
            }
            let name = names::workload_deployment(workload, &placement.name, city);
            match derived.get(&name) {
                Some(other) => {
                    let rule = format!("has the same WorkloadDeployment \"{name}\" as {other}");
                    faults.invalid(path, city.as_str(), &rule);
                }
                None => {
                    derived.insert(name, path);
                }
            }
        }
        scale(&format!("{path}.scaleSettings"), &placement.scale_settings, faults);
    }
}

/// The name of a placement, and how many cities it has.
fn city_count(placement: &Value) -> Option<(&str, usize)> {
    let cities = placement.get("cityCodes")?.as_array()?;
    Some((placement.get("name")?.as_str()?, cities.len()))
}

/// Whether more is to run anywhere: in a city that is new, or more in one of a placement.
pub(super) fn grow(old: &Object, new: &Object) -> bool {
    let counts = |workload: &Object| -> BTreeMap<(String, String), (i64, i64)> {
        let mut counts = BTreeMap::new();
        for placement in workload.items("/spec/placements") {
            let name = placement.get("name").and_then(Value::as_str).unwrap_or_default();
            let number = |field: &str| placement.get("scaleSettings")?.get(field)?.as_i64();
            let bounds = slots::bounds(number("minReplicas"), number("maxReplicas"));
            let cities = placement.get("cityCodes").and_then(Value::as_array);
            for city in cities.into_iter().flatten().filter_map(Value::as_str) {
                counts.insert((name.to_owned(), city.to_owned()), bounds);
            }
        }
        counts
    };
    let before = counts(old);
    counts(new).into_iter().any(|(place, (least, most))| {
        let grew = |before: &(i64, i64)| least > before.0 || most > before.1;
        before.get(&place).is_none_or(grew)
    })
}

pub(super) fn scale(path: &str, settings: &HorizontalScaleSettings, faults: &mut Faults) {
    let replicas = settings.min_replicas;
    if replicas < 1 {
        faults.invalid(format!("{path}.minReplicas"), replicas, "must be greater than 0");
    }
    if replicas > MAX_REPLICAS {
        faults.invalid(
            format!("{path}.minReplicas"),
            replicas,
            "must be less than or equal to 1000",
        );
    }
    let path_of_most = format!("{path}.maxReplicas");
    match settings.max_replicas {
        Some(most) if most > MAX_REPLICAS => {
            faults.invalid(path_of_most, most, "must be less than or equal to 1000");
        }
        Some(most) if most < replicas => {
            faults.invalid(path_of_most, most, "must be greater than or equal to minReplicas");
        }
        None if !settings.metrics.is_empty() => faults.required(path_of_most, "must be given with metrics"),
        _ => {}
    }
    if settings.max_replicas.is_some() && settings.metrics.is_empty() {
        faults.required(format!("{path}.metrics"), "must be given with maxReplicas");
    }
    let metrics = faults.at_most(&format!("{path}.metrics"), &settings.metrics, LONGEST_LIST);
    for (index, metric) in metrics.iter().enumerate() {
        let path = format!("{path}.metrics[{index}].resource");
        match &metric.resource {
            None => faults.required(path, ""),
            Some(resource) => target(&format!("{path}.target"), &resource.target, faults),
        }
    }
}

fn target(path: &str, target: &MetricTarget, faults: &mut Faults) {
    const CHOICE: &str = "exactly one of value, averageValue and averageUtilization";
    let given = [
        target.value.is_some(),
        target.average_value.is_some(),
        target.average_utilization.is_some(),
    ];
    match given.into_iter().filter(|given| *given).count() {
        0 => faults.required(path, CHOICE),
        1 => {}
        _ => faults.forbidden(path, CHOICE),
    }
    for (name, value) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(value) = value
            && quantity::nano(&value.0).is_none_or(|number| number <= 0)
        {
            faults.invalid(format!("{path}.{name}"), value.0.as_str(), "must be greater than 0");
        }
    }
    if let Some(percent) = target.average_utilization
        && percent < 1
    {
        let path = format!("{path}.averageUtilization");
        faults.invalid(path, percent, "must be greater than or equal to 1");
    }
}
