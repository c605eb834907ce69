//! What one Instance takes from a project's budget.

use std::collections::BTreeMap;

use popcell_api::{annotations, quota};
use popcell_contract::{instance_types, quantity};
use serde_json::{Map, Value};

use crate::object::{Fields, Object};
use crate::plan::cut;

/// One thousandth of a processor.
const MILLICORE: i128 = quantity::ONE / 1000;
/// One MiB of bytes.
const MIB: i128 = quantity::GIB / 1024;

/// An amount that cannot be read, or is beyond any range: no budget has so much, so the claim is refused.
pub const UNCOUNTED: i64 = i64::MAX;

/// Where the instance type is in the spec of an Instance.
pub(crate) const TYPE: &str = "/runtime/resources/instanceType";

/// The spec of an Instance, and what goes with it of the size of its instance type.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// The spec.
    pub spec: &'a Value,
    /// The annotation [`annotations::INSTANCE_TYPE_SIZE`] of the object that has it.
    pub type_size: Option<&'a str>,
}

impl<'a> Described<'a> {
    const NOTHING: Self = Self {
        spec: &Value::Null,
        type_size: None,
    };

    /// What an object says that has the spec of an Instance at this place; `None` where it has none.
    pub fn at(object: &'a Object, pointer: &str) -> Option<Self> {
        Some(Self {
            spec: object.at(pointer)?,
            type_size: object.annotation(annotations::INSTANCE_TYPE_SIZE),
        })
    }

    /// What an Instance says.
    pub fn instance(instance: &'a Object) -> Self {
        Self::at(instance, "/spec").unwrap_or(Self::NOTHING)
    }

    /// The name of its instance type; `None` where it has none.
    pub fn type_name(self) -> Option<&'a str> {
        let name = self.spec.pointer(TYPE).and_then(Value::as_str);
        name.filter(|name| !name.is_empty())
    }

    /// Why the size of its instance type is not known, for people.
    pub fn why_unsized(self) -> Option<String> {
        let name = self.type_name()?;
        match instance_types::size(name, self.type_size) {
            Ok(Some(_)) => None,
            Ok(None) => {
                let name = cut(name, instance_types::LONGEST_NAME);
                Some(format!("the size of instance type {name} is not known"))
            }
            Err(malformed) => Some(malformed.to_string()),
        }
    }
}

/// What the spec of an Instance asks a claim for: amounts by resource type, each type once, in the order in which they are
/// written. Processor time is in thousandths of a processor and memory in MiB, both rounded up.
///
/// The size is said by the first of these that says both: the limits of all containers, added up, where there is no virtual
/// machine beside them; `runtime.resources.requests`; the instance type. It is never less than what the ones
/// before say in part, such as the limits of some containers, nor than what containers request. Where nothing says anything,
/// only the instance is counted. What cannot be read is [`UNCOUNTED`], and all is where something is said and nothing says
/// both, or the size of the instance type is not known: the provider's choice is unknown, whatever else is said. An amount
/// of zero says nothing.
pub fn requests(described: Described<'_>) -> Vec<(&'static str, i64)> {
    let mut requests = vec![(quota::INSTANCES, 1)];
    if let Some(size) = asked(described) {
        requests.extend([
            (quota::VCPUS, in_units(size.cpu, MILLICORE)),
            (quota::MEMORY, in_units(size.memory, MIB)),
        ]);
    }
    requests
}

/// The same as a text that is equal for equal sizes, such as `instances=1,vcpus=2000,memory=4096`.
pub fn size(described: Described<'_>) -> String {
    let short = |resource: &'static str| resource.rsplit('/').next().unwrap_or(resource);
    let each = requests(described).into_iter();
    let each: Vec<String> = each
        .map(|(resource, amount)| format!("{}={amount}", short(resource)))
        .collect();
    each.join(",")
}

/// Whether a claim asks for exactly what an Instance does, in any order. A claim whose requests cannot be read
/// asks for something else.
pub fn is_claimed(claim: &Object, described: Described<'_>) -> bool {
    let listed = claim.items("/spec/requests");
    let asked: Option<BTreeMap<&str, i64>> = listed.iter().map(request).collect();
    asked.is_some_and(|asked| asked.len() == listed.len() && asked == requests(described).into_iter().collect())
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

    /// Only the amounts that cannot be read, or are beyond any range.
    fn uncounted(self) -> Size {
        let uncounted = |amount: Option<i128>| amount.filter(|amount| *amount == i128::MAX).unwrap_or_default();
        Size {
            cpu: uncounted(self.cpu),
            memory: uncounted(self.memory),
        }
    }

    fn combined(self, other: Self, with: impl Fn(i128, i128) -> i128) -> Self {
        let both = |one: Option<i128>, other: Option<i128>| match (one, other) {
            (Some(one), Some(other)) => Some(with(one, other)),
            (one, other) => one.or(other),
        };
        Self {
            cpu: both(self.cpu, other.cpu),
            memory: both(self.memory, other.memory),
        }
    }
}

