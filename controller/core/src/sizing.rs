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

/// An amount that cannot be read, or is beyond any range: no budget has so much, so the claim is refused.
pub const UNCOUNTED: i64 = i64::MAX;

/// What the spec of an Instance asks a claim for: amounts by resource type, each type once, in the order in which they are
/// written. Processor time is in thousandths of a processor and memory in MiB, both rounded up.
///
/// The size is said by the first of these that says both: the limits of all containers, added up; `runtime.resources.requests`;
/// the catalogue of instance types. It is never less than what the ones before say in part, such as the limits of some
/// containers. Where nothing says anything, only the instance is counted; where something does and nothing says both, or
/// it cannot be read, the amounts are [`UNCOUNTED`]. An amount of zero says nothing.
pub fn requests(spec: &Value) -> Vec<(&'static str, i64)> {
    let mut requests = vec![(quota::INSTANCES, 1)];
    if let Some(size) = asked(spec) {
        requests.extend([
            (quota::VCPUS, in_units(size.cpu, MILLICORE)),
            (quota::MEMORY, in_units(size.memory, MIB)),
        ]);
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

/// Processor time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    cpu: i128,
    memory: i128,
}

impl Size {
    const UNCOUNTED: Self = Self {
        cpu: i128::MAX,
        memory: i128::MAX,
    };

    fn max(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
        }
    }
}

/// What one source says of each of the two; nothing where it does not name it.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    cpu: Option<i128>,
    memory: Option<i128>,
}

impl Said {
    const UNCOUNTED: Self = Self {
        cpu: Some(i128::MAX),
        memory: Some(i128::MAX),
    };

    fn whole(self) -> Option<Size> {
        Some(Size {
            cpu: self.cpu?,
            memory: self.memory?,
        })
    }

    fn part(self) -> Size {
        Size {
            cpu: self.cpu.unwrap_or_default(),
            memory: self.memory.unwrap_or_default(),
        }
    }

    fn is_something(self) -> bool {
        self.cpu.or(self.memory).is_some()
    }
}

fn asked(spec: &Value) -> Option<Size> {
    if !(spec.is_object() || spec.is_null()) {
        return Some(Size::UNCOUNTED);
    }
    let (limits, are_whole) = limits(spec.pointer("/runtime/sandbox/containers"));
    if let (Some(size), true) = (limits.whole(), are_whole) {
        return Some(size);
    }
    let (requests, type_) = match spec.pointer("/runtime/resources") {
        Some(Value::Object(resources)) => (amounts(resources.get("requests")), resources.get("instanceType")),
        None | Some(Value::Null) => (Said::default(), None),
        Some(_) => (Said::UNCOUNTED, None),
    };
    let type_ = type_.filter(|type_| !type_.is_null() && type_.as_str() != Some(""));
    let says_something = limits.is_something() || requests.is_something() || type_.is_some();
    let base = requests.whole().or_else(|| catalogued(type_?));
    let base = base.or(says_something.then_some(Size::UNCOUNTED))?;
    Some(base.max(limits.part()).max(requests.part()))
}

/// Limits of containers, added up, and whether each of them has both.
fn limits(containers: Option<&Value>) -> (Said, bool) {
    let containers = match containers {
        Some(Value::Array(containers)) => containers,
        None | Some(Value::Null) => return (Said::default(), false),
        Some(_) => return (Said::UNCOUNTED, false),
    };
    let add = |sum: Option<i128>, one: Option<i128>| match (sum, one) {
        (Some(sum), Some(one)) => Some(sum.saturating_add(one)),
        (sum, one) => sum.or(one),
    };
    let (mut sum, mut all) = (Said::default(), !containers.is_empty());
    for container in containers {
        let one = match container.get("resources") {
            Some(Value::Object(resources)) => amounts(resources.get("limits")),
            None | Some(Value::Null) => Said::default(),
            Some(_) => Said::UNCOUNTED,
        };
        all &= one.whole().is_some();
        sum = Said {
            cpu: add(sum.cpu, one.cpu),
            memory: add(sum.memory, one.memory),
        };
    }
    (sum, all)
}

/// What a map of quantities says.
fn amounts(quantities: Option<&Value>) -> Said {
    let quantities = match quantities {
        Some(Value::Object(quantities)) => quantities,
        None | Some(Value::Null) => return Said::default(),
        Some(_) => return Said::UNCOUNTED,
    };
    let amount = |name: &str| {
        let parsed = match quantities.get(name)? {
            Value::Null => return None,
            Value::String(text) => quantity::parse(text),
            Value::Number(number) => quantity::parse(&number.to_string()),
            _ => None,
        };
        match parsed {
            Some(0) => None,
            Some(amount) if amount > 0 => Some(amount),
            _ => Some(i128::MAX),
        }
    };
    Said {
        cpu: amount("cpu"),
        memory: amount("memory"),
    }
}

fn catalogued(instance_type: &Value) -> Option<Size> {
    match instance_type.as_str()? {
        catalogue::D1_STANDARD_2 => Some(Size {
            cpu: i128::from(catalogue::D1_STANDARD_2_MILLICORES) * MILLICORE,
            memory: i128::from(catalogue::D1_STANDARD_2_MEMORY_MIB) * MIB,
        }),
        _ => None,
    }
}

/// A positive amount in whole units, rounded up; as many as fit.
fn in_units(amount: i128, unit: i128) -> i64 {
    let units = amount / unit + i128::from(amount % unit > 0);
    i64::try_from(units).unwrap_or(UNCOUNTED)
}

#[cfg(test)]
mod tests;
