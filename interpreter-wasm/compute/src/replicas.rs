//! The number of instances, read from the template (InterpretReplica) and written into it (ReviseReplica), and what one
//! instance needs.
//!
//! Requirements are answered only for one replica or more: with requirements and no replicas Karmada's scheduler clears
//! the clusters of the binding, and the object is deleted from its cell instead of scaled to nothing.
//! A missing `minReplicas` is refused by name; the CRD requires it, and every guess would start or stop instances.
//!
//! Revised, `minReplicas` becomes the number; `maxReplicas`, where there is one, keeps its proportion to it, rounded
//! up, and is never under it. The function looks at its two arguments only, since Karmada may call with an out-of-date
//! number first. InterpretReplica of the answer is the number that was asked for.
//!
//! Cpu and memory follow the precedence that quota uses:
//!
//! 1. the sum of the containers' limits, when every container limits both;
//! 2. else `runtime.resources.requests`, when it has both;
//! 3. else the size of the instance type, which the object has in an annotation ([`instance_types::ANNOTATION`]);
//! 4. else nothing is known, and no requirement is answered.
//!
//! A quantity that cannot be read, or is negative, is refused by name rather than passed over: the next rule would give
//! a size that the user did not ask for. So is an annotation that cannot be read.

use popcell_contract::instance_types::{self, TypeSize};
use popcell_sdk::prelude::*;

/// Instances that the object asks for (CRD: required int32).
const MIN_REPLICAS: &str = "/spec/scaleSettings/minReplicas";
/// Upper bound of an autoscaler (CRD: optional int32).
const MAX_REPLICAS: &str = "/spec/scaleSettings/maxReplicas";

/// Replicas and requirements of a resource template.
pub(crate) fn interpret(object: &Object) -> Result<Replicas> {
    let replicas = count(object, MIN_REPLICAS)?
        .ok_or_else(|| Error::invalid(MIN_REPLICAS, "expected a count of replicas, found nothing"))?;
    let requirements = if replicas > 0 { requirements(object)? } else { None };
    Ok(Replicas {
        replicas: i64::from(replicas),
        requirements,
    })
}

/// Sets the number of instances of `object`; absent parents are created, parents of another type are refused by name.
pub(crate) fn revise(object: &mut Object, replicas: i32) -> Result<()> {
    if replicas < 0 {
        return Err(Error::failed(format!(
            "failed to revise to {replicas} replicas: a count is 0 or more"
        )));
    }
    let old_minimum = count(object, MIN_REPLICAS)?.unwrap_or(0);
    let old_maximum = count(object, MAX_REPLICAS)?;
    object.set(MIN_REPLICAS, i64::from(replicas))?;
    if let Some(old_maximum) = old_maximum {
        object.set(
            MAX_REPLICAS,
            i64::from(scaled_maximum(old_minimum, old_maximum, replicas)),
        )?;
    }
    Ok(())
}

/// The maximum that stands to `minimum` as the old one stood to the old minimum, at least `minimum`, at most 2^31-1.
/// An old minimum of 0 has no proportion: the old maximum stays as far as it can.
fn scaled_maximum(old_minimum: i32, old_maximum: i32, minimum: i32) -> i32 {
    if old_minimum <= 0 {
        return old_maximum.max(minimum);
    }
    let (old_minimum, old_maximum) = (i64::from(old_minimum), i64::from(old_maximum));
    let product = old_maximum.saturating_mul(i64::from(minimum));
    let rounded_up = product.saturating_add(old_minimum - 1) / old_minimum;
    i32::try_from(rounded_up).unwrap_or(i32::MAX).max(minimum)
}

/// A count of instances at `pointer`: absent, or 0..=2^31-1. Anything else is refused by name.
fn count(object: &Json, pointer: &str) -> Result<Option<i32>> {
    let Some(number) = object.int(pointer)? else {
        return Ok(None);
    };
    i32::try_from(number)
        .ok()
        .filter(|count| *count >= 0)
        .map(Some)
        .ok_or_else(|| {
            Error::invalid(
                pointer,
                format!("expected a count from 0 to {}, found {number}", i32::MAX),
            )
        })
}

