//! What one Instance takes from a project's budget (domain.md 1.5, 2.8, 3.8.1 "sizing precedence").

use std::collections::BTreeMap;

use popcell_api::{catalogue, quota};
use serde_json::Value;

use crate::object::{Fields, Object};
use crate::quantity;

/// One thousandth of a processor.
const MILLICORE: i128 = quantity::ONE / 1000;
/// One MiB of bytes.
const MIB: i128 = quantity::GIB / 1024;

/// What the spec of an Instance asks a claim for: amounts by resource type, each type once, in the order in which they are
/// written. Processor time is in thousandths of a processor and memory in MiB, both rounded up.
///
/// The size is said by the first of these that says both: the limits of all containers, added up; `runtime.resources.requests`;
/// the catalogue of instance types. Where nothing does, only the instance is counted. A quantity that cannot be read, or is
/// not above zero, says nothing.
pub fn requests(spec: &Value) -> Vec<(&'static str, i64)> {
    let size = limits(spec)
        .or_else(|| amounts(spec.pointer("/runtime/resources/requests")?))
        .map(|(cpu, memory)| (in_units(cpu, MILLICORE), in_units(memory, MIB)))
        .or_else(|| catalogued(spec));
    let mut requests = vec![(quota::INSTANCES, 1)];
    if let Some((millicores, mebibytes)) = size {
        requests.extend([(quota::VCPUS, millicores), (quota::MEMORY, mebibytes)]);
    }
    requests
}

/// The same as a text that is equal for equal sizes, such as `instances=1,vcpus=2000,memory=4096`.
pub fn size(spec: &Value) -> String {
    let short = |resource: &'static str| resource.rsplit('/').next().unwrap_or(resource);
    let each = requests(spec).into_iter();
    let each: Vec<String> = each
        .map(|(resource, amount)| format!("{}={amount}", short(resource)))
        .collect();
    each.join(",")
}

/// Whether a claim asks for exactly what the spec of an Instance does, in any order. A claim whose requests cannot be read
/// asks for something else.
pub fn is_claimed(claim: &Object, spec: &Value) -> bool {
    let listed = claim.items("/spec/requests");
    let asked: Option<BTreeMap<&str, i64>> = listed.iter().map(request).collect();
    asked.is_some_and(|asked| asked.len() == listed.len() && asked == requests(spec).into_iter().collect())
}

fn request(request: &Value) -> Option<(&str, i64)> {
    Some((request.get("resourceType")?.as_str()?, request.get("amount")?.as_i64()?))
}

/// Limits of all containers, added up; `None` unless there is a container and each has both.
fn limits(spec: &Value) -> Option<(i128, i128)> {
    let containers = spec.pointer("/runtime/sandbox/containers")?.as_array()?;
    let each: Option<Vec<_>> = containers
        .iter()
        .map(|container| amounts(container.pointer("/resources/limits")?))
        .collect();
    each?.into_iter().reduce(|sum, one| {
        let (cpu, memory) = (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1));
        (cpu, memory)
    })
}

/// Processor time and memory of a map of quantities, where it has both.
fn amounts(quantities: &Value) -> Option<(i128, i128)> {
    let amount = |name: &str| {
        let value = quantities.get(name)?;
        let parsed = match value {
            Value::String(text) => quantity::parse(text),
            Value::Number(number) => quantity::parse(&number.to_string()),
            _ => None,
        };
        parsed.filter(|amount| *amount > 0)
    };
    Some((amount("cpu")?, amount("memory")?))
}

fn catalogued(spec: &Value) -> Option<(i64, i64)> {
    match spec.pointer("/runtime/resources/instanceType")?.as_str()? {
        catalogue::D1_STANDARD_2 => Some((catalogue::D1_STANDARD_2_MILLICORES, catalogue::D1_STANDARD_2_MEMORY_MIB)),
        _ => None,
    }
}

/// A positive amount in whole units, rounded up; as many as fit.
fn in_units(amount: i128, unit: i128) -> i64 {
    let units = amount / unit + i128::from(amount % unit > 0);
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
