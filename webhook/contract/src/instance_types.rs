//! Instance types: one table for quota, for admission, and for the requirements that Karmada's scheduler reads, so that a type has
//! one size everywhere.

use crate::Quantity;

/// How large an Instance of a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// As `runtime.resources.instanceType` has it.
    pub name: &'static str,
    /// Processors, as people write the quantity.
    pub cpu: &'static str,
    /// Bytes of memory, as people write the quantity.
    pub memory: &'static str,
}

/// All of them.
pub const ALL: [InstanceType; 1] = [InstanceType {
    name: "datumcloud/d1-standard-2",
    cpu: "1",
    memory: "2Gi",
}];

/// The type of a name.
#[must_use]
pub fn find(name: &str) -> Option<InstanceType> {
    ALL.into_iter().find(|one| one.name == name)
}

impl InstanceType {
    /// Processors and bytes of memory; `None` only for an entry that is no quantity.
    #[must_use]
    pub fn size(&self) -> Option<(Quantity, Quantity)> {
        Some((self.cpu.parse().ok()?, self.memory.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_size_and_a_name_of_its_own() {
        for one in ALL {
            let (cpu, memory) = one.size().unwrap();
            assert!(!cpu.is_zero() && !memory.is_zero(), "{}", one.name);
            assert_eq!([cpu.to_string(), memory.to_string()], [one.cpu, one.memory]);
            assert_eq!(ALL.iter().filter(|other| other.name == one.name).count(), 1);
            assert_eq!(find(one.name), Some(one));
        }
        assert_eq!(find("datumcloud/none"), None);
    }
}