const CONTAINERS: &str = "/spec/template/spec/runtime/sandbox/containers";
const REQUESTS: &str = "/spec/template/spec/runtime/resources/requests";
const INSTANCE_TYPE: &str = "/spec/template/spec/runtime/resources/instanceType";
const ANNOTATIONS: &str = "/metadata/annotations";

struct Size {
    cpu: Quantity,
    memory: Quantity,
}

/// What one instance of the template needs, where that is known.
fn requirements(object: &Object) -> Result<Option<Requirements>> {
    let size = match sum_of_limits(object)? {
        Some(size) => Some(size),
        None => match size_at(object, REQUESTS)? {
            Some(size) => Some(size),
            None => size_of_type(object)?,
        },
    };
    Ok(size.map(|Size { cpu, memory }| Requirements {
        resource_request: [("cpu".to_owned(), cpu), ("memory".to_owned(), memory)].into(),
        ..Requirements::default()
    }))
}

fn sum_of_limits(object: &Object) -> Result<Option<Size>> {
    let containers = object.items(CONTAINERS)?.unwrap_or_default();
    let mut sum: Option<Size> = None;
    for index in 0..containers.len() {
        let Some(size) = size_at(object, &format!("{CONTAINERS}/{index}/resources/limits"))? else {
            return Ok(None);
        };
        sum = Some(match sum {
            Some(sum) => Size {
                cpu: sum.cpu + size.cpu,
                memory: sum.memory + size.memory,
            },
            None => size,
        });
    }
    Ok(sum)
}

/// Cpu and memory of the resource list at `pointer`; `None` unless it has both.
fn size_at(object: &Object, pointer: &str) -> Result<Option<Size>> {
    let cpu = amount(object, &format!("{pointer}/cpu"))?;
    let memory = amount(object, &format!("{pointer}/memory"))?;
    Ok(cpu.zip(memory).map(|(cpu, memory)| Size { cpu, memory }))
}

/// A quantity of 0 or more at `pointer`.
fn amount(object: &Object, pointer: &str) -> Result<Option<Quantity>> {
    match object.quantity(pointer)? {
        Some(quantity) if quantity.is_negative() => Err(Error::invalid(
            pointer,
            format!("expected a quantity of 0 or more, found {quantity}"),
        )),
        quantity => Ok(quantity),
    }
}

fn size_of_type(object: &Object) -> Result<Option<Size>> {
    let Some(name) = object.text(INSTANCE_TYPE)? else {
        return Ok(None);
    };
    let found = instance_types::size(name, object.annotation(instance_types::ANNOTATION));
    let found = found.map_err(|error| Error::invalid(ANNOTATIONS, error.to_string()))?;
    Ok(found.map(|TypeSize { cpu, memory }| Size { cpu, memory }))
}

#[cfg(test)]
mod tests {
    use super::scaled_maximum;

    #[test]
    fn maximum_keeps_its_proportion() {
        // (old minimum, old maximum, new minimum, new maximum)
        let table = [
            (2, 4, 3, 6),
            (2, 5, 3, 8),
            (3, 10, 1, 4),
            (3, 3, 7, 7),
            (2, 4, 2, 4),
            (2, 4, 0, 0),
            (0, 4, 3, 4),
            (0, 4, 9, 9),
            (0, 0, 0, 0),
            // A maximum under its minimum is lifted.
            (5, 2, 5, 5),
            (4, 0, 2, 2),
            // Saturates at what the field can hold.
            (1, i32::MAX, i32::MAX, i32::MAX),
            (1, 1000, i32::MAX, i32::MAX),
            (i32::MAX, i32::MAX, 1, 1),
        ];
        for (old_minimum, old_maximum, minimum, maximum) in table {
            assert_eq!(
                scaled_maximum(old_minimum, old_maximum, minimum),
                maximum,
                "{old_minimum}..{old_maximum} revised to {minimum}"
            );
        }
    }
}
