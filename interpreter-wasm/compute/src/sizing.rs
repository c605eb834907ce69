//! What one instance needs: cpu and memory, by the precedence that quota uses.
//!
//! 1. the sum of the containers' limits, when every container limits both;
//! 2. else `runtime.resources.requests`, when it has both;
//! 3. else the catalogue of instance types;
//! 4. else nothing is known, and no requirement is answered.
//!
//! A quantity that cannot be read, or is negative, is refused by name rather than passed over: the next rule would give
//! a size that the user did not ask for.

use popcell_sdk::prelude::*;

const CONTAINERS: &str = "/spec/template/spec/runtime/sandbox/containers";
const REQUESTS: &str = "/spec/template/spec/runtime/resources/requests";
const INSTANCE_TYPE: &str = "/spec/template/spec/runtime/resources/instanceType";

struct InstanceType {
    name: &'static str,
    cpu: &'static str,
    memory: &'static str,
}

/// The instance types of the platform, with quantities as people write them.
const CATALOGUE: &[InstanceType] = &[InstanceType {
    name: "datumcloud/d1-standard-2",
    cpu: "1",
    memory: "2Gi",
}];

struct Size {
    cpu: Quantity,
    memory: Quantity,
}

/// What one instance of the template needs, where that is known.
pub(crate) fn requirements(object: &Object) -> Result<Option<Requirements>> {
    let size = match sum_of_limits(object)? {
        Some(size) => Some(size),
        None => match size_at(object, REQUESTS)? {
            Some(size) => Some(size),
            None => catalogue_size(object)?,
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

fn catalogue_size(object: &Object) -> Result<Option<Size>> {
    let name = object.text(INSTANCE_TYPE)?;
    Ok(CATALOGUE
        .iter()
        .find(|entry| Some(entry.name) == name)
        .and_then(InstanceType::size))
}

impl InstanceType {
    /// `None` only for an entry that is no quantity; a test reads them all.
    fn size(&self) -> Option<Size> {
        Some(Size {
            cpu: self.cpu.parse().ok()?,
            memory: self.memory.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CATALOGUE;

    #[test]
    fn every_instance_type_has_a_size() {
        for entry in CATALOGUE {
            let size = entry.size().expect(entry.name);
            assert!(!size.cpu.is_zero() && !size.memory.is_zero(), "{}", entry.name);
            assert_eq!(
                (size.cpu.to_string().as_str(), size.memory.to_string().as_str()),
                (entry.cpu, entry.memory)
            );
        }
    }
}