/// A part of a spec that has fields.
#[derive(Clone, Copy)]
enum Part<'a> {
    Fields(&'a Map<String, Value>),
    Absent,
    Unreadable,
}

impl<'a> Part<'a> {
    fn of(value: Option<&'a Value>) -> Self {
        match value {
            Some(Value::Object(fields)) => Self::Fields(fields),
            None | Some(Value::Null) => Self::Absent,
            Some(_) => Self::Unreadable,
        }
    }

    /// Of a part that cannot be read, none can.
    fn part(self, name: &str) -> Self {
        match self {
            Self::Fields(fields) => Self::of(fields.get(name)),
            other => other,
        }
    }

    fn field(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Fields(fields) => fields.get(name).filter(|value| !value.is_null()),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

fn asked(described: Described<'_>) -> Option<Size> {
    let runtime = Part::of(Some(described.spec)).part("runtime");
    let resources = runtime.part("resources");
    let type_ = resources
        .field("instanceType")
        .filter(|type_| type_.as_str() != Some(""));
    let of_type = type_.map(|type_| self::of_type(type_, described.type_size).unwrap_or(Size::UNCOUNTED));
    if of_type == Some(Size::UNCOUNTED) {
        return of_type;
    }
    let requests = amounts(resources.part("requests"));
    let containers = containers(runtime.part("sandbox"));
    if containers.say_all && runtime.field("virtualMachine").is_none() {
        return Some(containers.asked.part().max(requests.uncounted()));
    }
    let says_something = containers.asked.is_something() || requests.is_something();
    let base = requests.whole().or(of_type);
    let base = base.or(says_something.then_some(Size::UNCOUNTED))?;
    Some(base.max(containers.asked.part()).max(requests.part()))
}

/// What containers ask for.
struct Containers {
    /// Added up: limits, or requests where these are more, as where there are no limits.
    asked: Said,
    /// There are some, and the limits of each say both.
    say_all: bool,
}

fn containers(sandbox: Part<'_>) -> Containers {
    let none = |asked| Containers { asked, say_all: false };
    let containers = match (sandbox, sandbox.field("containers")) {
        (Part::Fields(_), Some(Value::Array(containers))) => containers,
        (Part::Absent | Part::Fields(_), None) => return none(Said::default()),
        _ => return none(Said::UNCOUNTED),
    };
    let (mut asked, mut say_all) = (Said::default(), !containers.is_empty());
    for container in containers {
        let resources = Part::of(Some(container)).part("resources");
        let (limits, requests) = (amounts(resources.part("limits")), amounts(resources.part("requests")));
        say_all &= limits.whole().is_some();
        asked = asked.combined(limits.combined(requests, i128::max), i128::saturating_add);
    }
    Containers { asked, say_all }
}

/// What a map of quantities says.
fn amounts(quantities: Part<'_>) -> Said {
    let quantities = match quantities {
        Part::Fields(quantities) => quantities,
        Part::Absent => return Said::default(),
        Part::Unreadable => return Said::UNCOUNTED,
    };
    let amount = |name: &str| {
        let parsed = match quantities.get(name)? {
            Value::Null => return None,
            Value::String(text) => quantity::nano(text),
            Value::Number(number) => quantity::nano(&number.to_string()),
            _ => None,
        };
        match parsed {
            Some(0) => None,
            // The largest amount stands for all that are beyond it.
            Some(amount) if amount > 0 && amount < quantity::LARGEST => Some(amount),
            _ => Some(i128::MAX),
        }
    };
    Said {
        cpu: amount("cpu"),
        memory: amount("memory"),
    }
}

/// The size of an instance type, where it is known and can be read.
fn of_type(instance_type: &Value, annotation: Option<&str>) -> Option<Size> {
    let found = instance_types::size(instance_type.as_str()?, annotation).ok()??;
    Some(Size {
        cpu: found.cpu.nano(),
        memory: found.memory.nano(),
    })
}

/// A positive amount in whole units, rounded up; as many as fit.
fn in_units(amount: i128, unit: i128) -> i64 {
    let units = amount / unit + i128::from(amount % unit > 0);
    i64::try_from(units).unwrap_or(UNCOUNTED)
}

#[cfg(test)]
mod tests;
